"""fedkin preset: one command plays all runs of a preset, goes on where it was stopped, and judges the claims."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import Until
from tiny_preset import experiment, tiny

from fedkin import presets
from fedkin.command import cli
from fedkin.command import preset as preset_command
from fedkin.presets.claims import FAILS, HOLDS, NOT_RUN
from fedkin.reproduce.store import Store, essence
from fedkin.runs import statistics

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Calls `fedkin preset` with a tiny preset among the others, in an empty folder: (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(presets.PRESETS, "tiny/table1", tiny)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedkin", "preset", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


def cells(found: dict) -> dict[tuple[str, str], list[float | None]]:
    return {(cell["row"], cell["column"]): cell["values"] for cell in found["cells"]}


def test_one_command_plays_all_runs_and_judges_the_claims(command: Command, tmp_path: Path) -> None:
    code, out, err = command("tiny/table1", "--jobs", "1", "--results", "results")
    assert code == 0, err
    folder = tmp_path / "runs" / "presets" / "tiny-table1-small"
    found = json.loads((folder / "result.json").read_text())
    assert found == json.loads((tmp_path / "results" / "tiny" / "table1-small.json").read_text())
    values, store, whole = cells(found), Store(), tiny()
    for row, eta in (("fast", 0.05), ("slow", 0.002)):
        runs = [store.finished(whole.repeated(experiment(row, eta), k)) for k in (0, 1)]
        assert [run.experiment["data"]["seed"] for run in runs] == [0, 1]
        curves = [statistics.every_round(run.lines, "global", "micro") for run in runs]
        assert values[row, "accuracy"] == pytest.approx([100 * np.mean(curve[-10:]) for curve in curves], abs=1e-5)
        target = np.mean(values["slow", "accuracy"]) / 100
        assert values[row, "rounds"] == [statistics.rounds_to(target, curve) for curve in curves]
    slow = [None if rounds is None else 3 * rounds for rounds in values["slow", "rounds"]]
    assert values["slow", "cost"] == slow, "three clients a round"
    assert values["slow", "deviation"] == pytest.approx([100 * np.std(curve) for curve in curves], abs=1e-5)
    assert values["slow", "never"] == [None, None]
    leads = np.subtract(values["fast", "accuracy"], values["slow", "accuracy"])
    assert values["fast", "lead"] == pytest.approx(leads, abs=1e-5)
    assert values["fast", "rounds"] != [None, None], "or nothing is tested"
    assert found["runs"] == 10, "fast and slow, fast with five clients, and two of the grid, twice each"
    assert [claim["verdict"] for claim in found["claims"]] == [HOLDS, FAILS]
    for words in (
        "91.50 ± 0.25",
        "not reached",
        "holds: Fast is above slow.",
        "does not hold: Slow takes",
        "Nothing to be learned",
    ):
        assert words in out, words
    page = (folder / "report.html").read_text()
    for words in ("91.50 ± 0.25", "Fast is above slow.", "Nothing to be learned", "fedkin preset tiny/table1"):
        assert words in page, words
    with (folder / "table.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert (lines[0]["paper"], lines[0]["paper spread"], lines[1]["paper"]) == ("91.5", "0.25", "")
    assert float(lines[0]["ours"]) == pytest.approx(np.mean(values["fast", "accuracy"]), abs=1e-5)
    assert "91.50 $\\pm$ 0.25" in (folder / "table.tex").read_text()
    assert "**holds**" in (folder / "table.md").read_text()


def test_settings_are_chosen_by_validation_samples(command: Command) -> None:
    code, out, err = command("tiny/table1", "--jobs", "1", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [one["train"]["eta"] for one in found["picked"]["tuned, accuracy"]] == [0.05, 0.05]
    store, whole = Store(), tiny()
    run = store.finished(whole.repeated(experiment("grid0.05", 0.05, validation=0.2), 0))
    checks = [line["accuracy"]["global/validation"]["micro"] for line in run.scored]
    tests = [line["accuracy"]["global"]["micro"] for line in run.scored]
    assert cells(found)["tuned", "accuracy"][0] == pytest.approx(100 * tests[int(np.argmax(checks))], abs=1e-5)


def test_a_stopped_preset_goes_on_with_the_same_command(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = preset_command.Progress.watching

    def stops(self, one, number, of):  # type: ignore[no-untyped-def]  # in the third run
        return Until(5) if number == 3 else watching(self, one, number, of)

    with monkeypatch.context() as patch:
        patch.setattr(preset_command.Progress, "watching", stops)
        code, _, err = command("tiny/table1", "--jobs", "1")
    assert code == 130
    assert "Go on with the same command." in err
    done = sorted(tmp_path.glob("runs/presets/runs/*/*/summary.json"))
    assert len(done) == 2
    written = [path.stat().st_mtime_ns for path in done]
    code, again, err = command("tiny/table1", "--jobs", "1", "--json")
    assert code == 0, err
    assert [path.stat().st_mtime_ns for path in done] == written, "a finished run is not played again"
    code, out, err = command("tiny/table1", "--jobs", "1", "--out", "other", "--json")
    assert code == 0, err
    assert cells(json.loads(again)) == cells(json.loads(out)), "as if it had never been stopped"


def test_columns_that_are_not_asked_for_are_not_run(command: Command) -> None:
    code, out, err = command("tiny/table1", "--jobs", "1", "--seeds", "1", "--only", "five*", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["runs"] == 1
    assert {place for place, values in cells(found).items() if values} == {("fast", "five clients")}
    assert {claim["verdict"] for claim in found["claims"]} == {NOT_RUN}
    assert found["command"] == "fedkin preset tiny/table1 --scale small --only 'five clients' --seeds 1"
    code, out, err = command("tiny/table1", "--read", "--json")
    assert code == 0, err
    assert json.loads(out)["runs"] == 1, "--read plays nothing"


def test_a_column_brings_the_runs_that_its_targets_are_set_by(command: Command) -> None:
    code, out, err = command("tiny/table1", "--jobs", "1", "--only", "cost", "--json")
    assert code == 0, err
    values = cells(json.loads(out))
    assert len(values["slow", "accuracy"]) == 2
    assert not values["fast", "accuracy"]
    assert values["slow", "cost"] != [15, 15], "a target that is not known would be passed in the fifth round"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tinny/table1"], "tiny/table1"),
        (["tiny/table1", "--scale", "huge"], "full, small"),
        (["tiny/table1", "--seeds", "0"], "--seeds must be at least 1"),
        (["tiny/table1", "--seeds", str(2**31)], "--seeds must be at least 1 and at most"),
        (["tiny/table1", "--only", "six*"], "five clients"),
        (["tiny/table1", "--read", "--only", "six*"], "five clients"),
        (["tiny/table1", "--rounds", "3", "--results", "here"], "leave --rounds or --results out"),
    ],
)
def test_bad_input_is_one_sentence(command: Command, words: list[str], sentence: str) -> None:
    code, _, err = command(*words)
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_the_list_has_every_preset_with_its_claims_and_cost(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(presets, "PRESETS", {"tiny/table1": tiny})
    monkeypatch.setattr(preset_command, "seconds", lambda preset: 120.0)
    code, out, err = command("list")
    assert code == 0, err
    for words in ("tiny/table1", "Fast is above slow.", "about 2 min"):
        assert words in out, words


def test_runs_are_told_apart_by_what_they_are_and_not_by_fields_at_their_defaults() -> None:
    store, one = Store(), experiment("fast", 0.05)
    assert essence(one.data) == {"is": "Data", "name": "digits", "clients": 6}
    others = [
        replace(one, rounds=13),
        replace(one, evaluate_every=2),
        replace(one, seed=1),
        experiment("fast", 0.06),
        experiment("fast", 0.05, clients=7),
        replace(one, model="dnn:20"),
    ]
    assert len({store.place(other).path for other in [one, *others]}) == 7
    assert store.place(replace(one, threads=2, chunk=3)) == store.place(one), "speed knobs change no result"


def test_a_result_is_completed_on_another_machine(command: Command) -> None:
    """Two columns are run in two stores that know nothing of each other; the result is that of one store."""
    whole = command("tiny/table1", "--jobs", "1", "--out", "all", "--results", "whole", "--json")
    for place, column in (("one", "accuracy"), ("one", "lead"), ("two", "five*"), ("two", "rounds")):
        code, _, err = command("tiny/table1", "--jobs", "1", "--out", place, "--only", column, "--results", "parts")
        assert code == 0, err
    code, out, err = command("tiny/table1", "--read", "--out", "two", "--results", "parts", "--json")
    assert code == 0, err
    found, expected = json.loads(out), json.loads(whole[1])
    assert {place: values for place, values in cells(found).items() if values} == cells(expected)
    assert [claim["verdict"] for claim in found["claims"]] == [claim["verdict"] for claim in expected["claims"]]
    assert found["curves"] == expected["curves"]


def test_numbers_of_other_runs_are_not_taken_over(command: Command, tmp_path: Path) -> None:
    assert command("tiny/table1", "--jobs", "1", "--only", "five*", "--results", "parts")[0] == 0
    path = tmp_path / "parts" / "tiny" / "table1-small.json"
    text = path.read_text()
    digest = next(cell["digests"][0] for cell in json.loads(text)["cells"] if cell["column"] == "five clients")
    path.write_text(text.replace(digest, "0000000000"))
    code, out, err = command("tiny/table1", "--read", "--out", "empty", "--results", "parts", "--json")
    assert code == 0, err
    assert [len(values) for place, values in cells(json.loads(out)).items() if place[1] == "five clients"] == [1]
