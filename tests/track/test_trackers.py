"""Trackers, read back from what they wrote on this machine: every run, every round, and no round twice."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import Until

import fedkin as fk
from fedkin.runs.folder import RunFolder
from fedkin.track import tracker
from fedkin.track.tracker import numbers, parameters

DIGITS = fk.Data("digits", clients=4)


def experiment(rounds: int = 6) -> fk.Experiment:
    return fk.Experiment(fk.methods.fedavg(), DIGITS, rounds=rounds, evaluate_every=2, threads=1)


def stopped_and_resumed(folder: Path, make: Any) -> fk.Run:
    """A run that was stopped after round 3 and went on, each time with a new tracker."""
    fk.run(experiment(), folder, callbacks=[make(), Until(3)])
    return fk.run(experiment(), folder, resume=True, callbacks=[make()])


def killed_and_resumed(folder: Path, make: Any) -> fk.Run:
    """A run whose tracker knows rounds that the newest checkpoint, that of round 3, does not have."""
    fk.run(experiment(), folder, callbacks=[make(), Until(3)])
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "track" not in path.name}
    fk.run(experiment(), folder, resume=True, callbacks=[make(), Until(5)])
    for path in [path for path in folder.rglob("*") if path.is_file() and "track" not in path.name]:
        path.unlink() if path not in kept else path.write_bytes(kept[path])
    return fk.run(experiment(), folder, resume=True, callbacks=[make()])


def scored(run: fk.Run) -> list[tuple[int, float]]:
    return [(line["round"], line["accuracy"]["post"]["macro"]) for line in run.lines if "accuracy" in line]


def events(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


@pytest.mark.parametrize("interrupted", [stopped_and_resumed, killed_and_resumed])
def test_tensorboard_has_every_round_once(tmp_path: Path, interrupted: Any) -> None:
    run = interrupted(tmp_path / "seed-0", lambda: fk.track.TensorBoard(tmp_path / "logs"))
    found = events(tmp_path / "logs" / "fedavg" / "seed-0")
    assert [point.step for point in found.Scalars("cost/uploads")] == [1, 2, 3, 4, 5, 6]
    seen = [(point.step, point.value) for point in found.Scalars("accuracy/post/macro")]
    assert seen == [(round, pytest.approx(value)) for round, value in scored(run)]
    tags = found.Tags()["scalars"]
    assert {"loss/post", "seconds/train_s", "clients/selected", "accuracy/global/micro"} <= set(tags)
    assert "experiment/text_summary" in found.Tags()["tensors"]
    assert "_hparams_/session_start_info" in found.summary_metadata


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A local store of MLflow."""
    import logging

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'm.db'}")
    from mlflow.tracking import MlflowClient

    return MlflowClient()


@pytest.mark.parametrize("interrupted", [stopped_and_resumed, killed_and_resumed])
def test_mlflow_has_every_round_once_in_one_run(tmp_path: Path, store: Any, interrupted: Any) -> None:
    run = interrupted(tmp_path / "seed-0", lambda: fk.track.MLflow(experiment="mine"))
    (found,) = store.search_runs([store.get_experiment_by_name("mine").experiment_id])
    assert found.info.run_name == "fedavg/seed-0"
    assert found.info.status == "FINISHED"
    assert found.data.params["method.train.eta"] == "0.02"
    assert found.data.params["data.name"] == "digits"
    history = store.get_metric_history(found.info.run_id, "cost/uploads")
    assert sorted(point.step for point in history) == [1, 2, 3, 4, 5, 6]
    seen = [(p.step, p.value) for p in store.get_metric_history(found.info.run_id, "accuracy/post/macro")]
    assert sorted(seen) == [(round, pytest.approx(value)) for round, value in scored(run)]


