"""A site whose true gains are known: models that are right on a row by the row's difficulty, their own luck there, and
what the division into train and test did to them."""

from __future__ import annotations

import numpy as np

from fedkin.answers.held_out import HeldOut

OWN, EACH, DIVISION = (
    0.6,
    0.4,
    0.15,
)  # spread of a model's luck: on a row, on a row of one split, on all rows of a split


def site(rng: np.random.Generator, rows: int, splits: int, methods: int, lift: float = 0.0, seeds: int = 1) -> HeldOut:
    """A site with so many rows, a quarter of which is tested on each split; `lift` makes every method better."""
    ease, count = rng.normal(1.2, 1.5, rows), rows // 4
    tested = [np.sort(rng.permutation(rows)[:count]) for _ in range(splits)]
    outputs = {}
    for name in ["local", *(f"m{i}" for i in range(methods))]:
        luck = rng.normal(0, OWN, rows)
        better = lift if name != "local" else 0.0
        outputs[name] = [
            [one(rng, ease[at] + luck[at] + better + rng.normal(0, DIVISION)) for at in tested] for _ in range(seeds)
        ]
    return HeldOut(tested, [np.ones(count, dtype=np.int64)] * splits, outputs, [1.0] * splits)


def one(rng: np.random.Generator, ease: np.ndarray) -> np.ndarray:
    """The outputs of one model: class 1, the truth, where the row is easy enough."""
    margin = ease + rng.normal(0, EACH, len(ease))
    return np.stack([np.zeros_like(margin), margin], 1)


def true_gain(lift: float) -> float:
    """The gain in accuracy over all rows there could be."""
    rng = np.random.default_rng(1)
    spread = float(np.sqrt(OWN**2 + EACH**2 + DIVISION**2))
    margin = rng.normal(1.2, 1.5, 400_000) + rng.normal(0, spread, 400_000)
    return float((margin + lift > 0).mean() - (margin > 0).mean())


def against(methods: int) -> dict[str, str]:
    return {f"m{i}": "local" for i in range(methods)}
