"""Stores decoded datasets as safetensors files in the user's cache folder, so that decoding is done only once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

FORMAT = 2  # part of every file's name: a higher number makes all older files unused

Stored = tuple[dict[str, Tensor], dict[str, str]]  # tensors by name, and notes about them


def folder() -> Path:
    """The cache folder: `FEDKIN_CACHE` if it is set, else `fedkin` in the user's cache folder."""
    if own := os.environ.get("FEDKIN_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedkin"


def fingerprint(files: Iterable[Path], root: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and modification times of the files. It changes when a file is written again."""
    return [(str(file.relative_to(root)), file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(files)]


def path(name: str, source: str, mark: object) -> Path:
    """The cache file of a dataset from this source. `mark` identifies the version of the source's content."""
    key = hashlib.sha256(json.dumps([FORMAT, name, source, mark]).encode()).hexdigest()[:16]
    return folder() / f"{name}-{key}.safetensors"


def load(file: Path) -> Stored | None:
    """The stored tensors, memory-mapped, and notes; None if the file does not exist or is damaged."""
    try:
        with safe_open(str(file), framework="pt") as stored:
            notes = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError):
        return None
    return (tensors, notes) if notes.get("checksum") == _checksum(tensors) else None


def save(file: Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> None:
    """Write a temporary file beside `file` and rename it, so that no reader ever sees an incomplete file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=file.parent, prefix=f".{file.stem}-", suffix=".part")
    os.close(handle)
    try:
        save_file(tensors, beside, metadata=notes | {"checksum": _checksum(tensors)})
        with open(beside, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(beside, file)
    finally:
        Path(beside).unlink(missing_ok=True)


def _checksum(tensors: dict[str, Tensor]) -> str:
    total = 0
    for name in sorted(tensors):
        total = crc32(tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().data, total)
    return str(total)
