"""Writes files that are whole or not there, reads them back, and locks folders."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from io import BufferedRandom
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from fedkin.errors import BadInput, require

LOCK = ".lock"
TRIES = 5  # at a lock that is taken


class Damaged(Exception):
    """A file is not what was once written."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other commands out of this folder while the block runs.

    The system frees the lock when the process ends, however that happens; the empty file stays.
    """
    with open(folder / LOCK, "w") as file:
        for tries in range(TRIES, 0, -1):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # by another command, or for a moment by somebody who asks `in_use`
                sentence = f"Another command is at work in {folder}; wait until it is done, or stop it."
                require(tries > 1, sentence)
                time.sleep(0.02)
            except OSError:
                break  # a file system without locks
        yield


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time work in this folder; the others wait."""
    make_folder(folder)
    with open(folder / LOCK, "w") as file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_folder(path: Path) -> None:
    """Make a folder that may be there already; where the system does not allow it, a sentence says so."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        made = os.access(path, os.W_OK)
    except OSError as error:
        raise BadInput(f"The folder {path} cannot be made: {error.strerror}; choose another --out.") from error
    if not made:
        raise BadInput(f"Nothing can be written to {path}; choose another --out.")


def in_use(folder: Path) -> bool:
    """Whether a command is at work in this folder. It looks only, and writes nothing."""
    try:
        with open(folder / LOCK, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no such file, or a file system without locks
        return False
    return False


def write(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old file or the new one, never a part: write beside, flush, rename."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BufferedRandom]:
    """Let the block write a file that appears at `path` only when it is whole."""
    beside = path.with_name(f".{path.name}.part")
    try:
        with open(beside, "w+b") as file:
            yield file
            file.flush()
            settle(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    settle_folder(path.parent)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Let the block fill a folder that appears at `path` only when it is whole; one that is there is replaced."""
    given, path = path, path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise BadInput(f"{given} cannot be written: {error.strerror}; choose another -o.") from error
    with temporary as beside:
        made = Path(beside) / "new"
        made.mkdir()
        yield made
        if path.exists():
            os.replace(path, Path(beside) / "old")  # removed with the temporary folder
        os.replace(made, path)
    settle_folder(path.parent)


def write_json(path: Path, value: object) -> None:
    write(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from error


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    """Write tensors as one safetensors file and return its check sum."""
    beside = path.with_name(f".{path.name}.part")
    try:
        save_file(apart(tensors), beside)
        with open(beside, "r+b") as file:
            settle(file.fileno())
        found = checksum(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    settle_folder(path.parent)
    return found


def apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors so that no two share their memory, as safetensors wants them."""
    found: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, value in tensors.items():
        plain = value.detach().cpu().contiguous()
        storage = plain.untyped_storage()
        found[name] = plain.clone() if storage.data_ptr() in taken or storage.nbytes() != plain.nbytes else plain
        taken.add(storage.data_ptr())
    return found


def read_tensors(path: Path, expected: str | None = None) -> dict[str, Tensor]:
    try:
        if expected is not None and checksum(path) != expected:
            raise Damaged(f"{path} is not what was written (its check sum differs)")
        result: dict[str, Tensor] = load_file(path)
    except Damaged:
        raise
    except Exception as error:  # safetensors raises its own type, which it does not export
        raise Damaged(f"{path} cannot be read: {error}") from error
    return result


def read_row(path: Path, prefix: str, row: int) -> dict[str, Tensor]:
    """Return one row of the tensors whose names begin with a prefix, by their names without it."""
    try:
        with safe_open(path, "pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - it is no dictionary
            return {name.removeprefix(prefix): file.get_slice(name)[row : row + 1][0] for name in names}
    except Exception as error:  # safetensors raises its own type, which it does not export
        raise Damaged(f"{path} cannot be read: {error}") from error


def checksum(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(2**22):
            digest.update(block)
    return digest.hexdigest()


def write_whole(handle: int, content: bytes) -> None:
    """Write all of this to an open file; the system may take it in pieces."""
    while content:
        content = content[os.write(handle, content) :]


def settle(handle: int) -> None:
    os.fsync(handle)


def settle_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
