"""The version of the layout of a folder, which `format.json` has."""

from __future__ import annotations

from pathlib import Path

from fedkin.errors import require
from fedkin.runs import files
from fedkin.runs.files import Damaged

FORMAT = 1  # folders without format.json have this layout too
SEGMENTED = 2  # the layout of a run whose checkpoints have rows of private models in files of their own


def check_format(path: Path) -> None:
    """Refuse a folder whose layout this version does not know."""
    try:
        stored = files.read_json(path / "format.json") if (path / "format.json").exists() else {"format": FORMAT}
    except Damaged:
        stored = None
    found = stored.get("format") if isinstance(stored, dict) else None
    require(isinstance(found, int), f"{path / 'format.json'} is damaged: it does not say the format of the folder.")
    newer = f"{path} was written by a newer fedkin (format {found}; this one reads up to {SEGMENTED}); update fedkin."
    require(isinstance(found, int) and found <= SEGMENTED, newer)


def write_format(path: Path, found: int = FORMAT) -> None:
    files.write_json(path / "format.json", {"format": found})
