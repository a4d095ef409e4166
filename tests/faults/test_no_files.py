"""A pipe, a device or a folder where a file should be: nobody waits for it, and nobody replaces it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fedkin as fk
from fedkin.runs import files, schema
from fedkin.runs.files import Damaged
from fedkin.runs.folder import RunFolder

QUICK = ("--data", "synthetic", "--clients", "3", "--rounds", "2")
COMMANDS = [("report", "here"), ("run", "--resume", "here"), ("export", "here", "-o", "model")]
READERS = {
    "json": files.read_json,
    "tensors": files.read_tensors,
    "row": lambda path: files.read_row(path, "personal/", 0),
    "check sum": files.checksum,
    "digest": lambda path: files.digest_of(path, 5),
    "run": lambda path: RunFolder(path.parent).whole(path.name),
}


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """Whoever waits for a pipe fails after a while."""

    def late(*_: Any) -> None:
        raise TimeoutError("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("reader", READERS)
def test_nobody_waits_for_a_pipe(tmp_path: Path, reader: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Damaged, match="it is no file"):
        READERS[reader](tmp_path / "pipe")


def test_an_experiment_is_not_read_from_a_pipe(fedkin: Any) -> None:
    os.mkfifo("pipe.json")
    assert "pipe.json is no file" in fedkin("run", "pipe.json").err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["plan.json", "fedavg/seed-0/experiment.json", "fedavg/seed-0/models.safetensors"])
def test_a_run_with_a_pipe_is_refused_or_made_again(fedkin: Any, command: tuple[str, ...], name: str) -> None:
    assert fedkin("run", "fedavg", *QUICK, "--out", "here").code == 0
    Path("here", name).unlink()
    os.mkfifo(Path("here", name))
    assert fedkin(*command).code in (0, 2)


def test_pipes_and_folders_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(fk.BadInput, match="is no file, so it is not replaced"):
            files.write(tmp_path / name, b"new")
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


TIME = dict.fromkeys(("train_s", "mix_s", "evaluate_s", "total_s"), 1.0)
CHECKPOINT: dict[str, Any] = {"round": 1, "lengths": {"rounds.jsonl": 5}, "time": TIME, "checksum": "0"}


@pytest.mark.parametrize(
    "change",
    [{"round": "1"}, {"lengths": {"../x": 5}}, {"lengths": {"x": -1}}, {"time": 5}, {"drawn": {"kin/x": None}}],
)
def test_a_checkpoint_of_another_shape_is_damaged(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "round-000001.json"
    files.write_json(path, CHECKPOINT)
    assert schema.read(schema.CheckpointSaid, path) == CHECKPOINT
    files.write_json(path, CHECKPOINT | change)
    with pytest.raises(Damaged, match=r"round-000001\.json is damaged"):
        RunFolder(tmp_path).read_checkpoint(path)


def full(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_command_that_could_not_begin_is_not_in_the_way_of_the_next(fedkin: Any) -> None:
    for words in (("run", "fedavg", *QUICK), ("tune", "fedavg", *QUICK, "--trials", "1")):
        folder = Path(words[0])
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(files, "settle", full)
            assert "No space left" in fedkin(*words, "--out", words[0]).err
        assert os.listdir(folder) in ([], [files.LOCK])
        assert fedkin(*words, "--out", words[0]).code == 0
        assert "exists already" in fedkin(*words, "--out", words[0]).err


def test_half_a_federation_is_not_left(fedkin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedkin.federation.certificates.certify", full)
    assert "No space left" in fedkin("federation", "init", "study", "--sites", "a,b").err
    assert not Path("study").exists()
