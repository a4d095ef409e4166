"""Check sums of what lies in a folder, so that no number is ever read from a damaged file.

`manifest.json` is written last, when a run is done: the size and the digest of each of its files. A file is checked
when it is first read. Checkpoints have check sums of their own, and so have JSON files that are `sealed`. A folder of a
version that wrote none of this is read as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from fedkin.fields import names_a_folder
from fedkin.runs import files
from fedkin.runs.files import Damaged

MANIFEST = "manifest.json"
SEAL = "seal"
APART = ("checkpoints", *files.FOREIGN)  # folders with check sums of their own, or of others
LOOSE = ("profile.json", "report.html", MANIFEST)  # files that may change when a run is done

seen: dict[Path, tuple[object, ...]] = {}  # the time and the size of files that are known to be whole
manifests: dict[Path, tuple[tuple[int, ...], dict[str, list[Any]]]] = {}  # those that were read, and what they say
state = {"verify": True}


def verify(asked: bool) -> None:
    """Let files be checked from now on, or not."""
    state["verify"] = asked
    seen.clear()
    manifests.clear()


def covered(folder: Path) -> Iterator[Path]:
    """Yield the files of a run that its manifest has."""
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in APART and not name.startswith("slots-"))
        for name in sorted(names):
            if not (name.startswith((".", "tracked-")) or name in LOOSE):
                yield Path(above, name)


def write(folder: Path) -> None:
    """Write the manifest of a run that is done."""
    write_some(folder, covered(folder))


def write_some(folder: Path, paths: Iterable[Path]) -> None:
    """Write a manifest of these files in a folder."""
    found = {str(path.relative_to(folder)): [path.stat().st_size, files.checksum(path)] for path in paths}
    files.write_json(folder / MANIFEST, sealed({"files": found}))


def read(folder: Path) -> dict[str, list[Any]]:
    """Return the size and the digest of each file of a run, by name; empty where it has no manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    now, (then, known) = mark(path), manifests.get(path, ((), {}))
    if now == then:
        return known
    found = unsealed(files.read_json(path), path).get("files")
    if not isinstance(found, dict) or not all(map(inside, found)):
        raise Damaged(f"{path} is damaged: it names no files of this folder")
    manifests[path] = now, found
    return found


def inside(name: str) -> bool:
    """Whether this names a file in a folder or in one of its folders, and nothing elsewhere: what is damaged goes."""
    parts = name.split("/")
    return len(parts) <= 2 and all(names_a_folder(part) for part in parts)


def mark(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written: its time, its size and its place."""
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino


def checked(path: Path, folder: Path) -> Path:
    """Return the path of a file of a run, which is read once to see that it is what was written."""
    if not state["verify"]:
        return path
    expected = read(folder).get(str(path.relative_to(folder)))
    if expected is None:
        return path
    if not path.exists():
        raise Damaged(f"{path} is missing")
    now = mark(path)
    if seen.get(path) != now:
        if [path.stat().st_size, files.checksum(path)] != expected:
            raise Damaged(f"{path} is damaged: it is not what was written; go on with --resume to have it made again")
        seen[path] = now
    return path


def read_or_nothing(folder: Path) -> dict[str, list[Any]]:
    """Return what the manifest of a folder says; empty where there is none or a damaged one."""
    try:
        return read(folder)
    except Damaged:
        return {}


def check_complete(folder: Path) -> None:
    """Refuse a run of which a file is gone."""
    gone = [name for name in read(folder) if not (folder / name).exists()] if state["verify"] else []
    if gone:
        raise Damaged(f"{folder / gone[0]} is missing; go on with --resume to have it made again")


def damaged(folder: Path) -> list[str]:
    """Return the files of a run that are not what was written, or are gone."""
    if not state["verify"]:
        return []
    try:
        names = list(read(folder))
    except Damaged:
        return [MANIFEST]
    bad = []
    for name in names:
        try:
            checked(folder / name, folder)
        except (Damaged, OSError):
            bad.append(name)
    return bad


# JSON files that have their own check sum


def sealed(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value with a check sum of the rest in it."""
    return value | {SEAL: seal_of(value)}


def unsealed(value: Any, path: Path) -> dict[str, Any]:
    """Return what was sealed; raises `Damaged` where it is something else. A value without a seal is what it is."""
    if not isinstance(value, dict):
        raise Damaged(f"{path} is damaged: it holds no object")
    found = {name: inner for name, inner in value.items() if name != SEAL}
    if state["verify"] and SEAL in value and value[SEAL] != seal_of(found):
        raise Damaged(f"{path} is damaged: it is not what was written (its check sum differs)")
    return found


def seal_of(value: dict[str, Any]) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