def test_a_comparison_in_processes_is_a_tracker_run_for_each_of_its_runs(tmp_path: Path, store: Any) -> None:
    trackers = [fk.track.TensorBoard(tmp_path / "logs"), fk.track.MLflow()]
    fk.compare(
        ["fedprox@lam=1"], DIGITS, rounds=2, seeds=2, evaluate_every=1, jobs=2, callbacks=trackers, warn=lambda _: None
    )
    names = {f"{method}/seed-{seed}" for method in ("local", "fedprox@train.lam=1") for seed in (0, 1)}
    logs = tmp_path / "logs"
    assert {str(path.parent.relative_to(logs)) for path in logs.rglob("events*")} == names
    runs = store.search_runs([store.get_experiment_by_name("fedkin").experiment_id])
    assert {run.info.run_name for run in runs} == names
    for run in runs:
        assert len(store.get_metric_history(run.info.run_id, "accuracy/post/macro")) == 2


def wandb_records(path: Path) -> Iterator[Any]:
    """The records of an offline run: protocol buffers in a LevelDB log of blocks of 32 kB."""
    from wandb.proto import wandb_internal_pb2

    content, at, whole = path.read_bytes(), 7, b""  # after the header of the file
    while at + 7 <= len(content):
        if 2**15 - at % 2**15 < 7:
            at += 2**15 - at % 2**15
            continue
        length, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        if at + 7 + length > len(content):
            return  # it is being written
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last fragment of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of offline runs: one for all tests, as wandb reads these variables once."""
    folder = tmp_path_factory.mktemp("offline")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("WANDB_DIR", str(folder))
        yield folder


@pytest.mark.parametrize(("interrupted", "stops"), [(stopped_and_resumed, 1), (killed_and_resumed, 2)])
def test_wandb_offline_goes_on_in_the_same_run(tmp_path: Path, offline: Path, interrupted: Any, stops: int) -> None:
    interrupted(tmp_path / "seed-0", fk.track.WandB)
    id = RunFolder(tmp_path / "seed-0").tracked("wandb")["id"]
    began, records = time.monotonic(), list[Any]()
    while time.monotonic() - began < 20 and sum(record.HasField("exit") for record in records) < stops + 1:
        time.sleep(0.1)  # another process writes the files, and may not be done yet
        records = [record for file in offline.glob(f"wandb/*{id}*/*.wandb") for record in wandb_records(file)]
    assert sorted(record.history.step.num for record in records if record.HasField("history")) == [1, 2, 3, 4, 5, 6]
    assert {record.run.display_name for record in records if record.HasField("run")} == {"fedavg/seed-0"}


class Broken(fk.track.Tracker):
    extra = "broken"

    def open(self, run: Any, first: int, experiment: dict[str, Any]) -> tracker.Writer:
        raise ConnectionError("nobody answers")


def test_a_tracker_that_fails_says_so_once_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert fk.run(experiment(3), callbacks=[Broken()]).finished
    assert capsys.readouterr().err == "Tracking with broken ends here: nobody answers. The run goes on.\n"


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_extra_is_a_sentence_before_anything_runs(
    fedkin: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        sys.modules, {"tensorboard": "torch.utils.tensorboard", "mlflow": "mlflow.tracking"}.get(name, name), None
    )
    outcome = fedkin("run", "fedavg", "--data", "digits", "--track", name, "--out", "here")
    assert outcome.code == 2
    assert f"pip install 'fedkin[{name}]'" in outcome.err
    assert not list(tmp_path.iterdir())


def test_an_unknown_tracker_is_a_sentence(fedkin: Any, tmp_path: Path) -> None:
    outcome = fedkin("run", "fedavg", "--data", "digits", "--track", "tensorbord", "--out", "here")
    assert outcome.code == 2
    assert "did you mean tensorboard?" in outcome.err
    assert not list(tmp_path.iterdir())


def test_numbers_and_parameters_are_named_by_their_paths() -> None:
    line = {"round": 3, "selected": 4, "uploads": 2.0, "dropped": [1, 2], "seconds": {"train_s": 0.5}}
    line |= {"accuracy": {"post/validation": {"macro": None, "micro": 0.5}}, "select": {"skew": float("nan")}}
    assert numbers(line) == {
        "clients/selected": 4.0,
        "cost/uploads": 2.0,
        "clients/dropped": 2.0,
        "seconds/train_s": 0.5,
        "accuracy/post/validation/micro": 0.5,
    }
    assert parameters({"a": {"b": None, "c": [1, 2]}, "d": True}) == {"a.b": "null", "a.c": "[1, 2]", "d": True}
