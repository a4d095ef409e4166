"""Writes files that are whole or not there, reads them back, and locks folders.

Nothing is ever written through a symbolic link: a folder may come from somebody else, and a link in it may point to any
file of the user's. Every new file is made here (`new_file`), and `locked` refuses a folder that has links in it.
"""

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
from typing import Any, BinaryIO

from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from fedkin.core.machine import free
from fedkin.errors import BadInput, require
from fedkin.runs import layout

LOCK = ".lock"
TRIES = 5  # at a lock that is taken
FOREIGN = ("tensorboard", "wandb", "mlruns")  # folders in which others write


class Damaged(Exception):
    """A file is not what was once written."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other commands out of this folder while the block runs.

    The system frees the lock when the process ends, however that happens; the empty file stays.
    """
    check_links(folder)
    with opened_lock(folder) as file:
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


def opened_lock(folder: Path) -> BinaryIO:
    """Open the lock of a folder, which is empty; a link is not followed."""
    return os.fdopen(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb")


def check_links(folder: Path) -> None:
    """Refuse a folder in which something is a symbolic link; the folder itself may be one."""
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            link = os.path.join(above, name)
            require(not os.path.islink(link), f"{link} is a symbolic link, and fedkin follows none; remove it.")
        folders[:] = [name for name in folders if name not in FOREIGN]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time work in this folder; the others wait."""
    make_folder(folder)
    with opened_lock(folder) as file:
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


def holds_something(path: Path) -> bool:
    """Whether something lies here already. The lock of a command that could not begin, for lack of room, is nothing."""
    return path.exists() and (not path.is_dir() or any(one.name != LOCK for one in path.iterdir()))


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


def new_file(path: Path) -> BufferedRandom:
    """Open a new file; one that a killed command left there is replaced, and a link is not followed."""
    path.unlink(missing_ok=True)
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "w+b")


@contextmanager
def whole_file(path: Path, settled: bool = True) -> Iterator[BufferedRandom]:
    """Let the block write a file that appears at `path` only when it is whole; `settled`: it survives a power cut. A
    folder, a pipe or a device is not replaced."""
    require(path.is_file() or not path.exists(), f"{path} is no file, so it is not replaced; choose another name.")
    beside = path.with_name(f".{path.name}.part")
    try:
        with new_file(beside) as file:
            yield file
            file.flush()
            if settled:
                settle(file.fileno())
        os.replace(beside, path)
    finally:
        with suppress(OSError):
            beside.unlink()
    if settled:
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


def text_of(path: Path) -> str:
    """Return the text of a file; raises `Damaged` where it is no file, or takes more memory than is free."""
    if plain(path).exists() and path.stat().st_size > free():
        raise Damaged(f"{path} is damaged: it is larger than the memory that is free")
    return path.read_text()


def plain(path: Path) -> Path:
    """Return the path of a file, which may be missing. A pipe or a device in its place would keep a reader waiting for
    ever, and is refused."""
    if not path.is_file() and path.exists():
        raise Damaged(f"{path} is damaged: it is no file")
    return path


def read_json(path: Path) -> Any:
    try:
        return json.loads(text_of(path))
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from error


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    """Write tensors as one safetensors file and return its check sum."""
    with whole_file(path) as file:
        layout.write(file, tensors)
        file.flush()
        return checksum_of(file)


def read_tensors(path: Path, expected: str | None = None) -> dict[str, Tensor]:
    try:
        if expected is not None and checksum(path) != expected:
            raise Damaged(f"{path} is not what was written (its check sum differs)")
        result: dict[str, Tensor] = load_file(plain(path))
    except Damaged:
        raise
    except Exception as error:  # safetensors raises its own type, which it does not export
        raise Damaged(f"{path} cannot be read: {error}") from error
    return result


def read_row(path: Path, prefix: str, row: int) -> dict[str, Tensor]:
    """Return one row of the tensors whose names begin with a prefix, by their names without it."""
    try:
        with safe_open(plain(path), "pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - it is no dictionary
            return {name.removeprefix(prefix): file.get_slice(name)[row : row + 1][0] for name in names}
    except Exception as error:  # safetensors raises its own type, which it does not export
        raise Damaged(f"{path} cannot be read: {error}") from error


def checksum(path: Path) -> str:
    with open(plain(path), "rb") as file:
        return checksum_of(file)


def digest_of(path: Path, length: int) -> blake2b:
    """Return the digest of the first bytes of a file, to which more may be added."""
    digest = blake2b(digest_size=16)
    with open(plain(path), "rb") as file:
        while length and (block := file.read(min(length, 2**22))):
            digest.update(block)
            length -= len(block)
    return digest


def checksum_of(file: BinaryIO) -> str:
    """Return the check sum of all that an open file holds."""
    digest = blake2b(digest_size=16)
    file.seek(0)
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
