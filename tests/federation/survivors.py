"""Finds processes by a mark in their environment, also grandchildren of processes that are gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

MARK = "FEDKIN_TEST_MARK"


def need_proc() -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("processes are found by /proc, which this system does not have")


def marked(mark: str) -> dict[int, str]:
    """The processes with this mark, each with its command."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found[int(path.parent.name)] = (path.parent / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found


def gone(mark: str, seconds: float) -> dict[int, str]:
    """The processes with this mark that are still there after so many seconds."""
    end = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.2)
    return left
