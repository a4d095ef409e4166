"""Private models that lie in files: results, checkpoints and resumed runs are those of models in memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small import Until, same_runs, tiny

import fedkin as fk
from fedkin.core.rows import Rows, Sealed, Segment
from fedkin.runs import checkpoint, ending, segments
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.folder import RunFolder
from fedkin.runs.format import check_format

METHODS: dict[str, Callable[[], fk.Method]] = {
    "local": fk.methods.local,
    "fedprox": lambda: fk.methods.fedprox(count=3),
    "fedacs": lambda: fk.methods.fedacs(p=0.5, fraction=0.5),
    "fedmcsa": lambda: fk.methods.fedmcsa(count=3, trains="selected"),
    "fedmcsa, everyone trains": lambda: fk.methods.fedmcsa(count=3),
    "ditto": lambda: fk.methods.ditto(count=3),
    "apfl": lambda: fk.methods.apfl(count=3),
    "pfedme": lambda: fk.methods.pfedme(count=3),
    "scaffold": lambda: fk.methods.scaffold(count=3),
    "pfedre": lambda: fk.methods.pfedre(iterations=2),
    "active": fk.methods.active,
}
TINY = 0.000_012  # gigabytes: four rows of a model of 650 numbers, or two of two such models


def experiment(method: fk.Method, rounds: int = 4, **more: Any) -> fk.Experiment:
    train = {"epochs": None, "steps": 2} if method.name != "pfedre" else {}
    method = replace(method, train=replace(method.train, **train))  # type: ignore[type-var]
    data = fk.Data("digits", clients=8, samples=20)
    return fk.Experiment(method, data, rounds=rounds, **({"evaluate_every": 2, "threads": 1, "chunk": 2} | more))


def same_results(one: Path, other: Path) -> None:
    """Everything that came out of two runs is the same, but for the seconds and how much memory was asked for."""
    names = sorted(path.name for path in one.glob("*.bin"))
    assert names == sorted(path.name for path in other.glob("*.bin"))
    for name in ["models.safetensors", "predictions.safetensors", *names]:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    lines = [[{k: v for k, v in line.items() if k != "seconds"} for line in fk.Run(run).lines] for run in (one, other)]
    assert lines[0] == lines[1]
    summaries = [
        {k: v for k, v in fk.Run(run).summary.items() if k not in ("time", "memory", "experiment")}
        for run in (one, other)
    ]
    assert summaries[0] == summaries[1]


def rows_on_disk(folder: Path) -> int:
    return sum(len(load_file(path)["ids"]) for path in (folder / "checkpoints").glob("rows-*"))


@pytest.mark.parametrize("engine", ["stacked", "plain"])
@pytest.mark.parametrize("name", METHODS)
def test_results_are_those_of_models_in_memory(tmp_path: Path, name: str, engine: str) -> None:
    asked = experiment(METHODS[name](), engine=engine)
    fk.run(asked, tmp_path / "memory")
    fk.run(replace(asked, memory=TINY), tmp_path / "files", checkpoint_seconds=0.0)
    same_results(tmp_path / "memory", tmp_path / "files")
    assert not list((tmp_path / "files").glob("slots-*"))
    stored = asked.method.train.slots({"a": torch.zeros(1)}, asked.method.collaborate.gives.own_model)
    assert bool(list((tmp_path / "files" / "checkpoints").glob("rows-*"))) == bool(stored)


@pytest.mark.parametrize("name", ["ditto", "fedacs", "apfl"])
def test_stopped_and_resumed_equals_uninterrupted(tmp_path: Path, name: str) -> None:
    asked = experiment(METHODS[name](), rounds=12, memory=TINY)
    fk.run(asked, tmp_path / "whole")
    fk.run(asked, tmp_path / "part", callbacks=[Until(5)], checkpoint_seconds=0.0)
    fk.run(asked, tmp_path / "part", callbacks=[Until(9)], resume=True)
    fk.run(asked, tmp_path / "part", resume=True, checkpoint_seconds=0.0)
    same_results(tmp_path / "whole", tmp_path / "part")


@pytest.mark.parametrize(("before", "after"), [(None, TINY), (TINY, None), (TINY, 0.0)])
def test_a_run_goes_on_with_another_budget(tmp_path: Path, before: float | None, after: float | None) -> None:
    asked = experiment(fk.methods.ditto(count=3), rounds=8)
    fk.run(asked, tmp_path / "whole")
    fk.run(replace(asked, memory=before), tmp_path / "part", callbacks=[Until(4)])
    assert bool(RunFolder(tmp_path / "part").segments()) == (before is not None)
    fk.run(replace(asked, memory=after), tmp_path / "part", resume=True, checkpoint_seconds=0.0)
    same_results(tmp_path / "whole", tmp_path / "part")
    assert bool(RunFolder(tmp_path / "part").segments()) == (after is not None)


def test_a_checkpoint_writes_the_rows_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "worn", lambda *_: [])  # and nothing else
    asked = experiment(fk.methods.ditto(count=2), rounds=3, memory=TINY)
    for last in (1, 2, 3):  # each run ends with a checkpoint
        run = fk.run(asked, tmp_path / "run", callbacks=[Until(last)], resume=last > 1)
    newest = json.loads((tmp_path / "run/checkpoints/round-000003.json").read_text())
    listed = [load_file(tmp_path / "run/checkpoints" / one["file"])["ids"].tolist() for one in newest["segments"]]
    assert listed[-1] == run.selected[2].tolist()
    trained = sorted({int(client) for some in run.selected for client in some})
    assert sorted({client for ids in listed for client in ids}) == trained  # who never trained has no row
    stored = load_file(tmp_path / "run/checkpoints/round-000003.safetensors")
    assert not any(name.startswith("clients/") for name in stored)
    assert (stored["rows/segment"] >= 0).nonzero()[:, 0].tolist() == trained


def test_small_runs_keep_their_layout(tmp_path: Path) -> None:
    fk.run(experiment(fk.methods.ditto(count=2)), tmp_path / "run", checkpoint_seconds=0.0)
    assert json.loads((tmp_path / "run/format.json").read_text()) == {"format": 1}
    stored = load_file(tmp_path / "run/checkpoints/round-000004.safetensors")
    assert stored["clients/personal/1.weight"].shape == (8, 10, 64)


def test_old_versions_are_told_not_to_read_rows(tmp_path: Path) -> None:
    fk.run(experiment(fk.methods.ditto(count=2), memory=TINY), tmp_path / "run")
    assert json.loads((tmp_path / "run/format.json").read_text()) == {"format": 2}
    fk.run(experiment(fk.methods.ditto(count=2), rounds=6, memory=TINY), tmp_path / "run", resume=True)
    assert json.loads((tmp_path / "run/format.json").read_text()) == {"format": 2}
    check_format(tmp_path / "run")


def test_rows_that_nobody_needs_go(tmp_path: Path) -> None:
    """However many checkpoints there are, there are no more than a few rows a client; a stray file goes too."""
    asked = experiment(fk.methods.ditto(count=2), rounds=60, memory=TINY, evaluate_every=60)
    fk.run(asked, tmp_path / "run", callbacks=[Until(50)], checkpoint_seconds=0.0)
    stray = tmp_path / "run/checkpoints/rows-009999.safetensors"
    stray.write_bytes(b"left by a process that was killed")
    fk.run(asked, tmp_path / "run", resume=True, checkpoint_seconds=0.0)
    assert not stray.exists()
    assert 8 <= rows_on_disk(tmp_path / "run") <= 3 * 8


def sealed_by(sizes: list[int], live: list[int]) -> tuple[Sealed, np.ndarray]:
    """Segments of these sizes, of which so many rows are needed."""
    made = tuple(Segment(Path(), 0, np.arange(size), np.zeros((size, 16)), "") for size in sizes)
    segment = np.repeat(np.arange(len(sizes), dtype=np.int32), live)
    return Sealed(made, segment, np.zeros(len(segment)), "", np.ones(len(segment), dtype=bool)), segment


def test_which_segments_are_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert segments.worn(*sealed_by([10, 10, 10, 10], [10, 5, 4, 0])) == [2]
    monkeypatch.setattr(segments, "MANY", 4)
    assert segments.worn(*sealed_by([9, 1, 9, 2], [9, 1, 9, 2])) == [1, 3]
    assert segments.worn(*sealed_by([9, 1, 9], [9, 1, 9])) == []


def harmed(path: Path, harm: str, place: int = -3) -> None:
    content = bytearray(path.read_bytes())
    if harm == "flip":
        content[place] ^= 1
    path.unlink()
    if harm != "gone":
        path.write_bytes(bytes(content[:-100] if harm == "cut" else content))


@pytest.mark.parametrize(("harm", "place"), [("flip", -3), ("flip", 300), ("flip", 20), ("cut", 0), ("gone", 0)])
def test_a_damaged_segment_falls_back_to_the_checkpoint_before(tmp_path: Path, harm: str, place: int) -> None:
    asked = experiment(fk.methods.ditto(count=2), rounds=8, memory=TINY)
    fk.run(asked, tmp_path / "whole")
    fk.run(asked, tmp_path / "part", callbacks=[Until(6)], checkpoint_seconds=0.0)
    newest, before = (set(checkpoint.rows_files(path)) for path in RunFolder(tmp_path / "part").checkpoints())
    (only,) = newest - before
    harmed(tmp_path / "part/checkpoints" / only, harm, place)
    said: list[str] = []
    fk.run(asked, tmp_path / "part", resume=True, warn=said.append)
    assert any("round-000006 is damaged" in sentence and only in sentence for sentence in said)
    same_results(tmp_path / "whole", tmp_path / "part")


def test_a_row_that_all_checkpoints_need_and_that_is_damaged_is_refused(tmp_path: Path) -> None:
    asked = experiment(fk.methods.local(), rounds=8, memory=TINY)
    fk.run(asked, tmp_path / "run", callbacks=[Until(4)])
    (tmp_path / "run/checkpoints/round-000003.json").write_bytes(
        (tmp_path / "run/checkpoints/round-000004.json").read_bytes()
    )  # as if nobody had trained in round 4: both checkpoints need the same segment
    (path,) = RunFolder(tmp_path / "run").segments()
    harmed(path, "flip")
    before = (tmp_path / "run/rounds.jsonl").read_bytes()
    with pytest.raises(fk.BadInput, match=r"rows-000001.safetensors is damaged: the models of client 7 are not"):
        fk.run(asked, tmp_path / "run", resume=True)
    assert (tmp_path / "run/rounds.jsonl").read_bytes() == before


def test_where_all_are_damaged_all_rounds_are_played_again(tmp_path: Path) -> None:
    asked = experiment(fk.methods.ditto(count=2), rounds=6, memory=TINY)
    fk.run(asked, tmp_path / "run", callbacks=[Until(4)], checkpoint_seconds=0.0)
    for path in RunFolder(tmp_path / "run").segments():
        path.unlink()
    said: list[str] = []
    fk.run(asked, tmp_path / "run", resume=True, warn=said.append)
    assert "going back to round 1" in said[-1]
    fk.run(asked, tmp_path / "whole")
    same_runs(tmp_path / "run", tmp_path / "whole")


def test_rows_of_another_network_are_refused(tmp_path: Path) -> None:
    fk.run(experiment(fk.methods.ditto(count=2), memory=TINY), tmp_path / "run")
    found = load_checkpoint(RunFolder(tmp_path / "run"), [])
    assert found is not None
    assert isinstance(found.private, Sealed)
    other = Rows({"personal": {"weight": torch.zeros(3)}}, 8, 0)
    with pytest.raises(fk.BadInput, match="another network"):
        other.restore(found.private)


def test_a_copied_folder_goes_on(tmp_path: Path) -> None:
    """Segments are found beside their checkpoint, wherever the folder lies."""
    asked = experiment(fk.methods.ditto(count=2), rounds=8, memory=TINY)
    fk.run(asked, tmp_path / "whole")
    fk.run(asked, tmp_path / "part", callbacks=[Until(4)])
    shutil.move(tmp_path / "part", tmp_path / "moved")
    fk.run(asked, tmp_path / "moved", resume=True)
    same_results(tmp_path / "whole", tmp_path / "moved")


@pytest.mark.parametrize("name", ["ditto", "fedacs"])
def test_final_models_that_are_large_are_written_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked = experiment(METHODS[name]())
    whole = fk.run(asked, tmp_path / "whole")
    monkeypatch.setattr(ending, "WHOLE", 0)
    monkeypatch.setattr("fedkin.evaluate.BLOCK", 3)
    run = fk.run(asked, tmp_path / "pieces")
    assert "models" not in run.__dict__
    one, other = (load_file(tmp_path / which / "models.safetensors") for which in ("whole", "pieces"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert all(torch.equal(run.personal(5)[name], value[5]) for name, value in whole.models["personal"].items())
    assert "models" not in run.__dict__  # one row was read
    alone = fk.run(asked)
    with pytest.raises(fk.BadInput, match=r"did not keep its clients' models; give fk\.run a folder"):
        alone.personal(5)


def test_tiny_methods_fit(tmp_path: Path) -> None:
    """Two models a client and little memory: some rows in memory, some in the scratch file, some in segments."""
    asked = experiment(tiny(fk.methods.ditto(count=8), count=8), rounds=6, memory=TINY)
    fk.run(replace(asked, memory=None), tmp_path / "memory")
    fk.run(asked, tmp_path / "files", checkpoint_seconds=1e9)
    same_results(tmp_path / "memory", tmp_path / "files")
