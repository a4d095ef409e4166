"""Writes safetensors files piece by piece, so that what is in them is never in memory as a whole, and reads parts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from torch import Tensor

from fedkin.runs import files
from fedkin.runs.files import Damaged
from fedkin.runs.layout import Places, begin, put


def head(file: BinaryIO) -> Places:
    """Read the head of such a file and return where each tensor begins."""
    try:
        length = int.from_bytes(file.read(8), "little")
        about = json.loads(file.read(min(length, 2**20)))
        return {name: 8 + length + int(one["data_offsets"][0]) for name, one in about.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{file.name} cannot be read: {error}") from error


def write_stacked(path: Path, given: dict[str, Tensor], n: int, pieces: Iterable[dict[str, Tensor]]) -> None:
    """Write the tensors `given`, and stacked tensors of n rows that come in pieces, the first rows first."""
    done, places = 0, dict[str, int]()
    with files.whole_file(path) as file:
        for piece in pieces:
            plain = {name: value.detach().cpu().contiguous() for name, value in piece.items()}
            if not places:
                like = {name: (value.dtype, tuple(value.shape)) for name, value in given.items()}
                like |= {name: (value.dtype, (n, *value.shape[1:])) for name, value in plain.items()}
                places = begin(file, like)
                for name, value in given.items():
                    put(file, places[name], value)
            for name, value in plain.items():
                put(file, places[name] + done * (value.nbytes // len(value)), value)
            done += len(next(iter(plain.values())))
