"""Decoded datasets, kept as safetensors in the user's cache folder: decoding is done once, loading is a memory map."""

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

FORMAT = 2  # raise it when what is stored changes, and older files are no longer looked at

Stored = tuple[dict[str, Tensor], dict[str, str]]


def folder() -> Path:
    """`FEDKIN_CACHE`, or `fedkin` in the user's cache folder."""
    if own := os.environ.get("FEDKIN_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedkin"


def fingerprint(files: Iterable[Path], root: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and times of files: cheap, and different once a file was written anew."""
    return [(str(file.relative_to(root)), file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(files)]


def path(name: str, source: str, mark: object) -> Path:
    key = hashlib.sha256(json.dumps([FORMAT, name, source, mark]).encode()).hexdigest()[:16]
    return folder() / f"{name}-{key}.safetensors"


def load(file: Path) -> Stored | None:
    """What was stored, memory-mapped; None if there is no such file or it is damaged."""
    try:
        with safe_open(str(file), framework="pt") as stored:
            notes = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError):
        return None
    return (tensors, notes) if notes.get("checksum") == _checksum(tensors) else None


def save(file: Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> None:
    """Written beside and moved into place, so that no reader ever meets half a file."""
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
