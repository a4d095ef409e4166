"""How work is timed: all sides in turn, the least time of each, because other load only adds time."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import torch

import fedkin

TURN = 0.25  # seconds for which a side works before the next one has its turn
SIDE = 1024  # rows of the matrices whose product says how fast this core multiplies


@contextmanager
def own_cache() -> Iterator[None]:
    """Let fedkin make anew what it chooses by measuring, in this run, and not remember it: a busy day may have been bad
    for it."""
    before = os.environ.get("FEDKIN_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEDKIN_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("FEDKIN_CACHE")
            if before is not None:
                os.environ["FEDKIN_CACHE"] = before


def seconds(work: Callable[[], Any]) -> float:
    """Return how long a piece of work takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def least(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Let all sides work in turn, and return the least seconds of each. The first turn does not count.

    A side does short work several times in its turn, as a run plays round after round: else it would always begin with
    what the other sides left in the caches.
    """
    turns = [{name: turn(work) for name, work in sides.items()} for _ in range(repeats + 1)]
    return {name: min(one[name] for one in turns[1:]) for name in sides}


def turn(work: Callable[[], Any]) -> float:
    """Return the least seconds of work that is done for a whole turn, at least once."""
    begun, found = perf_counter(), seconds(work)
    while perf_counter() - begun < TURN:
        found = min(found, seconds(work))
    return found


def large_products() -> dict[str, Callable[[], Any]]:
    """Return the ways to a large product of float32 matrices, which has SIDE^3 multiply-adds, by name.

    PyTorch has two libraries for it, and which one is faster depends on the processor.
    """
    a, b = torch.randn(2, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    out = torch.empty(SIDE, SIDE)
    ways: dict[str, Callable[[], Any]] = {"mm": lambda: torch.mm(a, b, out=out)}
    if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        ways["oneDNN"] = lambda: torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
    return ways


def exponent(sizes: list[float], times: list[float]) -> float:
    """Return the p of times ~ sizes^p, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def processor() -> str:
    """Return the name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def busy() -> float:
    """Return how many cores work while this process waits a second; where that is not known, the load."""
    stat = Path("/proc/stat")
    if not stat.is_file():
        return os.getloadavg()[0]

    def ticks() -> tuple[int, int]:
        numbers = [int(word) for word in stat.read_text().splitlines()[0].split()[1:9]]
        return sum(numbers), numbers[3] + numbers[4]  # all, and idle or waiting for a disk

    (total, idle), _, (later, idler) = ticks(), sleep(1), ticks()
    return (os.cpu_count() or 1) * (1 - (idler - idle) / max(1, later - total))


def circumstances() -> dict[str, Any]:
    """Return when and on what was measured, and how many cores were busy with other work just before."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),  # of the last minute, in which other work may have ended
        "busy": round(busy(), 1),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "fedkin": fedkin.__version__},
    }


def append(path: str | Path | None, begun: dict[str, Any], found: dict[str, Any]) -> None:
    """Append what was measured to a history file, one line a measurement; do nothing where no file is given."""
    if path is not None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(begun | found) + "\n")
