"""`--engine flower`: clients that train as sites on Flower's simulation runtime are those of the stacked engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from federation import NAMES, SIX, Party, experiment, same_run, short, stacked
from in_process import InProcess
from small import Until

import fedkin as fk
from fedkin import engines
from fedkin.core import tree
from fedkin.errors import Unfinished
from fedkin.flower import runtime
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.folder import RunFolder

METHODS = SIX | {
    "ditto": short(fk.methods.ditto(), 2),
    "fedmix": short(fk.methods.fedmix(), 3),
    "active": short(fk.methods.active(), None),
}


@pytest.fixture
def grid(monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """The nodes of all runs of a test, in this process."""
    found = InProcess()

    @contextmanager
    def nodes(make: runtime.Make, parts: list[fk.Federation], cores: int) -> Iterator[InProcess]:
        found.nodes.clear()
        for number in range(len(parts)):
            found.add(make(parts.__getitem__), **{"partition-id": number, "num-partitions": len(parts)})
        yield found

    monkeypatch.setattr(runtime, "simulated", nodes)
    return found


def played(method: Any, data: fk.Federation, folder: Path, **more: Any) -> fk.Run:
    options = {key: more.pop(key) for key in ("resume", "callbacks") if key in more}
    named = replace(data, clients=NAMES[: data.n])
    there = replace(experiment(method, **more), data=named, engine="flower", chunk=4, threads=1)
    return fk.run(there, folder, checkpoint_seconds=0.0, warn=lambda sentence: None, **options)


def same(one: fk.Run, other: fk.Run) -> None:
    """The runs are the same, and so are their folders' files, the personal models and the predictions."""
    assert one.folder is not None
    assert other.folder is not None
    point = load_checkpoint(RunFolder(other.folder), [])
    assert point is not None
    same_run(one, other, tree.flat(point.private))
    assert [path.name for path in sorted(one.folder.iterdir())] == [p.name for p in sorted(other.folder.iterdir())]
    torch.testing.assert_close(tree.flat(one.models), tree.flat(other.models), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_simulated_sites_are_stacked(grid: InProcess, party: Party, tmp_path: Path, name: str) -> None:
    one = stacked(METHODS[name], party.federation, tmp_path / "stacked")
    same(one, played(METHODS[name], party.federation, tmp_path / "flower"))
    trained = [message for message in grid.seen if message.metadata.message_type == "train"]
    everyone = METHODS[name].trains == "everyone"
    assert len(trained) == sum(4 if everyone else line["selected"] for line in one.lines), "nobody trains elsewhere"


@pytest.mark.parametrize("name", ["fedmcsa", "scaffold", "ditto"])
def test_a_stopped_run_goes_on_exactly(grid: InProcess, party: Party, tmp_path: Path, name: str) -> None:
    one = stacked(METHODS[name], party.federation, tmp_path / "stacked")
    left = tmp_path / "flower" / "slots-of-a-killed-run"
    played(METHODS[name], party.federation, tmp_path / "flower", callbacks=[Until(2)])
    left.mkdir()
    same(one, played(METHODS[name], party.federation, tmp_path / "flower", resume=True))
    assert not left.exists()


@pytest.mark.parametrize("name", ["fedmcsa", "scaffold"])
def test_noise_is_that_of_stacked(grid: InProcess, party: Party, tmp_path: Path, name: str) -> None:
    dp = "clip=0.5,noise=0.8"
    one = stacked(METHODS[name], party.federation, tmp_path / "stacked", dp=dp)
    same(one, played(METHODS[name], party.federation, tmp_path / "flower", dp=dp))


def test_clients_of_a_part_keep_their_numbers(grid: InProcess, party: Party, tmp_path: Path) -> None:
    some = party.federation.only(torch.tensor([0, 2, 3]))
    method = short(fk.methods.fedavg(), 2)
    there = replace(experiment(method), data=replace(some, clients=NAMES[:3]), chunk=4, threads=1)
    one = fk.run(there, tmp_path / "stacked", checkpoint_seconds=0.0, warn=lambda sentence: None)
    same(one, played(method, some, tmp_path / "flower"))


def test_it_does_not_go_on_without_a_client(grid: InProcess, party: Party, tmp_path: Path) -> None:
    method = short(fk.methods.ditto(), 4)
    one = stacked(method, party.federation, tmp_path / "stacked")

    class Loses(fk.Callback):
        def recorded(self, record: fk.Record) -> bool:
            next(iter(grid.nodes.values())).lost = record.round == 2
            return True

    with pytest.raises(Unfinished, match=r"Not everyone answers for 0 s \(site-0: .*not connected.*\).*--resume"):
        played(method, party.federation, tmp_path / "flower", callbacks=[Loses()])
    same(one, played(method, party.federation, tmp_path / "flower", resume=True))


def test_a_comparison_ends_as_any_other(grid: InProcess, fedkin: Any, tmp_path: Path) -> None:
    words = ["compare", "ditto", "--data", "digits", "--clients", "3", "--samples", "20", "--rounds", "2", "--out"]
    tables = [fedkin(*words, name, "--engine", name) for name in ("flower", "stacked")]
    assert [one.code for one in tables] == [0, 0], tables[0].err
    asked = len(grid.seen)
    assert asked > 3
    found = [fk.load(tmp_path / name).sites() for name in ("flower", "stacked")]
    assert found[0].to_csv() == found[1].to_csv(), "each client gets the same answer"
    assert fedkin("export", "flower", "--client", "1", "-o", "model").code == 0
    assert len(grid.seen) == asked, "what comes after the runs needs no nodes"


RUN = ["run", "fedavg", "--data", "digits", "--clients", "4", "--rounds", "2", "--engine", "flower"]
REFUSED = {
    "pooled": (["run", "pooled", *RUN[2:]], "pooled puts samples together, and each node has its own; leave it out."),
    "jobs": ([*RUN, "--jobs", "2"], "The engine flower uses all cores by itself; leave --jobs or --engine out."),
    "tuning": (["tune", *RUN[1:], "--jobs", "2"], "The engine flower uses all cores by itself"),
    "actors": ([*RUN, "--actors", "2"], "Actors, and the address of a cluster, are of the engine ray"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_a_sentence(grid: InProcess, fedkin: Any, case: str) -> None:
    words, sentence = REFUSED[case]
    outcome = fedkin(*words)
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].startswith(f"fedkin: {sentence}")


@pytest.mark.parametrize("missing", ["flwr", "ray"])
def test_what_to_install(fedkin: Any, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None if name == missing else object())
    outcome = fedkin(*RUN)
    assert outcome.code == 2
    lacks = f"fedkin: The engine flower is Flower's simulation runtime, and {missing} is not installed"
    assert outcome.err.splitlines()[-1] == f"{lacks}; install it with: pip install 'fedkin[flower,ray]'."


def test_flowers_runtime_is_stacked(tmp_path: Path, fedkin: Any) -> None:
    """Nothing is replaced here: Ray, its actors, Flower's nodes and messages. In a process of its own, for Ray ends."""
    pytest.importorskip("ray")
    words = ["run", "ditto", "--data", "digits", "--clients", "4", "--rounds", "3", "--evaluate-every", "1", "--json"]
    words += ["--set", "train.steps=3", "--out"]
    command = [sys.executable, "-m", "fedkin.command.cli", *words, "flower", "--engine", "flower", "--threads", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, env=os.environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert fedkin(*words, "alone").out.count("{") == done.stdout.count("{"), "nothing but JSON"
    one, other = (fk.load_run(tmp_path / name / "ditto" / "seed-0") for name in ("alone", "flower"))
    same(one, other)
