"""Chooses the run whose model is used, where a folder holds several methods or seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedkin import metrics
from fedkin.errors import BadInput, unknown
from fedkin.runs.run import Run
from fedkin.runs.several import finished_runs


@dataclass(frozen=True)
class Choice:
    """A run and, in `said`, why it is this one; `said` is empty where there was nothing to choose."""

    run: Run
    said: str = ""


def choose(
    folder: Path | str,
    client: str | None = None,
    method: str | None = None,
    seed: int | None = None,
    any_model: bool = False,
) -> Choice:
    """Return the run to take a model from.

    Of several methods it is the one with the best score on this client's test samples or, without a client, the one
    whose common model is best on all clients; with `any_model` it is then the one whose clients' own models are best,
    mean over clients. Of several seeds and splits it is the first: the best one of them would
    only be the luckiest.
    """
    runs = finished_runs(folder)
    names = list(dict.fromkeys(run.method for run in runs))
    if method is not None and method not in names:
        raise unknown("method in this folder", method, names)
    why = ""
    if method is None:
        kind = "global" if client is None and not any_model else "post"
        scores = {name: score_of([run for run in runs if run.method == name], kind, client) for name in names}
        known = {name: score for name, score in scores.items() if not np.isnan(score)}
        if not known and kind == "global":
            raise BadInput(f"No method in {folder} has a common model; name a client with --client.")
        method = max(known, key=lambda name: known[name]) if known else names[0]
        of_all = "as one model for all" if kind == "global" else "for all clients"
        whose = of_all if client is None else f"on the test samples of {client}"
        why = f", the best of {len(names)} methods {whose}" if len(names) > 1 else ""
    mine = [run for run in runs if run.method == method]
    seeds = sorted({run.seed for run in mine})
    if seed is not None and seed not in seeds:
        raise BadInput(f"{folder} has no run of {method} with seed {seed}; there are {', '.join(map(str, seeds))}.")
    run = next(run for run in mine if seed is None or run.seed == seed)
    which = f" with seed {run.seed}, the first of {len(mine)} runs" if len(mine) > 1 and seed is None else ""
    return Choice(run, f"This is {method}{which}{why}." if which or why else "")


def score_of(runs: list[Run], kind: str, client: str | None) -> float:
    """Return the mean score over runs of this kind of model, of one client or of all; nan where there is none."""
    better = 1.0 if metrics.METRICS[runs[0].metric].higher_is_better else -1.0
    each = [better * run.last()[kind] for run in runs if kind in run.last()]
    if not each:
        return float("nan")
    values = np.stack(each)  # (runs, n)
    chosen = values if client is None else values[:, [runs[0].number(client)]]
    return float(np.nanmean(chosen)) if not np.isnan(chosen).all() else float("nan")
