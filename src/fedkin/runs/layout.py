"""The bytes of a safetensors file: a head that says where each tensor lies, and the tensors."""

from __future__ import annotations

import json
from typing import BinaryIO

import torch
from torch import Tensor

from fedkin.core.rows import as_bytes

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

Places = dict[str, int]  # the first byte of each tensor in its file


def begin(file: BinaryIO, like: dict[str, tuple[torch.dtype, tuple[int, ...]]]) -> Places:
    """Write the head of a safetensors file with tensors of these types and shapes, and return where each begins.

    Tensors with long numbers come first, so that every number begins at a multiple of its length.
    """
    offsets: dict[str, dict[str, object]] = {}
    starts, end = dict[str, int](), 0
    for name, (dtype, shape) in sorted(like.items(), key=lambda item: -item[1][0].itemsize):
        starts[name], end = end, end + torch.Size(shape).numel() * dtype.itemsize
        offsets[name] = {"dtype": TYPES[dtype], "shape": list(shape), "data_offsets": [starts[name], end]}
    head = json.dumps(offsets, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    file.write(len(head).to_bytes(8, "little") + head)
    first = 8 + len(head)
    file.truncate(first + end)
    return {name: first + start for name, start in starts.items()}


def put(file: BinaryIO, place: int, value: Tensor) -> None:
    """Write the bytes of a tensor at a place of a file."""
    file.seek(place)
    if value.numel():
        plain = value.detach().cpu().contiguous()
        file.write(as_bytes(plain if plain.dim() else plain[None]).numpy().data)


def write(file: BinaryIO, tensors: dict[str, Tensor]) -> None:
    """Write a whole safetensors file."""
    places = begin(file, {name: (value.dtype, tuple(value.shape)) for name, value in tensors.items()})
    for name, value in tensors.items():
        put(file, places[name], value)
