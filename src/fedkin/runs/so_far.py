"""Checks of the files of a run that is not done: its newest checkpoint says what they began with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedkin.runs import files, manifest, schema
from fedkin.runs.files import Damaged

AGAIN = "go on with --resume to have it made again"


def checked(path: Path, name: str, checkpoints: Sequence[Path]) -> Path:
    """Return the path of a file of a run, which is read to see that it is what was written up to the newest checkpoint.
    Rounds after that checkpoint have no check sums yet, and where there is no checkpoint nothing has."""
    about = newest(checkpoints)
    expected = sums(about).get(name)
    if expected is None:
        return path
    if not path.exists():
        raise Damaged(f"{path} is missing; {AGAIN}")
    now = (expected, *manifest.mark(path))
    if manifest.seen.get(path) != now:
        size = path.stat().st_size
        length = about["lengths"].get(name, size)  # pictures do not grow
        if size < length or files.digest_of(path, length).hexdigest() != expected:
            raise Damaged(f"{path} is damaged: it is not what was written; {AGAIN}")
        manifest.seen[path] = now
    return path


def named(checkpoints: Sequence[Path]) -> set[str]:
    """Return the files that the newest checkpoint has check sums of."""
    return set(sums(newest(checkpoints)))


def sums(about: dict[str, Any]) -> dict[str, str]:
    """Return the check sums that a checkpoint has, by file: of what was appended until then, and of pictures."""
    return {**about.get("digests", {}), **(about.get("drawn") or {})}


def newest(checkpoints: Sequence[Path]) -> dict[str, Any]:
    """Return what the newest readable checkpoint says; empty where there is none, or files are not to be checked."""
    for path in checkpoints if manifest.state["verify"] else ():
        try:
            return schema.read(schema.CheckpointSaid, path)
        except (Damaged, OSError):  # the second one: whoever plays the run has just removed it
            continue
    return {}


def check_there(path: Path, other: Path) -> None:
    """Refuse a run that has lost a file. Every version that seals `other` writes the file too; older ones did not."""
    if manifest.state["verify"] and not path.exists() and manifest.SEAL in files.read_json(other):
        raise Damaged(f"{path} is missing; {AGAIN}")
