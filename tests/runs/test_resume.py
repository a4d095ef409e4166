"""A run that is killed at any moment and resumed ends exactly as one that was not."""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import signal
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
import torch
from small import Until, forget_checksums, same_runs, without_times

import fedkin as fk
from fedkin.core.rows import Sealed
from fedkin.runs import files
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.folder import RunFolder
from fedkin.runs.run import Run
from fedkin.train import MAML, TwoStreams

# Processes are forked from one that has imported everything, which takes seconds.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["fedkin", "sklearn.datasets", "pytest"])


class Dies(fk.Callback):
    """The kernel ends the process this many seconds of its own work after a round: no handler runs, nothing is tidied.

    Seconds of work, not of the clock, so that a process on a fast or a loaded machine dies at about the same place.
    """

    def __init__(self, after_round: int, seconds: float) -> None:
        self.after_round, self.seconds = after_round, seconds

    def recorded(self, record: fk.Record) -> bool:
        if record.round == self.after_round:
            dies_after(self.seconds)
        return True


def dies_after(seconds: float) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def played(folder: Path, method: str, how: str, dies: Dies | None = None) -> None:
    """A checkpoint after every round, so that kills fall into writes as well as into rounds."""
    torch.set_num_threads(1)
    methods = {"local": fk.methods.local, "fedprox": lambda: fk.methods.fedprox(lam=1.0)}
    chosen = methods.get(method, lambda: fk.methods.ditto(count=4, steps=5))()
    data, few = fk.Data("digits", clients=10), {"memory": "10KB", "chunk": 2} if method == "rows in files" else {}
    experiment = fk.Experiment(chosen, data, "mlr", rounds=40, evaluate_every=3, threads=1, **few)  # type: ignore[arg-type]
    if dies and not dies.after_round:
        dies_after(dies.seconds)
    fk.run(experiment, folder, resume=how == "resume", checkpoint_seconds=0.0, callbacks=[dies] if dies else [])


def start(folder: Path, method: str, how: str, dies: Dies | None = None) -> ForkServerProcess:
    process = FORKED.Process(target=played, args=(folder, method, how, dies))
    process.start()
    return process


def ended(process: ForkServerProcess) -> None:
    process.join(120)
    assert process.exitcode == 0


def assert_same(one: Path, other: Path) -> None:
    same_runs(one, other)
    left, right = (load_checkpoint(RunFolder(folder), []) for folder in (one, other))
    assert left is not None
    assert right is not None
    assert left.state.round == right.state.round
    if isinstance(left.private, Sealed):
        return  # which file has a row depends on where the run was killed; the models are the same
    flat = files.read_tensors(next((one / "checkpoints").glob("*40.safetensors")))
    same = files.read_tensors(next((other / "checkpoints").glob("*40.safetensors")))
    assert flat.keys() == same.keys()
    assert all(torch.equal(flat[name], same[name]) for name in flat)


@pytest.mark.parametrize("method", ["local", "fedprox", "rows in files"])
def test_killed_at_random_moments_and_resumed_equals_uninterrupted(tmp_path: Path, method: str) -> None:
    ended(start(tmp_path / "whole", method, "new"))
    moments, broken, how = random.Random(method), tmp_path / "broken", "new"
    for round in (2, 8, 15, 23, 31):
        process = start(broken, method, how, Dies(round, moments.uniform(0.0001, 0.01)))
        process.join(120)
        assert process.exitcode == -signal.SIGPROF
        how = "resume"
    anywhere = start(broken, method, how, Dies(0, moments.uniform(0.0001, 0.2)))
    anywhere.join(120)
    assert anywhere.exitcode in (0, -signal.SIGPROF)
    ended(start(broken, method, how))
    assert_same(tmp_path / "whole", broken)


def small(rounds: int, method: fk.Method | None = None) -> fk.Experiment:
    chosen = method or fk.methods.fedavg(count=4)
    return fk.Experiment(chosen, fk.Data("digits", clients=8), rounds=rounds, evaluate_every=2, threads=1)


