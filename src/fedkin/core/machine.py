"""What the machine has: free memory, and amounts of it in words."""

from __future__ import annotations

import os

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


def readable(size: int) -> str:
    """Return so many bytes as --memory takes them, rounded up."""
    unit = next((unit for unit in ("TB", "GB", "MB", "KB") if size >= UNITS[unit]), "B")
    return f"{-(-size // int(UNITS[unit] / 10)) / 10:g}{unit}" if unit != "B" else f"{size}B"
