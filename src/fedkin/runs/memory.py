"""How much memory the clients' private models may take, how much a run takes at its peak, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from fedkin.core.machine import UNITS, free, readable, resident
from fedkin.core.store import BUDGET, WHOLE
from fedkin.engines.team import HELD as ON_THEIR_WAY
from fedkin.errors import require
from fedkin.evaluate import BLOCK, HELD
from fedkin.parts import Method

PROGRAM = 40_000_000  # bytes that libraries take when they are first used
DECLARED, LIFTED = 4, 12  # models of a client in training: where its steps are declared (`Descent`), and else
MADE, READ, TRAINED = 3, 2, 1  # copies of models that are scored: made of others, read from slots, or just trained
MUCH = 1.5  # times the free memory that a run is refused for; estimates are not that far off (docs/reliability.md)


@dataclass(frozen=True)
class Size:
    """What the memory of a run depends on, all but its method."""

    model: int  # bytes of one model
    slots: int  # bytes of one client's private models
    n: int  # clients
    m: int  # clients that are selected in a round
    reached: int  # clients that are sent something in it
    trained: int  # clients that train in it
    scored: int  # clients that are scored
    chunk: int = 1  # clients that are trained at once
    held: int = 0  # bytes of private models that are held in memory
    activations: int = 0  # bytes of one client's forward pass
    planned: int = 0  # bytes that say which samples a client uses in a round
    copied: int = 0  # bytes of samples that are copied, because they become numbers of another kind
    threads: int = 1


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


def needed(method: Method, size: Size) -> dict[str, int]:
    """Return about how many bytes a run takes beyond what the process has before it, by what takes them.

    A round is at its peak while its replies are judged or, after it, while models are scored; what clients were sent
    and have replied is there in both. When a run ends, all that are stored are there twice.
    """
    gives, train = method.collaborate.gives, method.train
    further = len(gives.models)
    down = (gives.own_model + method.needs.current + gives.remembered) * size.reached if gives.replies else 0
    up = (1 + further) * size.m if gives.replies else 0
    one = TRAINED + 2 * further if method.finetunes else MADE if train.has_personal_model else READ - gives.own_model
    of = train.personal_size
    scored = one * of * min(size.scored, BLOCK, max(1, HELD // max(1, of * size.model)))
    stored = 0 if method.finetunes or size.n * size.model > WHOLE else 2 * of * size.n
    after = max(scored, method.keep.copies * size.m, stored - down - up)
    steps = max(DECLARED, 2 * len(train.descents())) if train.steps_by_descent else LIFTED
    cores = (size.threads - 1) * min(ON_THEIR_WAY, size.trained * (size.model + size.slots))
    trained = min(size.chunk, size.trained)
    return {
        "private": min(size.held, size.n * size.slots),
        "round": (down + up) * size.model,
        "training": trained * (steps * size.model + 2 * size.activations) + cores,
        "steps": trained * size.planned,
        "server": gives.remembered * size.n * size.model,
        "scoring": after * size.model,
        "data": size.copied + PROGRAM,
    }


ADVICE = {
    "private": "less --memory for private models",
    "round": "fewer clients a round (--set select.count=10) or fewer --clients",
    "training": "a smaller --chunk",
    "steps": "fewer steps or epochs (--set train.steps=10)",
    "server": "fewer --clients",
    "scoring": "fewer clients that are scored (--score-clients 100)",
    "data": "fewer --samples",
}


def estimated(need: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes of this process at its peak, if a run needs so much beyond what it has now; none where nobody
    knows what it needs."""
    return {"estimated": resident() + sum(need.values())} if need else {}


def check_together(needs: Sequence[Mapping[str, int]], jobs: int) -> None:
    """Refuse so many runs side by side that they would not fit into memory together."""
    most = sorted((sum(need.values()) for need in needs), reverse=True)[:1] * jobs
    said = f"{jobs} runs side by side need about {readable(sum(most))}, and {readable(free())} are free"
    require(jobs == 1 or sum(most) <= MUCH * free(), f"{said}; take fewer --jobs.")


def words(found: Mapping[str, float]) -> str:
    """Return what a summary says of memory: measured and, where it was estimated, what was expected."""
    if "measured" not in found:
        return ""
    expected = f", {readable(int(found['estimated']))} expected" if "estimated" in found else ""
    return f"{readable(int(found['measured']))} of memory{expected}"


def advice(name: str, need: Mapping[str, int]) -> list[str]:
    """Return a sentence where a run would hardly fit into the memory that is free; refuse one that never would."""
    total, there = sum(need.values()), free()
    if total <= there:
        return []
    most = [cause for cause in sorted(ADVICE, key=lambda cause: -need[cause]) if need[cause] > total / 5]
    what = f"{name} needs about {readable(total)} at its peak, and {readable(there)} are free"
    said = f"{what}; take a smaller model, {', or '.join(ADVICE[cause] for cause in most[:2])}."
    require(total <= MUCH * there, said)
    return [said]
