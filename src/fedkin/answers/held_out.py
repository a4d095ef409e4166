"""What the models of all compared methods say of one site's test samples, and the metric that comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedkin import metrics
from fedkin.errors import require
from fedkin.runs.run import Repetition, Run


@dataclass(frozen=True)
class HeldOut:
    """One site: its test rows on every split, and the outputs of every arm's model for them.

    `outputs[arm][k][s]` are those of seed number k on split number s. A row number is the same sample on every split.
    """

    rows: list[np.ndarray]  # by split, (r,) each
    y: list[np.ndarray]  # by split, (r,) each
    outputs: dict[str, list[list[np.ndarray]]]  # (r, classes) each
    scale: list[float]  # by split: what 1 in y is worth in the target's own unit

    @cached_property
    def distinct(self) -> np.ndarray:
        """The rows that are tested on any split, each once, ascending."""
        return np.unique(np.concatenate(self.rows))

    @cached_property
    def rarer(self) -> int:
        """How many of the `distinct` rows are not of the site's most common class."""
        first = np.unique(np.concatenate(self.rows), return_index=True)[1]
        counts = np.unique(np.concatenate(self.y)[first], return_counts=True)[1]
        return int(counts.sum() - counts.max(initial=0))

    def values(self, metric: str, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the metric of every run; nan where it is not defined.

        weights: how often each of the `distinct` rows counts, (b, rows), by default once.
        """  # (b, arms, seeds, splits)
        many = np.ones((1, len(self.distinct))) if weights is None else weights
        found = [self.on_split(metric, s, many) for s in range(len(self.rows))]
        return np.stack(found, axis=-1)

    def reached(self, metric: str) -> dict[str, float]:
        """Return the metric of every arm, mean over its seeds and splits; arms for which it is not defined are left
        out."""
        found = self.values(metric)[0].reshape(len(self.outputs), -1)  # (arms, runs)
        known = np.isfinite(found)
        return {name: float(v[k].mean()) for name, v, k in zip(self.outputs, found, known, strict=True) if k.any()}

    def on_split(self, metric: str, s: int, weights: np.ndarray) -> np.ndarray:
        """Return the metric of every arm and seed on one split."""  # (b, arms, seeds)
        mine = weights[:, np.searchsorted(self.distinct, self.rows[s])]  # (b, r)
        runs = [[seed[s] for seed in seeds] for seeds in self.outputs.values()]
        if metric == "accuracy":  # one product for all runs, because it is a mean over rows
            right = np.array([[hits(out, self.y[s]) for out in seeds] for seeds in runs], dtype=weights.dtype)
            total = mine.sum(1)
            with np.errstate(invalid="ignore", divide="ignore"):
                share = (mine @ right.reshape(-1, len(self.y[s])).T) / total[:, None]
            return np.asarray(share.reshape(len(weights), *right.shape[:2]), dtype=float)
        each = [[metrics.value(metric, out, self.y[s], mine, self.scale[s]) for out in seeds] for seeds in runs]
        return np.moveaxis(np.array(each, dtype=float), 2, 0)


def hits(outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which rows are classified rightly; outputs that are not finite are wrong."""
    found: np.ndarray = (outputs.argmax(1) == y) & np.isfinite(outputs).all(1)
    return found


Stored = dict[str, dict[Repetition, tuple[Run, dict[str, np.ndarray]]]]  # by arm: runs with their predictions


def with_predictions(runs: Mapping[str, Mapping[Repetition, Run]]) -> Stored | None:
    """Return all runs with the predictions that they kept; None where some run kept none."""
    found: Stored = {}
    for name, several in runs.items():
        found[name] = {}
        for key, run in several.items():
            if run.predictions is None:
                return None
            found[name][key] = (run, run.predictions)
    return found


def held_out_at(site: str, stored: Stored) -> HeldOut:
    """Return one site's test samples with the outputs of all runs. Arms may number the sites otherwise."""
    keys = list(next(iter(stored.values())))
    seeds, splits = (list(dict.fromkeys(getattr(key, word) for key in keys)) for word in ("seed", "split"))
    data_seed = keys[0].data_seed  # of all: sites of several seeds of the data are not compared
    rows: dict[int, np.ndarray] = {}
    y: dict[int, np.ndarray] = {}
    scale: dict[int, float] = {}
    outputs: dict[str, list[list[np.ndarray]]] = {}
    for name, several in stored.items():
        outputs[name] = [[] for _ in seeds]
        for k, seed in enumerate(seeds):
            for split in splits:
                run, said = several[Repetition(seed, split, data_seed)]
                number = run.number(site)
                own = np.flatnonzero(said["client"] == number)
                own = own[np.argsort(said["rows"][own], kind="stable")]
                same = np.array_equal(rows.setdefault(split, said["rows"][own]), said["rows"][own])
                require(same, f"The runs do not have the same test rows of {site}, so they cannot be compared.")
                y[split] = said["y"][own]
                scale[split] = float(run.about_clients.get("scale", {number: 1.0})[number])
                outputs[name][k].append(said[run.judged][own])
    return HeldOut([rows[s] for s in splits], [y[s] for s in splits], outputs, [scale[s] for s in splits])
