"""Private models of many clients as rows of bytes, of which only those that changed lately are held in memory.

A client's row has all its private models, one tensor after another. A client that never trained has no row: it has the
models that all begin with. Rows that changed since the last checkpoint are held in memory up to a budget, and beyond it
in a scratch file. A checkpoint writes them to a *segment*, a file that never changes, and from then on they are read
there. Files are read and written at places, not mapped: mapped pages would count as memory of the process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import RLock

import numpy as np
import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Message, Model
from fedkin.errors import require

AT_ONCE = 2**24  # bytes of rows that are on their way at once
SUM = 16  # bytes of a row's check sum


@dataclass(frozen=True)
class Segment:
    """A file with the rows of some clients, one after another from the byte `start` on."""

    path: Path
    start: int
    ids: np.ndarray  # (k,) int64, ascending
    sums: np.ndarray  # (k, SUM) uint8, check sums of the rows
    head: str  # check sum of all that stands before the rows


@dataclass(frozen=True)
class Sealed:
    """Where the rows of a checkpoint lie: client i's is row `at[i]` of `segments[segment[i]]`; -1: it has none.

    `layout` is a check sum of the names and shapes of the tensors in a row; `trusted` says which rows are known to be
    what was written.
    """

    segments: tuple[Segment, ...]
    segment: np.ndarray  # (n,) int32
    at: np.ndarray  # (n,) int64
    layout: str
    trusted: np.ndarray  # (n,) bool


class Rows:
    """The private models of `n` clients. Every client starts with the models `first`.

    At most `budget` bytes of changed rows are held in memory; `scratch` is the folder for a file with the others, None
    is the system's temporary folder.
    """

    def __init__(self, first: Message, n: int, budget: int, scratch: Path | None = None):
        self.first, self.n, self.scratch = first, n, scratch
        self.names = [(slot, name) for slot, model in first.items() for name in model]
        sizes = [first[slot][name].nbytes for slot, name in self.names]
        self.ends = np.cumsum([0, *sizes]).tolist()
        self.bytes = self.ends[-1]  # of a row
        self.start = self.joined(tree.each(lambda model: tree.repeated(model, 1), first), slice(0, 1))
        self.room = min(n, budget // self.bytes)  # rows that are held in memory
        shapes = [(slot, name, str(first[slot][name].dtype), *first[slot][name].shape) for slot, name in self.names]
        layout = blake2b(repr(shapes).encode(), digest_size=SUM).hexdigest()
        none = np.full(n, -1, dtype=np.int64)
        self.sealed = Sealed((), none.astype(np.int32), none, layout, np.ones(n, dtype=bool))
        self._lock = RLock()  # clients may train in threads
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._opened: dict[Path, int] = {}
        self._forget()

    def _forget(self) -> None:
        """Drop the rows that changed."""
        self.place = np.full(self.n, -1, dtype=np.int64)  # of a changed row: in memory below `room`, else in the file
        self.count = 0
        self._held: np.ndarray | None = None
        if self._folder is not None:
            os.truncate(self._file(), 0)

    # reading and writing

    def read_one(self, ids: Tensor, slot: str) -> Model:
        """A copy of these clients' models of one slot."""
        return self.read(ids, (slot,))[slot]

    def read(self, ids: Tensor, slots: Collection[str] | None = None) -> Message:
        """A copy of these clients' models, of these slots or of all."""
        who, wanted = ids.cpu().numpy(), self.first.keys() if slots is None else slots
        first = {slot: model for slot, model in self.first.items() if slot in wanted}
        found = tree.each(lambda model: tree.mapped(lambda value: empty(value, len(ids)), model), first)
        for some in self.pieces(len(who)):
            raw = self.raw(who[some])
            for (slot, name), start, end in zip(self.names, self.ends, self.ends[1:], strict=False):
                if slot not in first:
                    continue
                as_bytes(found[slot][name])[some] = torch.from_numpy(raw[:, start:end])
        device = next(iter(next(iter(self.first.values())).values())).device
        return tree.each(lambda model: tree.mapped(lambda value: value.to(device), model), found)

    def write(self, ids: Tensor, rows: Message) -> None:
        """Replace these clients' models."""
        who = ids.cpu().numpy()
        for some in self.pieces(len(who)):
            self.put(who[some], self.joined(rows, some))

    def pieces(self, m: int) -> Iterator[slice]:
        """Yield m rows in pieces that are on their way at once."""
        step = max(1, AT_ONCE // self.bytes)
        return (slice(start, min(m, start + step)) for start in range(0, m, step))

    def joined(self, models: Message, some: slice) -> np.ndarray:
        """Some of these stacked models as rows."""  # (k, bytes) uint8
        raw = np.empty((some.stop - some.start, self.bytes), dtype=np.uint8)
        for (slot, name), start, end in zip(self.names, self.ends, self.ends[1:], strict=False):
            value = models[slot][name][some].detach().to("cpu", self.first[slot][name].dtype)
            raw[:, start:end] = as_bytes(value.contiguous()).numpy()
        return raw

    def raw(self, who: np.ndarray) -> np.ndarray:
        """The rows of these clients, in this order."""  # (k, bytes) uint8
        with self._lock:
            raw = np.empty((len(who), self.bytes), dtype=np.uint8)
            place, segment = self.place[who], self.sealed.segment[who]
            held = (place >= 0) & (place < self.room)
            if held.any():
                assert self._held is not None
                raw[held] = self._held[place[held]]
            out = place >= self.room
            if out.any():
                self._load(self._file(), 0, raw, out, place[out] - self.room)
            raw[(place < 0) & (segment < 0)] = self.start
            for number in np.unique(segment[place < 0]):
                if number >= 0:
                    self._from_segment(self.sealed.segments[number], who, raw, (place < 0) & (segment == number))
            return raw

    def _from_segment(self, segment: Segment, who: np.ndarray, raw: np.ndarray, mask: np.ndarray) -> None:
        """Read the rows of the mask from a segment, and check those that this process has not seen yet."""
        at = self.sealed.at[who[mask]]
        self._load(segment.path, segment.start, raw, mask, at)
        for place, row in zip(np.flatnonzero(mask), at, strict=True):
            client = who[place]
            if not self.sealed.trusted[client]:
                same = checksum(raw[place]) == segment.sums[row].tobytes()
                damaged = f"{segment.path} is damaged: the models of client {client} are not what was written"
                require(same, f"{damaged}; bring the file back, or start the run anew elsewhere.")
                self.sealed.trusted[client] = True

    def _load(self, path: Path, start: int, raw: np.ndarray, mask: np.ndarray, at: np.ndarray) -> None:
        """Read the rows `at` of a file into the rows of the mask. Rows that follow each other are read together."""
        places = np.flatnonzero(mask)
        cuts = np.flatnonzero((np.diff(places) != 1) | (np.diff(at) != 1)) + 1
        for some, rows in zip(np.split(places, cuts), np.split(at, cuts), strict=True):
            into = memoryview(raw[some[0] : some[-1] + 1].reshape(-1))  # type: ignore[arg-type]
            whole(os.preadv, self._handle(path), into, start + int(rows[0]) * self.bytes)

    def put(self, who: np.ndarray, raw: np.ndarray) -> None:
        """Replace the rows of these clients."""
        with self._lock:
            new = who[self.place[who] < 0]
            self.place[new] = np.arange(self.count, self.count + len(new))
            self.count += len(new)
            place = self.place[who]
            held = place < self.room
            if held.any():
                if self._held is None:
                    self._held = np.empty((self.room, self.bytes), dtype=np.uint8)  # pages are taken when written to
                self._held[place[held]] = raw[held]
            for row, to in zip(raw[~held], place[~held] - self.room, strict=True):
                whole(os.pwritev, self._handle(self._file()), memoryview(row), int(to) * self.bytes)

    # checkpoints

    def private(self) -> Rows:
        """What a checkpoint stores: these rows."""
        return self

    def changed(self) -> np.ndarray:
        """The clients whose rows changed since the last checkpoint, ascending."""
        return np.flatnonzero(self.place >= 0)

    def settle(self, sealed: Sealed) -> None:
        """Go on from a checkpoint that has all rows as they are now, or were then."""
        require(sealed.layout == self.sealed.layout, "The checkpoint holds the private models of another network.")
        with self._lock:
            self.sealed = sealed
            self._forget()
            known = {segment.path for segment in sealed.segments}
            for path in [path for path in self._opened if path not in known and path != self._scratch_file]:
                os.close(self._opened.pop(path))

    def restore(self, saved: Message | Sealed) -> None:
        """Put the models of all clients back to what a checkpoint holds, as rows or as stacked models."""
        if isinstance(saved, Sealed):
            self.settle(saved)
            return
        none = Rows(self.first, self.n, 0)
        self.settle(none.sealed)
        for some in self.pieces(self.n):
            raw = self.joined(saved, some)
            moved = (raw != self.start).any(1)
            self.put(np.flatnonzero(moved) + some.start, raw[moved])

    # files

    @property
    def folder(self) -> Path | None:
        """The folder of the scratch file, or None if there is none."""
        return None if self._folder is None else Path(self._folder.name)

    @property
    def _scratch_file(self) -> Path | None:
        return None if self.folder is None else self.folder / "rows"

    def _file(self) -> Path:
        """The scratch file, made at its first use."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="slots-", dir=self.scratch)
            (Path(self._folder.name) / "rows").touch()
        return Path(self._folder.name) / "rows"

    def _handle(self, path: Path) -> int:
        if path not in self._opened:
            self._opened[path] = os.open(path, os.O_RDWR if path == self._scratch_file else os.O_RDONLY)
        return self._opened[path]

    def close(self) -> None:
        """Free the memory, close the files and delete the scratch file."""
        self._held = None
        for handle in self._opened.values():
            os.close(handle)
        self._opened = {}
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def empty(value: Tensor, m: int) -> Tensor:
    """Room in memory for m rows of such values."""
    return torch.empty((m, *value.shape), dtype=value.dtype)


def as_bytes(value: Tensor) -> Tensor:
    """The rows of a contiguous stacked tensor as bytes, not copied."""  # (m, bytes) uint8
    flat = value.reshape(len(value), value[:1].numel())
    if flat.stride(-1) != 1:  # one expanded number, which counts as contiguous all the same
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8)


def checksum(row: np.ndarray) -> bytes:
    return blake2b(row, digest_size=SUM).digest()  # type: ignore[arg-type]


def whole(call: object, handle: int, view: memoryview, place: int) -> None:
    """Read or write all bytes of a view at a place of a file. The system may move fewer of them at a time."""
    done = 0
    while done < len(view):
        moved = call(handle, [view[done:]], place + done)  # type: ignore[operator]
        require(moved > 0, "A file of private models is shorter than it was.")
        done += moved