def test_a_run_stopped_by_its_listener_saves_and_goes_on(tmp_path: Path) -> None:
    whole = fk.run(small(40), tmp_path / "whole")
    part = fk.run(small(40), tmp_path / "part", callbacks=[Until(17)])
    assert not part.finished
    assert not (tmp_path / "part" / "summary.json").exists()
    rest = fk.run(small(40), tmp_path / "part", resume=True)
    assert without_times(rest.summary) == without_times(whole.summary)
    assert_same(tmp_path / "whole", tmp_path / "part")


def test_more_rounds_continue_as_if_asked_for_from_the_start(tmp_path: Path) -> None:
    fk.run(small(20), tmp_path / "part")
    fk.run(small(40), tmp_path / "part", resume=True)
    fk.run(small(40), tmp_path / "whole")
    assert Run(tmp_path / "part").summary["accuracy"] == Run(tmp_path / "whole").summary["accuracy"]
    assert (tmp_path / "part" / "models.safetensors").read_bytes() == (
        tmp_path / "whole" / "models.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("harm", ["cut", "flip", "json", "gone"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(tmp_path: Path, harm: str) -> None:
    fk.run(small(40), tmp_path / "whole", checkpoint_seconds=0.0)
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    newest = tmp_path / "part" / "checkpoints" / "round-000040.safetensors"
    if harm == "cut":
        newest.write_bytes(newest.read_bytes()[:-100])
    elif harm == "flip":
        content = bytearray(newest.read_bytes())
        content[-3] ^= 1
        newest.write_bytes(bytes(content))
    elif harm == "json":
        newest.with_suffix(".json").write_text("{")
    else:
        newest.unlink()
    said: list[str] = []
    fk.run(small(40), tmp_path / "part", resume=True, warn=said.append)
    assert any("round-000040 is damaged" in sentence for sentence in said)
    assert_same(tmp_path / "whole", tmp_path / "part")


def test_all_checkpoints_damaged_is_played_again_and_ends_the_same(tmp_path: Path) -> None:
    fk.run(small(10), tmp_path / "whole")
    fk.run(small(10), tmp_path / "part", checkpoint_seconds=0.0)
    for path in (tmp_path / "part" / "checkpoints").glob("*.safetensors"):
        path.write_bytes(b"no")
    said: list[str] = []
    fk.run(small(10), tmp_path / "part", resume=True, warn=said.append)
    assert any("going back to round 1" in sentence for sentence in said)
    same_runs(tmp_path / "whole", tmp_path / "part")


def test_slots_in_files_resume_like_slots_in_memory(tmp_path: Path) -> None:
    inside = small(12, fk.methods.local())
    outside = replace(inside, memory=0.0)
    whole = fk.run(inside, tmp_path / "whole")
    part = fk.run(outside, tmp_path / "part", callbacks=[Until(5)])
    assert not part.finished
    rest = fk.run(outside, tmp_path / "part", resume=True)
    assert rest.summary["accuracy"] == whole.summary["accuracy"]
    assert all(torch.equal(rest.models["personal"][name], value) for name, value in whole.models["personal"].items())
    assert not list((tmp_path / "part").glob("slots-*"))


def test_a_finished_run_can_be_resumed_and_stays_as_it_was(tmp_path: Path) -> None:
    first = fk.run(small(6), tmp_path / "run")
    again = fk.run(small(6), tmp_path / "run", resume=True)
    assert without_times(first.summary) == without_times(again.summary)


def test_written_files_are_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary.json"
    files.write_json(path, {"old": 1})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "settle", full)
    with pytest.raises(OSError, match="No space"):
        files.write_json(path, {"new": 2})
    assert json.loads(path.read_text()) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


