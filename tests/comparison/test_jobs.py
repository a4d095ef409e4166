"""Runs in processes of their own: the same results, whatever is stopped or killed on the way."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from small import Until, same_runs

import fedkin as fk
from fedkin.command import play, read
from fedkin.command.options import RunOptions
from fedkin.command.progress import Progress
from fedkin.comparison import compare, jobs, processes
from fedkin.comparison import plan as plans
from fedkin.comparison.plan import Loaded, Plan, Planned, runs_for, settled, stored_plan
from fedkin.comparison.sequence import play_in_sequence
from fedkin.runs import setup
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.resume import as_begun
from fedkin.runs.run import Run

DIGITS = ["--data", "digits", "--clients", "6"]


def runs_of(folder: Path, rounds: int, *methods: fk.Method) -> list[Planned]:
    base = fk.Experiment(methods[0], fk.Data("digits", clients=6), rounds=rounds, evaluate_every=2, threads=1)
    return runs_for([replace(base, method=method) for method in methods], [0], CommandFolder(folder))


def wait(for_: Callable[[], object], process: subprocess.Popen[str] | None = None, seconds: float = 120) -> None:
    began = time.monotonic()
    while not for_():
        assert process is None or process.poll() is None, "the command ended too early"
        assert time.monotonic() - began < seconds
        time.sleep(0.05)


def test_two_jobs_give_what_one_gives(fedkin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "cores", lambda: 2)
    words = ["compare", "fedavg", "fedprox", *DIGITS, "--rounds", "6", "--evaluate-every", "2", "--seeds", "3,"]
    code, _, said = fedkin(*words, "--jobs", "auto", "--out", "two")
    assert code == 0, said
    assert fedkin(*words, "--out", "one").code == 0
    runs = sorted(path.parent.relative_to("two") for path in Path("two").glob("*/*/models.safetensors"))
    assert [str(path) for path in runs] == ["fedavg/seed-3", "fedprox/seed-3", "local/seed-3"]
    for path in runs:
        same_runs(Path("one") / path, Path("two") / path)
        assert f"{path.parent} seed {path.name[-1]}" in said
    plans = [json.loads(Path(name, "plan.json").read_text()) for name in ("one", "two")]
    assert [plan["jobs"] for plan in plans] == [1, 2]
    assert plans[0]["arms"] == plans[1]["arms"]
    assert {arm["threads"] for arm in plans[1]["arms"]} == {1}


def test_a_killed_process_is_named_and_the_others_play_what_is_left(tmp_path: Path) -> None:
    plan = runs_of(tmp_path / "two", 6, fk.methods.local(), fk.methods.fedavg(), fk.methods.fedprox())
    plan[0] = replace(plan[0], experiment=replace(plan[0].experiment, rounds=40))  # long enough to be killed in
    plan[2] = replace(plan[2], experiment=replace(plan[2].experiment, rounds=200))
    said: list[str] = []
    left: list[bool] = []  # whether others had work left when the first was killed: its start may be the slower one

    class Killer(fk.Callback):
        def recorded(self, record: fk.Record) -> None:
            if record.round == 3:
                first = min(multiprocessing.active_children(), key=lambda process: process.pid or 0)
                left.append(not plan[2].folder.has_rounds)
                os.kill(first.pid or 0, signal.SIGKILL)

    def watching(one: Planned, number: int, of: int) -> fk.Callback | None:
        return Killer() if one is plan[0] else None

    sentence = r"^The process of local seed 0 was killed \(SIGKILL\), perhaps for lack of memory\. All else is saved\.$"
    with pytest.raises(processes.Killed, match=sentence):
        jobs.play_side_by_side(plan, 2, Loaded(), watching=watching, warn=said.append)
    assert [one.done for one in plan] == [False, True, True]
    heard = any("local seed 0 was killed" in text and "The others go on." in text for text in said)
    assert heard or left == [False]
    assert not multiprocessing.active_children()
    assert jobs.play_side_by_side(plan, 2, Loaded(), resume=True), "one run is left, and played in this process"
    whole = runs_of(tmp_path / "one", 40, fk.methods.local())
    play_in_sequence(whole, Loaded())
    same_runs(whole[0].folder.path, plan[0].folder.path)


FAULTY = """
from dataclasses import dataclass
import fedkin as fk

