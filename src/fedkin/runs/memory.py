"""How much memory the clients' private models may take."""

from __future__ import annotations

import os
import re

from fedkin.core.store import BUDGET
from fedkin.errors import require

UNITS = {"": 1e9, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}  # a number alone is gigabytes


def in_bytes(value: float | str) -> int:
    """Return the bytes that a number of gigabytes, or a text such as 500MB, means."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([KMGT]?B|)\s*", str(value), re.IGNORECASE)
    fits = found is not None and not isinstance(value, bool)
    require(fits, f"memory is a number of gigabytes from 0, or a text such as 500MB or 2GB, not {value!r}.")
    assert found is not None
    return int(float(found[1]) * UNITS[found[2].upper()])


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


def free() -> int:
    """Return how many bytes of memory are free, those included that the system uses for files and gives back."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # no Linux
        known = getattr(os, "sysconf_names", {})
        pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in known else "SC_PHYS_PAGES"
        return int(os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")) if pages in known else 2 * BUDGET


def readable(size: int) -> str:
    """Return so many bytes as --memory takes them, rounded up."""
    unit = next((unit for unit in ("GB", "MB", "KB") if size >= UNITS[unit]), "B")
    return f"{-(-size // int(UNITS[unit] / 10)) / 10:g}{unit}" if unit != "B" else f"{size}B"
