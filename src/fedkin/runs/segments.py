"""Segments: files with rows of private models that are too large to be written anew in every checkpoint.

A checkpoint writes the rows that changed since the one before into a new segment, which never changes; its JSON file
says which segments it needs, and its tensors which of them has which client's row. A segment of which most rows have
newer ones elsewhere is written anew: its last rows go into the new segment too.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedkin.core.rows import SUM, Rows, Sealed, Segment, checksum
from fedkin.runs import files, layout, piecewise
from fedkin.runs.files import Damaged
from fedkin.runs.folder import RunFolder

MANY = 64  # segments that a run may have before small ones are joined


def seal(folder: RunFolder, rows: Rows) -> Sealed:
    """Write the rows that changed, and return where all rows lie then. The rows themselves are not settled yet."""
    sealed, changed = rows.sealed, rows.changed()
    gone = sealed.segment.copy()
    gone[changed] = -1
    ids = np.union1d(changed, np.flatnonzero(np.isin(gone, worn(sealed, gone))))
    stay = [number for number in np.unique(np.delete(gone, ids)) if number >= 0]
    segments = tuple(sealed.segments[number] for number in stay)
    segment, at = np.full(rows.n, -1, dtype=np.int32), np.full(rows.n, -1, dtype=np.int64)
    kept = np.isin(gone, stay)
    kept[ids] = False
    segment[kept], at[kept] = np.searchsorted(stay, gone[kept]), sealed.at[kept]
    trusted = sealed.trusted.copy()
    if len(ids):
        segments += (write(folder.new_segment(), rows, ids),)
        segment[ids], at[ids], trusted[ids] = len(stay), np.arange(len(ids)), True
    return Sealed(segments, segment, at, sealed.layout, trusted)


def worn(sealed: Sealed, live: np.ndarray) -> list[int]:
    """Return the segments to be written anew: those of which more than half is dead and, where there are many, small
    ones. `live` (n,) is the segment of every client's row that is still needed, else -1."""
    counts = np.bincount(live[live >= 0], minlength=len(sealed.segments))
    sizes = np.array([len(segment.ids) for segment in sealed.segments], dtype=np.int64)
    old = [number for number in np.flatnonzero(counts) if 2 * counts[number] < sizes[number]]
    rest = [number for number in np.flatnonzero(counts) if number not in old]
    if len(rest) >= MANY:
        old += sorted(rest, key=lambda number: (counts[number], number))[: len(rest) // 2]
    return [int(number) for number in old]


def write(path: Path, rows: Rows, ids: np.ndarray) -> Segment:
    """Write a segment with the rows of these clients, ascending."""
    sums = np.zeros((len(ids), SUM), dtype=np.uint8)
    like = {"ids": (torch.int64, ids.shape), "sums": (torch.uint8, sums.shape)}
    with files.whole_file(path) as file:
        places = layout.begin(file, like | {"rows": (torch.uint8, (len(ids), rows.bytes))})
        file.seek(places["rows"])
        for some in rows.pieces(len(ids)):
            raw = rows.raw(ids[some])
            sums[some] = [np.frombuffer(checksum(row), dtype=np.uint8) for row in raw]
            file.write(raw.data)
        file.seek(places["ids"])
        file.write(ids.astype("<i8").tobytes() + sums.tobytes())
        file.seek(0)
        head = head_sum(file.read(places["rows"]))
    return Segment(path, places["rows"], ids, sums, head)


# what a checkpoint says of them


def described(sealed: Sealed) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what the JSON file of a checkpoint says of its rows, and what its tensors say."""
    listed = [{"file": one.path.name, "rows": len(one.ids), "checksum": one.head} for one in sealed.segments]
    where = {"rows/segment": torch.from_numpy(sealed.segment), "rows/at": torch.from_numpy(sealed.at)}
    return {"segments": listed, "layout": sealed.layout}, where


def head_sum(head: bytes) -> str:
    """Return a check sum of all of a segment but its rows, which have their own."""
    return blake2b(head, digest_size=SUM).hexdigest()


def read(place: Path, about: dict[str, Any], where: dict[str, Tensor], older: set[str]) -> Sealed:
    """Return where the rows of a checkpoint in a folder lie; raises `Damaged` where they are not what was written.

    The rows of segments that an `older` checkpoint needs too are not looked at now: going back to that one would not
    help. They are checked when they are first read.
    """
    segment, at = where["segment"].numpy(), where["at"].numpy()
    trusted = segment < 0
    found = []
    for number, one in enumerate(about["segments"]):
        opened = opened_segment(place / one["file"], one)
        found.append(opened)
        if one["file"] not in older:
            check_rows(opened, np.unique(at[segment == number]))
            trusted |= segment == number
    return Sealed(tuple(found), segment, at, about["layout"], trusted)


def opened_segment(path: Path, about: dict[str, Any]) -> Segment:
    """Return a segment whose head is what was written, and which is as long as it was."""
    count = int(about["rows"])
    try:
        with open(path, "rb") as file:
            places = piecewise.head(file)
            file.seek(places["ids"])
            ids = np.frombuffer(file.read(8 * count), dtype="<i8").astype(np.int64)
            sums = np.frombuffer(file.read(SUM * count), dtype=np.uint8).reshape(-1, SUM)
            file.seek(0)
            head, end = head_sum(file.read(places["rows"])), file.seek(0, 2)
    except (OSError, KeyError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from error
    segment = Segment(path, places["rows"], ids, sums, head)
    if head != about["checksum"] or (end - segment.start) % count:
        raise Damaged(f"{path} is not what was written (its check sum differs)")
    return segment


def check_rows(segment: Segment, wanted: np.ndarray) -> None:
    """Read these rows of a segment; raises `Damaged` where one is not what was written."""
    with open(segment.path, "rb") as file:
        size = (file.seek(0, 2) - segment.start) // len(segment.ids)
        for row in wanted.tolist():
            file.seek(segment.start + row * size)
            if checksum(np.frombuffer(file.read(size), dtype=np.uint8)) != segment.sums[row].tobytes():
                raise Damaged(f"{segment.path} is not what was written (the check sum of a row differs)")
