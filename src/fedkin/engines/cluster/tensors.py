"""How tensors travel: as numpy arrays, which Ray puts into shared memory and hands out without a copy."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Message


def as_array(value: Tensor) -> np.ndarray:
    """Return the numbers of a tensor in one piece."""
    found: np.ndarray = value.detach().cpu().contiguous().numpy()
    return found


def as_tensor(value: np.ndarray) -> Tensor:
    """Return the same numbers as a tensor. They lie in Ray's memory and must not be written to; no part does that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(value)


def register() -> None:
    """Let this process send tensors in that way. A process that receives needs no word."""
    from ray.util import register_serializer

    register_serializer(Tensor, serializer=as_array, deserializer=as_tensor)


def moved(message: Message, device: torch.device) -> Message:
    """Return a message on another device."""
    return tree.each(lambda model: tree.mapped(lambda value: value.to(device), model), message)
