"""What memory the machine has, how much of it this process takes, and amounts of it in words."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress

UNITS = {"": 1e9, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}  # a number alone is gigabytes
UNKNOWN = 1_000_000_000  # bytes that count as free where the system does not say it


def free() -> int:
    """Return how many bytes of memory are free, those included that the system uses for files and gives back."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # no Linux
        known = getattr(os, "sysconf_names", {})
        pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in known else "SC_PHYS_PAGES"
        return int(os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")) if pages in known else UNKNOWN


def total() -> int:
    """Return how many bytes of memory the machine has; free ones where the system does not say it."""
    known = getattr(os, "sysconf_names", {})
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if "SC_PHYS_PAGES" in known else free()


def resident() -> int:
    """Return how many bytes of memory this process takes now; at its peak where the system does not say it."""
    return _status("VmRSS") or peak()


def peak() -> int:
    """Return the most bytes of memory that this process has taken since `forget_peak`, or since its start."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Let the peak begin anew, where the system allows it: several runs may be played in one process."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _status(name: str) -> int:
    """Return a number of bytes that Linux says of this process; 0 where it says none."""
    with suppress(OSError, ValueError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0


def readable(size: int) -> str:
    """Return so many bytes as --memory takes them, rounded up."""
    unit = next((unit for unit in ("TB", "GB", "MB", "KB") if size >= UNITS[unit]), "B")
    return f"{-(-size // int(UNITS[unit] / 10)) / 10:g}{unit}" if unit != "B" else f"{size}B"
