"""What the models of all compared methods say of one site's test samples, and the metric that comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkin import metrics
from fedkin.runs.run import Repetition, Run


@dataclass(frozen=True)
class Tested:
    """One site: its test rows on every split, and the outputs of every arm's model for them.

    `outputs[arm][k][s]` are those of seed number k on split number s. A row number is the same sample on every split.
    """

    rows: list[np.ndarray]  # by split, (r,) each
    y: list[np.ndarray]  # by split, (r,) each
    outputs: dict[str, list[list[np.ndarray]]]  # (r, classes) each
    scale: list[float]  # by split: what 1 in y is worth in the target's own unit

    @property
    def distinct(self) -> np.ndarray:
        """The rows that are tested on any split, each once, ascending."""
        return np.unique(np.concatenate(self.rows))

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


def sites_tested(runs: dict[str, dict[Repetition, Run]]) -> list[Tested] | None:
    """Return every site's test samples with the outputs of all runs; None where some run kept no predictions."""
    stored = {name: {key: run.predictions for key, run in found.items()} for name, found in runs.items()}
    if any(said is None for found in stored.values() for said in found.values()):
        return None
    first = next(iter(runs.values()))
    seeds, splits = (list(dict.fromkeys(getattr(key, word) for key in first)) for word in ("seed", "split"))
    kinds = {name: next(iter(found.values())).judged for name, found in runs.items()}
    sites = []
    for site in range(next(iter(first.values())).n):
        outputs: dict[str, list[list[np.ndarray]]] = {}
        rows: dict[int, np.ndarray] = {}
        y: dict[int, np.ndarray] = {}
        for name, found in stored.items():
            outputs[name] = []
            for seed in seeds:
                each = []
                for split in splits:
                    said = found[Repetition(seed, split)] or {}
                    own = said["client"] == site
                    order = np.argsort(said["rows"][own], kind="stable")
                    rows[split], y[split] = said["rows"][own][order], said["y"][own][order]
                    each.append(said[kinds[name]][own][order])
                outputs[name].append(each)
        units = [first[Repetition(seeds[0], s)].about_clients.get("scale") for s in splits]
        scale = [1.0 if unit is None else float(unit[site]) for unit in units]
        sites.append(Tested([rows[s] for s in splits], [y[s] for s in splits], outputs, scale))
    return sites
