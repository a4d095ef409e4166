"""Commands that are stopped, broken off or resumed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small import Until, forget_checksums

from fedkin.command import play
from fedkin.runs.recorder import Recorder
from fedkin.runs.run import Run

QUICK = ["--data", "digits", "--clients", "6", "--rounds", "4", "--evaluate-every", "2"]


def test_resume_with_more_rounds_goes_on_and_with_fewer_is_refused(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    assert fedkin("run", "here", "--resume", "--rounds", "8").code == 0
    assert Run(tmp_path / "here" / "fedavg" / "seed-0").summary["rounds"] == 8
    fedkin("run", "fedavg", *QUICK[:-4], "--rounds", "8", "--evaluate-every", "2", "--out", "whole")
    one, two = (Run(tmp_path / name / "fedavg" / "seed-0").summary for name in ("here", "whole"))
    assert one["accuracy"] == two["accuracy"]


def test_resume_may_say_another_chunk_and_other_threads(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    outcome = fedkin("run", "here", "--resume", "--rounds", "6", "--chunk", "2", "--threads", "1")
    assert outcome.code == 0, outcome.err
    assert "goes on with 2; its last digits may differ" in outcome.err


def test_resume_with_other_versions_warns(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    forget_checksums(tmp_path / "here")
    path = tmp_path / "here" / "fedavg" / "seed-0" / "experiment.json"
    stored = json.loads(path.read_text())
    stored["resolved"]["versions"]["torch"] = "1.0"
    path.write_text(json.dumps(stored))
    outcome = fedkin("run", "here", "--resume", "--rounds", "6")
    assert outcome.code == 0
    assert "torch 1.0" in outcome.err


def test_a_full_disk_is_one_sentence_and_the_run_can_go_on(
    fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Recorder.append
    count = 0

    def full(self: Recorder, name: str, content: bytes) -> None:
        nonlocal count
        count += 1
        if count > 7:
            raise OSError(28, "No space left on device", str(self.folder.path / name))
        whole(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "append", full)
        outcome = fedkin("run", "fedavg", *QUICK, "--out", "here")
    assert outcome.code == 2
    assert "No space" in outcome.err
    assert fedkin("run", "here", "--resume").code == 0
    assert fedkin("run", "fedavg", *QUICK, "--out", "whole").code == 0
    one, two = (Run(tmp_path / name / "fedavg" / "seed-0").summary for name in ("here", "whole"))
    assert one["accuracy"] == two["accuracy"]


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = ["run", "local", "--data", "digits", "--rounds", "100000", "--out", "here"]
    command = [shutil.which("fedkin") or str(Path(sys.executable).parent / "fedkin"), *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    began = time.monotonic()
    while not (tmp_path / "here" / "local" / "seed-0" / "rounds.jsonl").exists():
        assert process.poll() is None
        assert time.monotonic() - began < 60
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Go on with: fedkin run --resume here" in error
    assert list((tmp_path / "here" / "local" / "seed-0" / "checkpoints").glob("*.json"))


def test_resume_says_what_differs_and_changes_nothing(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    before = {p: p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()}
    for words, sentence in [
        (["run", "fedavg", *QUICK, "--out", "here", "--resume", "--set", "train.eta=0.5"], "method.train.eta is 0.02"),
        (["run", "fedavg", *QUICK, "--out", "here", "--resume", "--seeds", "5,6"], "holds fedavg seed 0, not"),
        (["run", "local", *QUICK, "--out", "here", "--resume"], "holds fedavg seed 0, not local"),
        (["run", "here", "--resume", "--model", "dnn:3", "--set", "train.eta=9"], "leave --model, --set out"),
        (["run", "here", "--resume", "--rounds", "2"], "ask for more"),
        (["run", "nowhere", "--resume"], "no folder nowhere"),
    ]:
        outcome = fedkin(*words)
        assert outcome.code == 2, outcome.out
        assert sentence in outcome.err
    assert {p: p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()} == before


def test_a_stopped_extension_is_not_forgotten(fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fedkin("compare", "fedavg", *QUICK, "--out", "here")
    watching = play.Progress.watching

    def stops(self, one, number, of):  # the second run is stopped two rounds after it went on
        return Until(6) if number == 2 else watching(self, one, number, of)

    with monkeypatch.context() as patch:
        patch.setattr(play.Progress, "watching", stops)
        assert fedkin("run", "here", "--resume", "--rounds", "10").code == 130
    assert fedkin("run", "here", "--resume").code == 0
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert [method["rounds"] for method in summary["methods"].values()] == [10, 10]
    assert Run(tmp_path / "here" / "fedavg" / "seed-0").experiment["rounds"] == 10


def test_resume_notices_other_data(fedkin, tmp_path: Path) -> None:
    rows = [f"{i % 3},{i % 2},{i * 0.1}" for i in range(60)]
    (tmp_path / "own.csv").write_text("client,label,x\n" + "\n".join(rows) + "\n")
    assert fedkin("run", "local", "--data", "own.csv", "--rounds", "2", "--out", "here").code == 0
    (tmp_path / "own.csv").write_text("client,label,x\n" + "\n".join(rows[:-1]) + "\n2,1,7.7\n")
    outcome = fedkin("run", "here", "--resume", "--rounds", "4")
    assert outcome.code == 2
    assert "data are not those" in outcome.err


@pytest.mark.parametrize("content", ['{"arms": 5}', "[]", '{"arms": []}', "{"])
def test_a_damaged_plan_is_one_sentence(fedkin, tmp_path: Path, content: str) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    (tmp_path / "here" / "plan.json").write_text(content)
    outcome = fedkin("run", "here", "--resume")
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
