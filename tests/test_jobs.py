"""Arms in processes of their own: the same results, whatever is stopped or killed on the way."""

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
from small import same_runs

import fedkin as fk
from fedkin import cli, compare, jobs, play
from fedkin.compare import Arm, Loaded
from fedkin.play import Tick
from fedkin.progress import Progress
from fedkin.results.record import Run

DIGITS = ["--data", "digits", "--clients", "6"]


def arms(folder: Path, rounds: int, *methods: fk.Method) -> list[Arm]:
    base = fk.Experiment(methods[0], fk.Data("digits", clients=6), rounds=rounds, evaluate_every=2, threads=1)
    return compare.arms(base, list(methods), [0], folder)


def wait(for_: Callable[[], object], process: subprocess.Popen[str] | None = None, seconds: float = 120) -> None:
    began = time.monotonic()
    while not for_():
        assert process is None or process.poll() is None, "the command ended too early"
        assert time.monotonic() - began < seconds
        time.sleep(0.05)


def test_two_jobs_give_what_one_gives(fedkin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "cores", lambda: 2)
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
    plan = arms(tmp_path / "two", 6, fk.methods.local(), fk.methods.fedavg(), fk.methods.fedprox())
    plan[0] = replace(plan[0], experiment=replace(plan[0].experiment, rounds=40))  # long enough to be killed in
    plan[2] = replace(plan[2], experiment=replace(plan[2].experiment, rounds=200))
    said: list[str] = []
    left: list[bool] = []  # whether others had work left when the first was killed: its start may be the slower one

    def listener(arm: Arm, number: int, of: int) -> Callable[[Tick], bool]:
        def heard(tick: Tick) -> bool:
            if arm is plan[0] and tick.round == 3:
                first = min(multiprocessing.active_children(), key=lambda process: process.pid or 0)
                left.append(not (plan[2].folder / "rounds.jsonl").exists())
                os.kill(first.pid or 0, signal.SIGKILL)
            return True

        return heard

    sentence = r"^The process of local seed 0 was killed \(SIGKILL\), perhaps for lack of memory\. All else is saved\.$"
    with pytest.raises(jobs.Killed, match=sentence):
        jobs.play(plan, 2, Loaded(), listener=listener, warn=said.append)
    assert [arm.done for arm in plan] == [False, True, True]
    heard = any("local seed 0 was killed" in text and "The others go on." in text for text in said)
    assert heard or left == [False]
    assert not multiprocessing.active_children()
    assert jobs.play(plan, 2, Loaded(), resume=True), "one arm is left, and played in this process"
    whole = arms(tmp_path / "one", 40, fk.methods.local())
    compare.play(whole, Loaded())
    same_runs(whole[0].folder, plan[0].folder)


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


def test_an_error_is_raised_with_its_traceback_and_the_others_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_part.py").write_text(FAULTY)
    monkeypatch.syspath_prepend(tmp_path)
    import faulty_part

    faulty = replace(fk.methods.fedavg(), name="faulty", select=faulty_part.Faulty(count=3))
    plan = arms(tmp_path / "two", 2000, fk.methods.local(), faulty, fk.methods.fedavg())
    with pytest.raises(RuntimeError, match="Odd: this and that") as caught:
        jobs.play(plan, 2, Loaded(), warn=lambda _: None)
    note = "".join(caught.value.__notes__)
    assert "In the process of faulty seed 0:" in note
    assert "faulty_part.py" in note
    assert "Traceback" in note
    local, _, fedavg = plan
    assert not local.done, "told to stop"
    last = max(local.folder.glob("checkpoints/*.json"))
    assert int(last.stem.removeprefix("round-")) == Run(local.folder).rounds()[-1]["round"]
    assert not fedavg.folder.exists(), "not begun any more"


Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts the command in a session of its own, as a terminal would, and leaves nothing of it behind."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "fedkin.cli", *words]
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
    plan = compare.stored_plan(tmp_path / "here")
    assert plan.jobs == 2
    monkeypatch.setattr(jobs, "play", lambda *_, **__: pytest.fail("the folder is at work"))
    with pytest.raises(fk.BadInput, match=r"Another command is at work in .*here; wait"):
        cli.finish(plan, tmp_path / "here", Loaded(), cli.RunOptions(resume=True))
    with pytest.raises(fk.BadInput, match=r"Another command is at work in .*seed-0; wait"):
        fk.run(plan.arms[0].experiment, plan.arms[0].folder, resume=True, listen=lambda _: False)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert error.count("Finishing this round") == 1
    assert "Stopped and saved. Go on with: fedkin run --resume here" in error
    assert "Traceback" not in error
    for arm in plan.arms:
        last = max(arm.folder.glob("checkpoints/*.json"))
        assert int(last.stem.removeprefix("round-")) == Run(arm.folder).rounds()[-1]["round"]


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
    plan = compare.arms(base, [fk.methods.fedavg(), fk.methods.local()], [0], tmp_path)
    said: list[str] = []
    assert jobs.play(plan, 2, Loaded(), warn=said.append)
    assert all(arm.done for arm in plan)
    assert any("one after another" in sentence for sentence in said)


