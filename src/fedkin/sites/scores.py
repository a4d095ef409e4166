"""The scores of sites as one, a row for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fedkin import metrics
from fedkin.data.federation import Federation
from fedkin.engines.engine import Look, Score, Split


def joined_scores(
    answers: Mapping[int, dict[str, Any]], name: str, look: Look, ids: Tensor, federation: Federation
) -> dict[Split, Score]:
    """Return what these clients found when they scored a model, by split.

    A client that gave no score, or none that can be right, is as one without samples.
    """
    found: dict[Split, Score] = {}
    for split in look.splits:
        index = {"train": federation.train, "test": federation.test}.get(split, federation.validation)
        sizes = torch.zeros(federation.n, dtype=torch.int64) if index is None else index.sizes
        given = [(answers.get(i, {}).get("scores") or {}).get(name, {}).get(split) for i in ids.tolist()]
        rows = [one_score(score, int(size)) for score, size in zip(given, sizes[ids], strict=True)]
        names = metrics.of_task(federation.task) if split != "train" else ()
        keys = ("correct", "loss", "count")
        correct, loss, count = (torch.stack([getattr(row, key) for row in rows]) for key in keys)
        nothing = torch.tensor(torch.nan, dtype=torch.float64)
        values = {metric: torch.stack([row.values.get(metric, nothing) for row in rows]) for metric in names}
        found[split] = Score(correct, loss, count, values)
    return found


def one_score(given: Any, size: int) -> Score:
    """Return the score that a site gave for so many samples; that of no samples where it cannot be right."""
    try:
        correct, count = int(given["correct"]), int(given["count"])
        values = {str(name): number(value) for name, value in given["values"].items()}
        if count == size and 0 <= correct <= size:
            return Score(torch.tensor(correct), number(given["loss"]), torch.tensor(count), values)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    zero = torch.tensor(0)
    return Score(zero, zero.double(), zero)


def number(value: Any) -> Tensor:
    """Return a number as a tensor."""
    return torch.tensor(float(value), dtype=torch.float64)
