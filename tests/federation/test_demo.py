"""Hospitals that learn together on this machine, through a real server with TLS and keys; and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest
from safetensors.torch import load_file
from survivors import MARK, gone, marked, need_proc

import fedkin as fk

WORDS = ["federation", "demo", "--sites", "2", "--rounds", "1"]


def started(folder: Path, mark: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fedkin.command.cli", *WORDS, "--out", str(folder), *more]
    env = os.environ | {MARK: mark, "HOME": str(folder.parent)}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=env, start_new_session=True, **how)  # type: ignore[call-overload, no-any-return]


def test_hospitals_learn_together(tmp_path: Path) -> None:
    need_proc()
    folder, mark = tmp_path / "demo", uuid4().hex
    demo = started(folder, mark, "--method", "local fedavg")
    said, _ = demo.communicate(timeout=150)
    assert demo.returncode == 0, said
    assert not gone(mark, 5)
    assert "2 of 2 sites are up; fedavg: round 1 of 1, mean accuracy" in said
    assert "alone" in said
    run = fk.load(folder / "runs" / "fedavg" / "seed-0")
    assert list(run.clients()["client"]) == ["cleveland", "hungarian"]
    assert not list(folder.glob("state/link.db*"))
    models = {
        name: sorted(folder.glob(f"sites/{name}/kept/runs/*/model.safetensors")) for name in run.clients()["client"]
    }
    assert [len(found) for found in models.values()] == [2, 2]
    for name, found in models.items():
        others = [path for path in folder.rglob("*") if path.is_file() and folder / "sites" / name not in path.parents]
        for path in found:
            numbers = load_file(path)["1.weight"].numpy().tobytes()
            assert not [other for other in others if numbers in other.read_bytes()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_survives(tmp_path: Path, number: int) -> None:
    """The demo is ended as soon as the sites are up, by Ctrl-C and by a signal that nobody can catch."""
    need_proc()
    mark = uuid4().hex
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, and would be there too
    demo = started(tmp_path / "demo", mark)
    signal.signal(signal.SIGINT, before)
    end = time.monotonic() + 120
    while sum("supernode" in command for command in marked(mark).values()) < 2:
        assert demo.poll() is None, demo.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.2)
    os.kill(demo.pid, number)
    demo.communicate(timeout=30)
    assert demo.returncode == {signal.SIGKILL: -signal.SIGKILL}.get(number, 130)  # type: ignore[call-overload]
    assert not gone(mark, 15)
