"""The suites that `make fuzz` and `make soak` play as a whole: a part of each, and that each can fail.

Each suite is a program of its own, because it forks processes from one that has computed nothing yet.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import damage
import full_disk
import fuzz
import kills
import long_run
import pytest
from forked import Ended
from fuzz_cases import Case

import fedkin as fk

HERE = Path(__file__).parent
GOOD = Ended(2, "", "fedkin: There is no such thing.\n", 0.1, 100)


def suite(name: str, *words: str) -> str:
    """Play a part of a suite; returns what it printed last."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / f"{name}.py"), *words]
    found = subprocess.run(command, capture_output=True, text=True, env=env, timeout=900)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    return found.stdout.splitlines()[-1]


@pytest.mark.parametrize("first", [0, 150])
def test_odd_commands_and_files_end_well(first: int) -> None:
    assert suite("fuzz", "--first", str(first), "--cases", str(first + 90)).startswith("90 cases")


@pytest.mark.parametrize(("first", "kills"), [(0, 4), (4, 8)])
def test_killed_commands_go_on_as_if_they_had_not_been(first: int, kills: int) -> None:
    said = suite("kills", "--first", str(first), "--kills", str(kills), "--others", "0")
    assert said.startswith(f"{kills - first} trials")
    assert said.endswith(f"{kills - first} as undisturbed, 0 not")


def test_commands_that_other_signals_end_go_on_as_if_they_had_not_been() -> None:
    assert suite("kills", "--kills", "0", "--others", "6").endswith("6 as undisturbed, 0 not")


@pytest.mark.parametrize("writers", [("run", "models in files", "report"), tuple(full_disk.WRITERS)[3:]])
def test_a_full_disk_is_a_sentence_and_loses_nothing(writers: tuple[str, ...]) -> None:
    said = suite("full_disk", "--rooms", "0", "16", "48", "--writers", *writers)
    assert said.startswith(f"{3 * len(writers)} cases")
    assert said.endswith(" 0 bad")


def test_no_reader_believes_a_damaged_file() -> None:
    assert suite("damage", "--share", "0.03").endswith(" 0 bad")


def test_memory_does_not_grow_with_the_rounds_and_the_page_stays_small() -> None:
    suite("long_run", "--rounds", "400", "--clients", "40", "--unseen")


# that the suites see what is bad


@pytest.mark.parametrize(
    ("ended", "named"),
    [
        (Ended(1, "", "Traceback (most recent call last):\n  x\n", 0.1, 1), "traceback"),
        (Ended(1, "", "fedkin: Something failed that should not: x\n", 0.1, 1), "what should not be"),
        (Ended(-signal.SIGSEGV, "", "", 0.1, 1), "crash by signal 11"),
        (Ended(130, "", "", 20.0, 1, late=True), "hang"),
        (Ended(-signal.SIGKILL, "working", "", 20.0, 1, late=True), "hang"),
        (Ended(2, "", "", 0.1, 1), "no sentence"),
        (Ended(2, "", "fedkin: a\nfedkin: b\n", 0.1, 1), "several sentences"),
        (Ended(2, "", "x.py:1: RuntimeWarning: overflow\nfedkin: a\n", 0.1, 1), "a warning"),
        (Ended(7, "", "", 0.1, 1), "exit code 7"),
    ],
)
def test_the_fuzzer_names_what_is_bad(tmp_path: Path, ended: Ended, named: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "outside/kept.csv").write_text(fuzz.KEPT)
    assert fuzz.faults(Case(("run",)), GOOD, tmp_path) == []
    assert named in fuzz.faults(Case(("run",)), ended, tmp_path)


def test_the_fuzzer_sees_what_is_written_outside(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "outside/kept.csv").write_text("changed")
    (tmp_path / "outside/more").touch()
    (tmp_path / "there").touch()
    (tmp_path / "here/.x.part").touch()
    (tmp_path / fuzz.RAN).touch()
    found = fuzz.faults(Case(("run",)), GOOD, tmp_path)
    assert {"a changed file outside", "a half file", "code that nobody asked for"} < set(found)
    assert {"more outside", "there outside"} < set(found)


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    """One that waits, and one that does not listen either."""
    place = tmp_path / "here"
    place.mkdir()
    code = "import forked, sys, time, signal, pathlib\n"
    code += "def deaf():\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    time.sleep(60)\n    return 0\n"
    code += "forked.PATIENCE = 0.5\nplace = pathlib.Path(sys.argv[1])\n"
    code += "print(forked.ended(forked.forked(deaf, place), place, 0.5).code)"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    found = subprocess.run(
        [sys.executable, "-c", code, str(place)], capture_output=True, text=True, env=env, timeout=100
    )
    assert found.stdout.strip() == str(-signal.SIGKILL), found.stderr


def test_the_kill_suite_sees_a_difference(tmp_path: Path) -> None:
    assert kills.different(tmp_path, tmp_path) == ["no runs"]
    for name, eta in (("one", 0.1), ("same", 0.1), ("other", 0.2)):
        experiment = fk.Experiment(fk.methods.fedavg(eta=eta), fk.Data("synthetic", clients=3), rounds=1)
        fk.run(experiment, tmp_path / name / "fedavg/seed-0")
    assert kills.different(tmp_path / "one", tmp_path / "same") == []
    assert kills.different(tmp_path / "one", tmp_path / "other")
    (tmp_path / "same/.x.part").touch()
    assert kills.different(tmp_path / "one", tmp_path / "same")


def test_a_sentence_that_does_not_say_the_disk_is_full_is_unclear() -> None:
    assert full_disk.unclear(GOOD)
    assert not full_disk.unclear(Ended(2, "", "fedkin: Cannot write x: No space left on device; free some.\n", 1.0, 1))


def test_growth_is_seen() -> None:
    assert long_run.growth([(k, 100 + k * 0.01) for k in range(100, 3000, 100)]) == pytest.approx(10.0)


def test_damages_damage(tmp_path: Path) -> None:
    for change in damage.DAMAGES.values():
        path = tmp_path / "file"
        path.write_text('{"a": 12}')
        change(path)
        assert not path.exists() or path.read_text() != '{"a": 12}'