def test_errors_travel() -> None:
    full = OSError(28, "No space left on device", "here/rounds.jsonl")
    for error in (fk.BadInput("One sentence."), full):
        error.add_note("where")
        other = pickle.loads(pickle.dumps(jobs.sendable(error)))
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


@pytest.mark.parametrize(
    ("model", "given", "number", "threads"),
    [
        ("dnn:1000", None, 1, 4),
        ("dnn:1000", None, 3, 2),
        ("dnn:1000", None, 9, 1),
        ("dnn:1000", 3, 9, 3),
        ("mlr", None, 1, 1),
    ],
)
def test_threads_are_shared_among_jobs(
    monkeypatch: pytest.MonkeyPatch, model: str, given: int | None, number: int, threads: int
) -> None:
    monkeypatch.setattr(compare, "cores", lambda: 8)
    monkeypatch.setattr(play, "default_threads", lambda engine: 1 if engine.network.parameters < 50_000 else 4)
    base = fk.Experiment(fk.methods.fedavg(), fk.Data("digits", clients=6), model, rounds=4, threads=given)
    [settled] = compare.settled([base], Loaded(), number)
    assert settled.threads == threads


def test_a_run_goes_on_with_the_threads_it_began_with(tmp_path: Path) -> None:
    base = fk.Experiment(fk.methods.local(), fk.Data("digits", clients=6), rounds=4, evaluate_every=2)
    fk.run(replace(base, threads=2), tmp_path, listen=lambda tick: tick.round < 2)
    said: list[str] = []
    fk.run(base, tmp_path, resume=True, listen=lambda tick: tick.round < 3, warn=said.append)
    assert Run(tmp_path).experiment["resolved"]["threads"] == 2
    assert said == []
    fk.run(replace(base, threads=1), tmp_path, resume=True, warn=said.append)
    assert said == ["This run was begun with threads 2 and goes on with 1; its last digits may differ."]


def test_a_plan_remembers_its_jobs_and_threads(tmp_path: Path) -> None:
    plan = arms(tmp_path, 3, fk.methods.local(), fk.methods.fedavg())
    compare.write_plan(tmp_path, plan, jobs=3, preset="some")
    stored = compare.stored_plan(tmp_path)
    assert (stored.jobs, stored.preset) == (3, "some")
    assert [arm.experiment.threads for arm in stored.arms] == [1, 1]
    fresh = replace(plan[1].experiment, threads=None, evaluate_every=None)
    then = {arm.experiment.method.name: arm.experiment for arm in stored.arms}
    assert cli.chosen_before(fresh, then) == plan[1].experiment
    assert cli.chosen_before(replace(fresh, threads=2), then).threads == 2


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ""])
def test_a_bad_number_of_jobs_is_one_sentence(text: str) -> None:
    with pytest.raises(fk.BadInput, match=r"^--jobs takes a number of processes from 1, or auto"):
        cli.jobs_of(text, 4, "cpu")


def test_auto_is_one_job_a_core_and_not_more_than_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "cores", lambda: 8)
    assert cli.jobs_of("auto", 3, "cpu") == 3
    assert cli.jobs_of("auto", 30, "cpu") == 8
    assert cli.jobs_of("auto", 30, "cuda") == 1
    assert cli.jobs_of("5", 3, "cpu") == 5
    assert cli.jobs_of(None, 3, "cpu") is None
