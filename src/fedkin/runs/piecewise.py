"""Writes safetensors files piece by piece, so that what is in them is never in memory as a whole, and reads parts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from fedkin.core.rows import as_bytes
from fedkin.runs import files
from fedkin.runs.files import Damaged

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

Places = dict[str, int]  # the first byte of each tensor in its file


def begin(file: BinaryIO, like: dict[str, tuple[torch.dtype, tuple[int, ...]]]) -> Places:
    """Write the head of a safetensors file with tensors of these types and shapes, and return where each begins."""
    offsets: dict[str, dict[str, object]] = {}
    starts, end = dict[str, int](), 0
    for name, (dtype, shape) in like.items():
        starts[name], end = end, end + torch.Size(shape).numel() * dtype.itemsize
        offsets[name] = {"dtype": TYPES[dtype], "shape": list(shape), "data_offsets": [starts[name], end]}
    head = json.dumps(offsets, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    file.write(len(head).to_bytes(8, "little") + head)
    first = 8 + len(head)
    file.truncate(first + end)
    return {name: first + start for name, start in starts.items()}


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
                    put(file, places[name], value.detach().cpu().contiguous()[None])
            for name, value in plain.items():
                put(file, places[name] + done * (value.nbytes // len(value)), value)
            done += len(next(iter(plain.values())))


def put(file: BinaryIO, place: int, value: Tensor) -> None:
    """Write the bytes of a tensor at a place of a file."""
    file.seek(place)
    file.write(as_bytes(value).numpy().data)