def test_a_folder_that_holds_a_run_is_not_run_into_again(tmp_path: Path) -> None:
    fk.run(small(4), tmp_path / "run")
    before = (tmp_path / "run" / "rounds.jsonl").read_bytes()
    with pytest.raises(fk.BadInput, match="holds a run already"):
        fk.run(small(4), tmp_path / "run")
    with pytest.raises(fk.BadInput, match=r"seed is 0 there and 5 here"):
        fk.run(replace(small(4), seed=5), tmp_path / "run", resume=True)
    with pytest.raises(fk.BadInput, match=r"another experiment"):
        fk.run(small(4, fk.methods.local()), tmp_path / "run", resume=True)
    with pytest.raises(fk.BadInput, match="not a run"):
        fk.run(small(4), tmp_path / "nowhere", resume=True)
    assert (tmp_path / "run" / "rounds.jsonl").read_bytes() == before
    assert (tmp_path / "run" / "summary.json").exists()


def test_an_off_cadence_last_round_does_not_count_once_the_run_is_longer(tmp_path: Path) -> None:
    part, whole = (replace(small(rounds), evaluate_every=3) for rounds in (5, 9))
    fk.run(part, tmp_path / "part")
    longer = fk.run(whole, tmp_path / "part", resume=True)
    straight = fk.run(whole, tmp_path / "whole")
    assert longer.summary["accuracy"] == straight.summary["accuracy"]


MORE_STATE = {
    "a step that falls with the rounds": lambda: fk.methods.fedacs(p=0.3, alpha=0.9, gamma=1.0),
    "streams of a step": lambda: replace(fk.methods.ditto(), train=TwoStreams(steps=None, epochs=2)),
    "three streams of a step": lambda: replace(
        fk.methods.perfedavg(), train=MAML(order="HF", steps=None, epochs=1, sampler="cyclic")
    ),
    "fitted labels": lambda: fk.methods.pfedre(labels="learned", iterations=3),
    "where clients go": lambda: fk.methods.feddwa(k=2, eta=0.1),
    "clusters": lambda: fk.methods.cfl(still=50.0, apart=1e-6, first=1, eta=0.1),
    "heads at home": lambda: fk.methods.fedrep(count=3, eta=0.1),
    "a head that stays": lambda: fk.methods.fedbabu(count=3, eta=0.1),
    "models to choose from": lambda: fk.methods.ifca(k=3, count=3, eta=0.1),
    "weights of a blend": lambda: fk.methods.fedala(count=4, eta=0.1),
    "models of kin": lambda: fk.methods.kin(count=4, eta=0.1),
    "models on offer": lambda: fk.methods.fedfomo(models=2, count=4, eta=0.1),
}


@pytest.mark.parametrize("name", MORE_STATE)
def test_in_two_parts_and_in_one(tmp_path: Path, name: str) -> None:
    """What a method counts or draws by the round goes on where it was."""
    data = fk.Data("digits", clients=5)
    method = MORE_STATE[name]()
    model, known = "dnn:3" if method.needs.layers else "mlr", method.collaborate.gives.start
    experiment = fk.Experiment(method, data, model, rounds=4, evaluate_every=1, gradient_norm=known)
    fk.run(experiment, tmp_path / "whole")
    fk.run(replace(experiment, rounds=2), tmp_path / "parts")
    fk.run(experiment, tmp_path / "parts", resume=True)
    same_runs(tmp_path / "whole", tmp_path / "parts")


def test_a_run_of_a_version_that_knew_fewer_fields_goes_on(tmp_path: Path) -> None:
    """What its experiment.json does not say is what everybody did then: the default."""
    experiment = fk.Experiment(fk.methods.fedavg(count=2), fk.Data("digits", clients=3), rounds=2)
    fk.run(experiment, tmp_path / "old")
    forget_checksums(tmp_path / "old")
    path = tmp_path / "old" / "experiment.json"
    about = files.read_json(path)
    del about["heterogeneity"], about["gradient_norm"], about["score"]
    files.write_json(path, about)
    assert fk.run(replace(experiment, rounds=4), tmp_path / "old", resume=True).summary["rounds"] == 4
    other = replace(experiment, rounds=4, heterogeneity=True)
    with pytest.raises(fk.BadInput, match="heterogeneity"):
        fk.run(other, tmp_path / "old", resume=True)
