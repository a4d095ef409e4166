"""Decodes tables of pictures and of text to tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from fedkin.data import text
from fedkin.data.cache import Stored
from fedkin.data.catalogue import Entry
from fedkin.data.decode_progress import decode_progress
from fedkin.errors import require

BATCH = 1000  # pictures decoded at a time
OFFSET = 0.001  # added to a pixel's deviation, since a pixel that hardly ever changes has almost none


def images(splits: dict[str, Any], entry: Entry, progress: bool) -> Stored:
    """The pictures with 8 bits for each pixel, and the mean and deviation of each pixel over the whole dataset."""
    from datasets import Image

    column, label, *_ = entry.columns
    count = sum(len(table) for table in splits.values())
    require(count, "has no rows.")
    x, y, done = np.zeros(0, dtype=np.uint8), [], 0
    with decode_progress(entry.name, count, progress) as advance:
        for name, table in splits.items():
            require(isinstance(table.features[column], Image), f"has no pictures in the column {column} of '{name}'.")
            y.append(text.integers(table, label))
            for batch in table.select_columns([column]).iter(BATCH):
                pictures = [_planes(picture) for picture in batch[column]]
                if not done:
                    x = np.zeros((count, *pictures[0].shape), dtype=np.uint8)
                shapes = {x.shape[1:], *(picture.shape for picture in pictures)}
                require(
                    len(shapes) == 1, f"has pictures of different shapes, {' and '.join(map(str, sorted(shapes)))}."
                )
                x[done : done + len(pictures)] = pictures
                done += len(pictures)
                advance(len(pictures))
    mean, deviation = moments(x)
    tensors = {"x": x, "y": np.concatenate(y), "mean": mean, "deviation": deviation}
    _check_labels(tensors["y"], entry.classes)
    return _stored(tensors, splits)


def _planes(picture: Any) -> np.ndarray:
    """The pixels as (channels, height, width). Every picture that is not grey becomes RGB."""
    require(picture is not None, "has a row without a picture.")
    grey = picture.mode in ("L", "1", "I", "I;16", "F")
    pixels = np.asarray(picture.convert("L" if grey else "RGB"))
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each pixel. The sums are exact, in whole numbers, and need no copy of the dataset."""
    total = np.zeros(x.shape[1:], dtype=np.int64)
    squares = np.zeros_like(total)
    for start in range(0, len(x), BATCH):
        block = x[start : start + BATCH].astype(np.int64)
        total += block.sum(0)
        squares += (block * block).sum(0)
    mean = total / len(x)
    deviation = np.sqrt(np.maximum(squares / len(x) - mean * mean, 0))
    return mean.astype(np.float32), deviation.astype(np.float32)


def pixels(tensors: dict[str, Tensor], how: Literal["standardised", "scaled"]) -> Tensor:
    """The pixels as floats.

    "standardised" is (x - mean) / (sd + 0.001) for x in 0 .. 255, as in pFedMe's scripts. "scaled" is (x - 0.5) / 0.5
    for x in [0, 1].
    """
    x = tensors["x"].to(torch.float32)
    if how == "scaled":
        return x.mul_(2 / 255).sub_(1)
    scale = 1 / (tensors["deviation"] + OFFSET)
    return x.sub_(tensors["mean"]).mul_(scale)


def characters(splits: dict[str, Any], entry: Entry, progress: bool) -> Stored:
    """Windows of characters, the character after each window, and the client of each row."""
    context, following, client = entry.columns
    x, y, owner = [], [], []
    with decode_progress(entry.name, sum(len(table) for table in splits.values()), progress) as advance:
        for table in splits.values():
            for batch in table.select_columns(list(entry.columns)).with_format("arrow").iter(100_000):
                x.append(text.characters(batch.column(context), text.CONTEXT))
                y.append(text.characters(batch.column(following), 1)[:, 0])
                owner.append(batch.column(client))
                advance(len(batch))
    require(x, "has no rows.")
    tensors = {"x": np.concatenate(x), "y": np.concatenate(y).astype(np.int64)} | text.owners(owner)
    return _stored(tensors, splits, vocabulary=text.VOCABULARY)


def tweets(splits: dict[str, Any], entry: Entry, progress: bool) -> Stored:
    """The words of the tweets. The few neutral tweets, all in the test split, have no class and are dropped."""
    column, label, client = entry.columns
    words, mood, owner, rows, dropped = [], [], [], {}, 0
    with decode_progress(entry.name, sum(len(table) for table in splits.values()), progress) as advance:
        for name, table in splits.items():
            labels = text.integers(table, label)
            require(np.isin(labels, (0, 2, 4)).all(), f"has a label in {label} that is none of 0, 2 and 4.")
            clear = labels != 2
            whole = table.select_columns([column, client]).with_format("arrow")[:].filter(clear)
            words.append(text.words(whole.column(column)))
            owner.append(whole.column(client))
            mood.append(labels[clear] // 4)
            rows[name], dropped = int(clear.sum()), dropped + int((~clear).sum())
            advance(len(table))
    require(sum(rows.values()), "has no rows.")
    vocabulary = text.most_frequent(words[0])
    x = np.concatenate([text.tokens(part, vocabulary) for part in words])
    tensors = {"x": x, "y": np.concatenate(mood).astype(np.int64)} | text.owners(owner)
    found, notes = _stored(tensors, splits, vocabulary=text.WORDS)
    return found, notes | {"rows": json.dumps(rows), "dropped": json.dumps({"neutral": dropped})}


def _check_labels(y: np.ndarray, classes: int) -> None:
    """Refuse labels that are not class numbers."""
    wrong = y[(y < 0) | (y >= classes)]
    require(not len(wrong), f"has the label {wrong[0] if len(wrong) else ''}, but its classes are 0 to {classes - 1}.")


def _stored(arrays: dict[str, np.ndarray], splits: dict[str, Any], vocabulary: int | None = None) -> Stored:
    """The arrays as tensors, with notes on the numbers of rows and the size of the vocabulary."""
    notes = {"rows": json.dumps({name: len(table) for name, table in splits.items()})}
    if vocabulary is not None:
        notes["vocabulary"] = str(vocabulary)
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}, notes


DECODERS: dict[str, Callable[[dict[str, Any], Entry, bool], Stored]] = {
    "images": images,
    "characters": characters,
    "tweets": tweets,
}
