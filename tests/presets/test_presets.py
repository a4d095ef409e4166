"""Presets: their rows are what the paper says, and one command plays them and sets them beside what was published."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import Until

import fedkin as fk
from fedkin import presets
from fedkin.command import cli, play
from fedkin.comparison.plan import Loaded, runs_for
from fedkin.comparison.sequence import play_in_sequence
from fedkin.presets import Preset, Target, adafl
from fedkin.presets.outcome import outcome
from fedkin.report.formats import percent
from fedkin.report.preset_tables import when_reached
from fedkin.runs import statistics
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.run import Run
from fedkin.select.schedule import cost, scheduled


def test_published_costs_are_those_of_the_schedules() -> None:
    """Uploads follow from rounds and schedule, so that a wrong number, schedule or T would show."""
    full = {row.method.name: row for row in presets.table1_mnist().rows}
    assert {name: row.rounds for name, row in full.items()} == dict.fromkeys(adafl.ROWS, 1000) | {"dyn_fedavg": 1500}
    for printed in (adafl.TO_90, adafl.TO_91):
        assert list(printed) == list(full)
        for name, (rounds, uploads) in printed.items():
            schedule = scheduled(full[name].method.select.fraction)
            assert cost(schedule, 100, full[name].rounds, rounds) == uploads, name


def test_rows_are_as_the_paper_describes_them() -> None:
    for preset, samples in ((presets.table1_mnist(), None), (presets.reduced_mnist(), 100)):
        assert preset.seeds == (0, 1, 2)
        assert [row.method.name for row in preset.rows] == list(adafl.ROWS)
        for row in preset.rows:
            assert row.model == "mlp:200,200"
            data = fk.Data("mnist", partition="shards:2", clients=100, samples=samples, holdout="official")
            assert row.data == data
            assert (row.evaluate_every, row.score) == (1, ("test",))
            train = row.method.train
            assert (train.epochs, train.steps, train.batch) == (5, None, 10)
            assert (train.eta, train.momentum) == (0.01, 0.5)
    alphas = {row.method.name: getattr(row.method.select, "alpha", None) for row in preset.rows}
    assert alphas == {"adafl": 0.9, "attn_0.1": 0.9, "attn_0.5": 0.9, "dyn_fedavg": 1.0} | dict.fromkeys(
        ("fedavg_0.1", "fedavg_0.5")
    )
    assert {row.rounds for row in preset.rows} == {200}


def tiny(**changes: object) -> Preset:
    """Two rows on digits, of which one learns slowly."""
    data = fk.Data("digits", clients=6)
    fast, slow = (
        replace(fk.methods.fedavg(count=count, eta=eta), name=name)
        for name, count, eta in (("fast", 3, 0.05), ("slow", 2, 0.002))
    )
    rows = tuple(
        fk.Experiment(method, data, rounds=12, evaluate_every=1, score=("global",), threads=1)
        for method in (fast, slow)
    )
    whole = Preset(
        name="tiny",
        about="A tiny table",
        rows=rows,
        seeds=(0, 1),
        kind="global",
        published={"fast": {"last10": 91.5, "best": 92.25}},
        targets=(Target(0.0, "slow"), Target(0.3, published={"fast": (7, 21)}), Target(0.99)),
        note="Nothing to be learned here.",
    )
    return replace(whole, **changes)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Calls `fedkin preset` with a tiny preset among the others, in an empty folder: (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(presets.PRESETS, "tiny", tiny())

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedkin", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


def test_one_command_plays_all_rows_and_sets_them_beside_the_published(command, tmp_path: Path) -> None:
    code, out, err = command("preset", "tiny", "--jobs", "1")
    assert code == 0, err
    folder = tmp_path / "runs" / "tiny"
    found = json.loads((folder / "summary.json").read_text())["preset"]
    assert list(found["rows"]) == ["fast", "slow"]
    lines = {name: [Run(folder / name / f"seed-{k}").lines for k in (0, 1)] for name in ("fast", "slow")}
    curves = {
        name: [np.array([line["accuracy"]["global"]["micro"] for line in of]) for of in seeds]
        for name, seeds in lines.items()
    }
    for name, seeds in curves.items():
        row = found["rows"][name]
        last = [values[-10:].mean() for values in seeds]
        assert row["last10"]["mean"] == pytest.approx(np.mean(last))
        assert row["last10"]["std"] == pytest.approx(np.std(last, ddof=1))
        assert row["best"]["mean"] == pytest.approx(np.mean([values.max() for values in seeds]))
        assert row["stability"]["mean"] == pytest.approx(np.mean([values.std() for values in seeds]))
        assert row["uploads"] == 12 * {"fast": 3, "slow": 2}[name]
    assert found["rows"]["fast"]["published"] == {"last10": 0.915, "best": 0.9225}
    own, fixed, never = found["targets"]
    assert own["accuracy"] == pytest.approx(found["rows"]["slow"]["last10"]["mean"])
    assert fixed["accuracy"] == 0.3
    for target in (own, fixed):
        for name, count in (("fast", 3), ("slow", 2)):
            rounds = [statistics.rounds_to(target["accuracy"], list(values)) for values in curves[name]]
            assert target["rows"][name]["rounds"] == rounds
            assert target["rows"][name]["uploads"] == [None if r is None else count * r for r in rounds]
    assert fixed["rows"]["fast"]["rounds"] != [None, None], "or nothing is tested"
    assert never["rows"]["slow"]["rounds"] == [None, None]
    for words in ("A tiny table", "91.50", "92.25", "7 (21)", "not reached", "Nothing to be learned", "99.00 %"):
        assert words in out, words
        assert words in (folder / "report.html").read_text(), words
    assert percent(found["rows"]["fast"]["last10"]["mean"], found["rows"]["fast"]["last10"]["std"]) in out
    assert "local" not in {path.name for path in folder.iterdir()}


def test_a_stopped_preset_goes_on_run_by_run_and_ends_with_its_own_table(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = play.Progress.watching

    def stops(self, one, number, of):  # in the third run
        return Until(5) if number == 3 else watching(self, one, number, of)

    words = ("preset", "tiny", "--jobs", "1", "--rounds", "8")
    with monkeypatch.context() as patch:
        patch.setattr(play.Progress, "watching", stops)
        code, _, err = command(*words)
    assert code == 130
    assert f"Go on with: fedkin run --resume {Path('runs/tiny')}" in err
    first = tmp_path / "runs" / "tiny" / "fast" / "seed-0" / "summary.json"
    written = first.stat().st_mtime_ns
    code, _, err = command(*words)
    assert code == 2
    assert "exists already" in err
    code, out, err = command("run", "--resume", "runs/tiny", "--json")
    assert code == 0, err
    assert json.loads(out)["preset"]["rows"]["fast"]["rounds"] == 8
    assert first.stat().st_mtime_ns == written, "a finished run is not played again"
    code, again, err = command(*words, "--resume", "--json")
    assert code == 0, err
    assert json.loads(again) == json.loads(out)
    code, _, err = command("preset", "tiny", "--jobs", "1", "--resume", "--seeds", "1", "--rounds", "8")
    assert code == 2
    assert "holds fast seed 0, fast seed 1" in err


def test_one_seed_has_no_spread_and_a_list_names_all(command) -> None:
    code, out, err = command("preset", "tiny", "--jobs", "1", "--seeds", "1", "--rounds", "6", "--out", "here")
    assert code == 0, err
    assert "±" not in out.replace("mean ± standard", "")
    _, out, _ = command("preset", "list")
    assert {line.split()[0] for line in out.splitlines()[1:] if line[:1].strip()} == set(presets.PRESETS)


def test_a_preset_whose_numbers_do_not_fit_is_refused() -> None:
    with pytest.raises(fk.BadInput, match="no row quick"):
        tiny(published={"quick": {"best": 1.0}})
    with pytest.raises(fk.BadInput, match="no row quick"):
        tiny(targets=(Target(0.1, "quick"),))
    with pytest.raises(fk.BadInput, match="every round"):
        tiny(rows=tuple(replace(row, evaluate_every=2) for row in tiny().rows))


def test_seeds_that_do_not_reach_a_target_are_counted() -> None:
    assert when_reached({"rounds": [10, None, 20], "uploads": [100.0, None, 200.0]}) == "15 (150) 2/3"
    assert when_reached({"rounds": [1000, 2000], "uploads": [10000.0, 20000.0]}) == "1,500 (15,000)"
    assert when_reached({"rounds": [None], "uploads": [None]}) == "not reached"


def test_rows_of_a_preset_may_have_different_rounds(tmp_path: Path) -> None:
    rows = [replace(row, rounds=6 + i) for i, row in enumerate(tiny().rows)]
    plan = runs_for(rows, [0], CommandFolder(tmp_path))
    assert play_in_sequence(plan, Loaded())
    found = outcome(tiny(), {one.experiment.method.name: [one.run] for one in plan})
    assert [row["rounds"] for row in found["rows"].values()] == [6, 7]
