"""Chooses the run whose model is used, where a folder holds several methods or seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedkin import metrics
from fedkin.answers.site import ALONE, JOIN
from fedkin.errors import BadInput, require, unknown
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.run import Run
from fedkin.runs.several import finished_runs

WHOSE = {"global": "by their common models", "judged": "for all clients"}


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
    kinds: Sequence[str] = ("global",),
) -> Choice:
    """Return the run to take a model from.

    Of several methods it is the one that a comparison recommends to the client or, if it is not clear which, the best
    one: on the test samples of the client or, without a client, on those of all clients, by the first of these `kinds`
    of model that any method has. Of several seeds and splits it is the first:
    the best one of them would only be the luckiest.
    """
    runs = finished_runs(folder)
    names = list(dict.fromkeys(run.method for run in runs))
    if method is not None and method not in names:
        raise unknown("method in this folder", method, names)
    why = ""
    if method is None:
        found = recommended(CommandFolder(Path(folder)), client)
        method, why = found or best_method(runs, names, client, ("judged",) if client is not None else kinds)
    mine = [run for run in runs if run.method == method]
    seeds = sorted({run.seed for run in mine})
    if seed is not None and seed not in seeds:
        raise BadInput(f"{folder} has no run of {method} with seed {seed}; there are {', '.join(map(str, seeds))}.")
    run = next(run for run in mine if seed is None or run.seed == seed)
    which = f" with seed {run.seed}, the first of {len(mine)} runs" if len(mine) > 1 and seed is None else ""
    return Choice(run, f"This is {method}{which}{why}." if which or why else "")


def recommended(folder: CommandFolder, client: str | None) -> tuple[str, str] | None:
    """Return the method that a comparison recommends to a client, and that it does; None where it recommends none."""
    sites = folder.summary().get("sites", {}).get("sites", [])
    for site in sites:
        name = {JOIN: site["method"], ALONE: site["against"]}.get(site["verdict"])
        if site["site"] == client and name is not None:
            return name, f", as the comparison recommends to {client} ({site['verdict']})"
    return None


def best_method(runs: list[Run], names: list[str], client: str | None, kinds: Sequence[str]) -> tuple[str, str]:
    """Return the method with the best models of the first kind that any method has, and why it is this one."""
    for kind in kinds:
        scores = {name: score_of([run for run in runs if run.method == name], kind, client) for name in names}
        known = {name: score for name, score in scores.items() if not np.isnan(score)}
        if known:
            whose = f"on the test samples of {client}" if client is not None else WHOSE[kind]
            why = f", the best of {len(known)} methods {whose}" if len(known) > 1 else ""
            return max(known, key=lambda name: known[name]), why
    common = client is not None or "judged" in kinds or len(names) == 1
    require(common, "No method in this folder has a common model; name a client with --client.")
    return names[0], f", the first of {len(names)} methods, which were not scored" if len(names) > 1 else ""


def score_of(runs: list[Run], kind: str, client: str | None) -> float:
    """Return the mean score over runs of this kind of model, of one client or of all; nan where there is none."""
    kind = runs[0].judged if kind == "judged" else kind
    better = 1.0 if metrics.METRICS[runs[0].metric].higher_is_better else -1.0
    each = [better * run.last()[kind] for run in runs if kind in run.last()]
    if not each:
        return float("nan")
    values = np.stack(each)  # (runs, n)
    chosen = values if client is None else values[:, [runs[0].number(client)]]
    return float(np.nanmean(chosen)) if not np.isnan(chosen).all() else float("nan")