class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")

@dataclass(frozen=True)
class Faulty(fk.select.Uniform):
    def __call__(self, slot, task, round, gen):
        if round == 3:
            raise Odd("this", "that")
        return super().__call__(slot, task, round, gen)
"""


def test_an_error_of_ones_own_part_names_its_line_and_the_others_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_part.py").write_text(FAULTY)
    monkeypatch.syspath_prepend(tmp_path)
    import faulty_part

    faulty = replace(fk.methods.fedavg(), name="faulty", select=faulty_part.Faulty(count=3))
    plan = runs_of(tmp_path / "two", 2000, fk.methods.local(), faulty, fk.methods.fedavg())
    with pytest.raises(fk.BadInput, match=r"faulty_part.py, line \d+: Odd: this and that"):
        jobs.play_side_by_side(plan, 2, Loaded(), warn=lambda _: None)
    local, _, fedavg = plan
    assert not local.done, "told to stop"
    last = local.folder.checkpoints()[0]
    assert int(last.stem.removeprefix("round-")) == Run(local.folder.path).lines[-1]["round"]
    assert not fedavg.folder.path.exists(), "not begun any more"


Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts the command in a session of its own, as a terminal would, and leaves nothing of it behind."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "fedkin.command.cli", *words]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stdout=pipe, stderr=pipe, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def playing(folder: Path, count: int) -> bool:
    return len(list(folder.glob("*/seed-*/rounds.jsonl"))) >= count


def test_ctrl_c_reaches_all_processes_and_a_second_command_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Started
) -> None:
    words = ["compare", "fedavg", *DIGITS, "--rounds", "100000", "--evaluate-every", "1000", "--jobs", "2"]
    process = started(*words, "--out", "here")
    wait(lambda: playing(tmp_path / "here", 2), process)
    plan = stored_plan(tmp_path / "here")
    assert plan.jobs == 2
    monkeypatch.setattr(compare, "play_side_by_side", lambda *_, **__: pytest.fail("the folder is at work"))
    with pytest.raises(fk.BadInput, match=r"Another command is at work in .*here; wait"):
        play.carry(plan, Loaded(), RunOptions(resume=True))
    with pytest.raises(fk.BadInput, match=r"Another command is at work in .*seed-0; wait"):
        fk.run(plan.runs[0].experiment, plan.runs[0].folder.path, resume=True, callbacks=[Until(0)])
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert error.count("Finishing this round") == 1
    assert "Stopped and saved. Go on with: fedkin run --resume here" in error
    assert "Traceback" not in error
    for one in plan.runs:
        last = one.folder.checkpoints()[0]
        assert int(last.stem.removeprefix("round-")) == one.run.reached


def test_no_process_outlives_its_command(tmp_path: Path, started: Started) -> None:
    """Not even in a round that would take a minute."""
    words = ["compare", "fedavg", *DIGITS, "--rounds", "9", "--evaluate-every", "9", "--jobs", "2"]
    process = started(*words, "--model", "dnn:1000", "--set", "train.steps=20000", "--out", "here")
    wait(lambda: len(list(tmp_path.glob("here/*/seed-*/experiment.json"))) == 2, process)
    found = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in found.splitlines()]
    children = [child for child, parent in pairs if parent == process.pid]
    assert len(children) >= 2
    process.kill()
    process.wait()
    wait(lambda: not any(running(child) for child in children), seconds=10)


def running(process: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(found) and not found.startswith("Z")


def test_what_was_handed_over_in_python_stays_in_its_process(tmp_path: Path, federate) -> None:
    base = fk.Experiment(fk.methods.fedavg(), federate((4, 5, 6)), rounds=2, threads=1)
    both = [base, replace(base, method=fk.methods.local())]
    plan = runs_for(both, [0], CommandFolder(tmp_path))
    said: list[str] = []
    assert jobs.play_side_by_side(plan, 2, Loaded(), warn=said.append)
    assert all(one.done for one in plan)
    assert any("one after another" in sentence for sentence in said)


def test_errors_travel() -> None:
    full = OSError(28, "No space left on device", "here/rounds.jsonl")
    for error in (fk.BadInput("One sentence."), full):
        error.add_note("where")
        other = pickle.loads(pickle.dumps(processes.sendable(error)))
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.__notes__ == ["where"]
    assert other.errno == 28
    assert other.filename == "here/rounds.jsonl"


def test_every_warning_is_said_once(capsys) -> None:
    progress = Progress(Console(stderr=True), [])
    for sentence in ("Client 3 has no samples.", "Client 3 has no samples.", "Client 4 has no samples."):
        progress.warn(sentence)
    assert capsys.readouterr().err.splitlines() == ["Client 3 has no samples.", "Client 4 has no samples."]


@pytest.mark.parametrize(("given", "number", "threads"), [(None, 1, 4), (None, 3, 2), (None, 9, 1), (3, 9, 3)])
def test_threads_are_shared_among_jobs(
    monkeypatch: pytest.MonkeyPatch, given: int | None, number: int, threads: int
) -> None:
    monkeypatch.setattr(plans, "cores", lambda: 8)
    monkeypatch.setattr(setup, "default_threads", lambda: 4)
    base = fk.Experiment(fk.methods.fedavg(), fk.Data("digits", clients=6), rounds=4, threads=given)
    [found] = settled([base], Loaded(), number)
    assert found.threads == threads


def test_a_run_goes_on_with_the_threads_it_began_with(tmp_path: Path) -> None:
    base = fk.Experiment(fk.methods.local(), fk.Data("digits", clients=6), rounds=4, evaluate_every=2)
    fk.run(replace(base, threads=2), tmp_path, callbacks=[Until(2)])
    said: list[str] = []
    fk.run(base, tmp_path, resume=True, callbacks=[Until(3)], warn=said.append)
    assert Run(tmp_path).experiment["resolved"]["threads"] == 2
    assert said == []
    fk.run(replace(base, threads=1), tmp_path, resume=True, warn=said.append)
    assert said == ["This run was begun with threads 2 and goes on with 1; its last digits may differ."]


def test_a_plan_remembers_its_jobs_and_threads(tmp_path: Path) -> None:
    plan = runs_of(tmp_path, 3, fk.methods.local(), fk.methods.fedavg())
    Plan(CommandFolder(tmp_path), plan, jobs=3).write()
    stored = stored_plan(tmp_path)
    assert stored.jobs == 3
    assert [one.experiment.threads for one in stored.runs] == [1, 1]
    fresh = replace(plan[1].experiment, threads=None, evaluate_every=None)
    then = stored.runs[1].experiment.described()
    assert as_begun(fresh, then) == plan[1].experiment
    assert as_begun(replace(fresh, threads=2), then).threads == 2


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ""])
def test_a_bad_number_of_jobs_is_one_sentence(text: str) -> None:
    with pytest.raises(fk.BadInput, match=r"^--jobs takes a number of processes from 1 to 1,024, or auto"):
        read.read_jobs(text, 4, "cpu")


def test_auto_is_one_job_a_core_and_not_more_than_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "cores", lambda: 8)
    assert read.read_jobs("auto", 3, "cpu") == 3
    assert read.read_jobs("auto", 30, "cpu") == 8
    assert read.read_jobs("auto", 30, "cuda") == 1
    assert read.read_jobs("5", 3, "cpu") == 5
    assert read.read_jobs(None, 3, "cpu") is None
