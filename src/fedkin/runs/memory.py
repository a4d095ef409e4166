"""How much memory the clients' private models may take, and how much a run takes at its peak."""

from __future__ import annotations

import re
from math import isfinite

from fedkin.core import tree
from fedkin.core.machine import UNITS, free, readable
from fedkin.core.store import BUDGET
from fedkin.errors import require
from fedkin.messages import Task
from fedkin.parts import Method

PROGRAM = 400_000_000  # bytes of Python, torch and the like
OWN, COMMON = 7, 2  # models of each client of a round at the peak: where each has its own, and where one is for all
CARRIED = 3  # models of each client that is trained just now


def in_bytes(value: float | str) -> int:
    """Return the bytes that a number of gigabytes, or a text such as 500MB, means."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([KMGT]?B|)\s*", str(value), re.IGNORECASE)
    fits = found is not None and not isinstance(value, bool)
    require(fits, f"memory is a number of gigabytes from 0, or a text such as 500MB or 2GB, not {value!r}.")
    assert found is not None
    size = float(found[1]) * UNITS[found[2].upper()]
    require(isfinite(size), f"memory is a number of gigabytes that some machine has, not {value!r}.")
    return int(size)


def budget(value: float | str | None, chunk: int, size: int) -> int:
    """Return how many bytes of private models are held in memory: as asked or, by default, half of what is free but no
    more than 500 MB. What lies in files beyond that is kept in free memory by the system, as long as nobody needs it.

    `size` is what one client's private models take. A budget that is not enough for one chunk of clients is refused,
    but for 0, with which all lie in files.
    """
    if value is None:
        return max(chunk * size, min(free() // 2, BUDGET))
    given, need = in_bytes(value), chunk * size
    said = f"--memory {value} is too little for {chunk:,} clients at once, whose private models take {readable(need)}"
    require(given == 0 or given >= need, f"{said}; give --memory {readable(need)} or more, or a smaller --chunk.")
    return given


def peak(method: Method, task: Task, chunk: int, held: int, samples: int) -> int:
    """Return about how many bytes a run takes at its peak. `held`: of private models; `samples`: of the data."""
    size = tree.size([task.model])[1]
    everyone = method.trains == "everyone" or method.receives == "everyone"
    m = task.n if everyone else max(1, round(method.select.share(task) * task.n))
    models = OWN if method.collaborate.gives.own_model else COMMON
    private = min(held, task.n * size) if method.collaborate.gives.own_model else 0
    return PROGRAM + samples + (models * m + CARRIED * min(chunk, m)) * size + private


def advice(method: Method, task: Task, chunk: int, held: int, samples: int) -> list[str]:
    """Return a sentence where a run would hardly fit into the memory that is free."""
    need, there = peak(method, task, chunk, held, samples), free()
    if need <= there:
        return []
    less = "take fewer clients a round (--set select.count=10), a smaller model or a smaller --chunk"
    return [f"{method.name} takes about {readable(need)} at its peak, and {readable(there)} are free; {less}."]
