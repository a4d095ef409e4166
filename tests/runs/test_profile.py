"""A profile says where a run's time went, row by row, and sums to the whole."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from small import same_runs

import fedkin as fk
from fedkin import log
from fedkin import round as rounds
from fedkin.collaborate import Mean
from fedkin.engines import Stacked
from fedkin.engines.batching import Batching
from fedkin.keep import Everyone
from fedkin.runs import files, profile, session
from fedkin.runs.folder import RunFolder
from fedkin.runs.profile import ROWS, Profile, TimedBatching
from fedkin.select import Uniform

DATA = fk.Data("digits", clients=6)
SMALL = fk.Experiment(fk.methods.fedavg(count=3, steps=3), DATA, rounds=4, evaluate_every=2, threads=1)
PAUSE = 0.05  # seconds
DIGITS = ["--data", "digits", "--clients", "6", "--rounds", "4"]

PLACES: dict[str, tuple[Any, str, dict[str, int]]] = {  # what is slowed down, and how many calls are in which row
    "data": (session, "load", {"start-up: data": 1}),
    "setup": (session, "set_up", {"start-up: network": 1}),
    "select": (Uniform, "__call__", {"selection": 4}),
    "observe": (Uniform, "observe", {"selection": 4}),
    "send": (Mean, "send", {"mixing": 4, "scoring": 2, "ending": 1}),
    "receive": (Mean, "receive", {"mixing": 4}),
    "train": (
        Stacked,
        "train",
        {"training steps": 4, "scoring": 2, "ending": 1},
    ),  # clients are fine-tuned to be scored
    "batches": (Batching, "planned", {"batches": 4, "scoring": 2, "ending": 1}),
    "keep": (Everyone, "__call__", {"keep": 4}),
    "score": (Stacked, "score_one", {"scoring": 2}),
    "diagnostics": (session.diagnostics, "asked", {"scoring": 2}),
    "files": (files, "write_whole", {"record": 3 * 4 + 2 * 2 * 6}),  # six metrics of two kinds in two scored rounds
    "history": (session.History, "recorded", {"record": 4}),
    "callback": (fk.Callback, "recorded", {"record": 4}),
    "checkpoint": (session, "save_checkpoint", {"checkpoints": 1}),
    "finish": (RunFolder, "finish", {"ending": 1}),
    "loop": (rounds.Log, "__init__", {"rest": 4}),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_second_is_in_its_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str) -> None:
    where, name, expected = PLACES[place]
    real, clock = getattr(where, name), [0.0]

    def slow(*given: Any, **named: Any) -> Any:
        clock[0] += 1.0
        return real(*given, **named)

    monkeypatch.setattr(where, name, slow)
    for module in (log, profile):
        monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    found = fk.run(SMALL, tmp_path / "run", profile=True, callbacks=[fk.Callback()]).profile
    assert found is not None
    assert tuple(found.seconds) == ROWS
    assert {row: seconds for row, seconds in found.seconds.items() if seconds} == {
        k: v for k, v in expected.items() if v
    }
    assert found.total == clock[0], "it sums to the whole"
    assert found.rounds == 4


def test_a_profile_sums_to_the_time_of_the_clock() -> None:
    start = time.perf_counter()
    found = fk.run(SMALL, profile=True).profile
    assert found is not None
    assert found.total == pytest.approx(time.perf_counter() - start, abs=0.05)
    assert found.seconds["training steps"] > found.seconds["selection"] > 0


def test_a_profile_changes_nothing_and_can_be_read_again(tmp_path: Path) -> None:
    experiment = replace(SMALL, method=fk.methods.fedmcsa(count=3))
    plain, profiled = fk.run(experiment, tmp_path / "a"), fk.run(experiment, tmp_path / "b", profile=True)
    same_runs(tmp_path / "a", tmp_path / "b")
    assert plain.profile is None
    assert not (tmp_path / "a" / "profile.json").exists()
    assert fk.load_run(tmp_path / "a").profile is None
    again = fk.load_run(tmp_path / "b").profile
    assert again is not None
    assert profiled.profile is not None
    assert again.rounds == profiled.profile.rounds == 4
    assert again.seconds == pytest.approx(profiled.profile.seconds, abs=1e-6)
    assert fk.run(SMALL, profile=True).profile is not None, "without a folder"


def test_pooled_training_of_many_clients_is_profiled_and_stays_the_same(tmp_path: Path) -> None:
    experiment = replace(SMALL, method=fk.methods.pooled())
    fk.run(experiment, tmp_path / "a")
    fk.run(experiment, tmp_path / "b", profile=True)
    same_runs(tmp_path / "a", tmp_path / "b")


def test_a_run_that_goes_on_has_the_profile_of_what_was_played_now(tmp_path: Path) -> None:
    fk.run(SMALL, tmp_path, profile=True)
    longer = fk.run(replace(SMALL, rounds=6), tmp_path, resume=True, profile=True)
    assert longer.profile is not None
    assert longer.profile.rounds == 2


def test_the_table_adds_up() -> None:
    seconds = dict.fromkeys(ROWS, 0.0) | {"start-up: data": 1.0, "training steps": 2.0, "record": 1.0}
    lines = str(Profile(seconds, 10).since(1.0)).splitlines()
    assert [line.split() for line in lines if line.startswith(("start-up: data", "training", "total"))] == [
        ["start-up:", "data", "2.000", "40.0", "%"],
        ["training", "steps", "2.000", "40.0", "%", "200.00"],
        ["total", "5.000", "100.0", "%", "300.00"],
    ]
    assert len(lines) == len(ROWS) + 2


def test_the_start_of_actors_has_a_row_of_its_own() -> None:
    seconds = dict.fromkeys(ROWS, 0.0) | {"start-up: network": 3.0, "training steps": 2.0}
    found = Profile(seconds, 10).by_actors(2.5)
    assert found.total == 5.0
    assert [found.seconds[f"start-up: {row}"] for row in ("network", "actors")] == [0.5, 2.5]
    assert list(found.seconds) == [*ROWS[:2], "start-up: actors", *(row for row in ROWS[2:] if row != "batches")]
    said = [line.split() for line in str(found).splitlines() if "actors" in line]
    assert said == [["start-up:", "actors", "2.500", "50.0", "%"]], "it is no time of a round"


def test_seconds_of_threads_side_by_side_count_once() -> None:
    class Slow:
        def planned(self) -> None:
            time.sleep(PAUSE)

    timed, together = TimedBatching(Slow()), Barrier(2)

    def work() -> None:
        together.wait()  # so that both threads live at once, and have different numbers
        timed.planned()
        together.wait()

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert PAUSE <= timed.seconds() < 2 * PAUSE
    assert timed.seconds() == 0.0


def test_the_command_prints_the_table(fedkin, tmp_path: Path) -> None:
    code, out, err = fedkin("run", "fedavg", *DIGITS, "--profile", "--out", "here")
    assert code == 0, err
    assert all(f"\n{row} " in out for row in (*ROWS, "total"))
    code, out, err = fedkin("run", "here", "--resume", "--profile")
    assert code == 2
    assert "All runs are done" in err
    code, out, err = fedkin("compare", "fedavg", *DIGITS, "--profile", "--json", "--seeds", "2", "--out", "both")
    assert code == 0, err
    assert set(json.loads(out)["methods"]) == {"local", "fedavg"}, "JSON and nothing else"
    assert err.count("where the time went") == 1
    assert [path.parent.name for path in (tmp_path / "both").rglob("profile.json")] == ["seed-0"]


def test_a_profile_of_several_processes_is_of_the_first_run(fedkin, tmp_path: Path) -> None:
    code, out, err = fedkin("compare", "fedavg", *DIGITS, "--profile", "--jobs", "2", "--out", "here")
    assert code == 0, err
    assert "local seed 0\nwhere the time went" in out
