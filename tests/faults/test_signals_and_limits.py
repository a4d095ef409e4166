"""What the system does to a command: signals, a full disk, little memory. A sentence is said, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small import same_runs

import fedkin as fk
from fedkin import models

QUICK = ("--data", "digits", "--clients", "4", "--evaluate-every", "50", "--threads", "1")
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
from fedkin.command.cli import main
main()
"""


def called(folder: Path, *words: str, code: str = "import fedkin_start; fedkin_start.main()") -> Any:
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path: Path, process: Any) -> None:
    began = time.monotonic()
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() - began < 120
        time.sleep(0.02)


def test_the_signal_to_end_saves_and_says_how_to_go_on(tmp_path: Path, fedkin: Any) -> None:
    process = called(tmp_path, "run", "fedavg", *QUICK, "--rounds", "100000", "--out", "here")
    wait_for(tmp_path / "here/fedavg/seed-0/rounds.jsonl", process)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Go on with: fedkin run --resume here" in error
    assert "Traceback" not in error
    assert list((tmp_path / "here/fedavg/seed-0/checkpoints").glob("*.json"))


def test_ctrl_c_during_imports_is_no_traceback(tmp_path: Path) -> None:
    code = "import os, sys, threading, signal, fedkin_start\n"
    code += "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\nfedkin_start.main()"
    process = called(tmp_path, "methods", code=code)
    out, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT
    assert (out, error) == ("", "")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_disk_that_is_full_while_tensors_are_saved_is_one_sentence(tmp_path: Path, jobs: str, fedkin: Any) -> None:
    """A limit on the size of files ends a write as a full disk does, here that of the models."""
    words = ("compare", "fedavg", *QUICK, "--model", "dnn:200", "--rounds", "3", "--jobs", jobs, "--out", "here")
    process = called(tmp_path, *words, code=LIMITED.format(size=40_000))
    _, error = process.communicate(timeout=200)
    assert process.returncode == 2
    said = [line for line in error.splitlines() if line.startswith("fedkin: ")]
    assert said == ["fedkin: Cannot write: File too large; free some space and go on with --resume."]
    assert "Traceback" not in error
    if jobs == "1":
        assert fedkin("compare", "--resume", "here").code == 0
        assert fedkin(*words[:-1], "whole").code == 0
        same_runs(tmp_path / "here/fedavg/seed-0", tmp_path / "whole/fedavg/seed-0")


@pytest.mark.parametrize("spec", ["dnn:99999999999999", "mlp:9999999999,9999999999", "dnn:9999999999999999999999"])
def test_a_model_that_fits_no_memory_is_refused_before_it_is_built(spec: str) -> None:
    with pytest.raises(fk.BadInput, match="choose smaller sizes"):
        models.build(spec, (64,), 10, 0)


def test_memory_that_is_not_there_is_a_sentence(fedkin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr("fedkin.comparison.plan.load", full)
    outcome = fedkin("run", "fedavg", *QUICK, "--out", "here")
    assert outcome.code == 2
    assert outcome.err.startswith("fedkin: There is not enough memory")
    assert not os.path.exists("here")
