"""How files of a run are named, and found by their numbers."""

from __future__ import annotations

from pathlib import Path


def round_name(round: int) -> str:
    return f"round-{round:06d}"


def numbered(folder: Path, start: str, end: str) -> list[Path]:
    """Return the files in a folder that are named by a number between these two texts, the smallest first."""
    found = [path for path in folder.glob(f"{start}*{end}") if path.stem.removeprefix(start).isdecimal()]
    return sorted(found, key=lambda path: int(path.stem.removeprefix(start)))


def round_of(path: Path) -> int:
    return int(path.stem.removeprefix("round-"))


def values_file(metric: str, kind: str) -> str:
    return f"{metric}-{kind.replace('/', '-')}.bin"


def tracked_file(tracker: str) -> str:
    return f"tracked-{tracker}.json"
