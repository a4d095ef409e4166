"""Checks of the files of a run that is not done: its newest checkpoint says what they began with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedkin.runs import files, manifest, schema
from fedkin.runs.files import Damaged

AGAIN = "it is not what was written; go on with --resume to have it made again"


def checked(path: Path, name: str, checkpoints: Sequence[Path]) -> Path:
    """Return the path of a file of a run, which is read to see that it is what was written up to the newest checkpoint.
    Rounds after that checkpoint have no check sums yet, and where there is no checkpoint nothing has."""
    if manifest.state["verify"]:
        about = newest(checkpoints)
        if name in about.get("digests", {}):
            length = about["lengths"][name]
            there = path.stat().st_size if path.exists() else 0
            if there < length or files.digest_of(path, length).hexdigest() != about["digests"][name]:
                raise Damaged(f"{path} is damaged: {AGAIN}")
        drawn = about.get("drawn") or {}
        if name in drawn and (not path.exists() or files.checksum(path) != drawn[name]):
            raise Damaged(f"{path} is damaged: {AGAIN}")
    return path


def named(checkpoints: Sequence[Path]) -> set[str]:
    """Return the files that the newest checkpoint has check sums of."""
    about = newest(checkpoints) if manifest.state["verify"] else {}
    return {*about.get("digests", {}), *(about.get("drawn") or {})}


def check_there(path: Path, other: Path) -> None:
    """Refuse a file that is gone, if another one, which versions without it did not seal, has a check sum."""
    if manifest.state["verify"] and not path.exists() and manifest.SEAL in files.read_json(other):
        raise Damaged(f"{path} is missing; go on with --resume to have it made again")


def newest(checkpoints: Sequence[Path]) -> dict[str, Any]:
    """Return what the newest readable checkpoint says; empty where there is none."""
    for path in checkpoints:
        try:
            return schema.read(schema.CheckpointSaid, path)
        except (Damaged, OSError):  # the second one: whoever plays the run has just removed it
            continue
    return {}
