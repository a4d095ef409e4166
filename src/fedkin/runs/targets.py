"""How soon, and after how many uploads, runs reach a target: a value of the metric that decides.

    0.9             accuracy 0.9, or 90%
    fedavg          what the arm fedavg reaches in its last ten rounds, mean over its runs
    fedavg+0.01     a hundredth more
    post:0.9        of the clients' own models; the kinds are those of the table (post, global, recv, test)

A target is reached in the first round at which the mean of five rounds is above it (below it, where lower is better).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from fedkin.errors import BadInput, require, unknown
from fedkin.evaluate import KINDS
from fedkin.metrics import METRICS
from fedkin.runs import statistics
from fedkin.runs.run import Run
from fedkin.runs.verdict import is_local

Outcome = dict[str, Any]
COUNTED = ("rounds", "uploads", "client_rounds")
PREFERRED = ("test", "global", "post", "recv")  # kinds, the one that papers count by first
MARGIN = re.compile(r"(?P<over>.+?)(?P<margin>[+-](?:\d+\.?\d*|\.\d+))")


@dataclass(frozen=True)
class Target:
    """A value to be reached or, with `over`, how much more than that arm reaches in its last ten rounds."""

    text: str  # as it was asked for
    value: float
    over: str | None = None
    kind: str | None = None  # of models; None: the first of `PREFERRED` that all methods have


def read_target(asked: str | float, arms: Sequence[str]) -> Target:
    """Return the target that a number or a text asks for in a comparison of these arms."""
    text = str(asked).strip()
    kind, colon, rest = text.partition(":")
    kind, rest = (kind, rest.strip()) if colon and kind in KINDS else ("", text)
    value = number(rest)
    if value is not None:
        return Target(text, value, None, kind or None)
    match = MARGIN.fullmatch(rest)
    if rest not in arms and match and match["over"] in arms:
        return Target(text, float(match["margin"]), match["over"], kind or None)
    if rest not in arms:
        raise unknown("arm to set a target by", match["over"] if match else rest, arms)
    return Target(text, 0.0, rest, kind or None)


def number(text: str) -> float | None:
    """Return the number that a text is, in percent if it says so; None if it is none."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def checked_targets(
    asked: Sequence[str | float], arms: Mapping[str, Collection[str]], metric: str | None
) -> tuple[str, ...]:
    """Return targets as texts; refuses what is no target, an accuracy above 1, and kinds of models that nobody has.

    `arms` has the kinds of models that each arm is scored by.
    """
    for target in [read_target(one, list(arms)) for one in asked]:
        kinds = [arms[target.over]] if target.over is not None else list(arms.values())
        has = target.kind is None or any(target.kind in some for some in kinds)
        whose = f"{target.over} is not" if target.over else "no arm here is"
        require(has, f"The target {target.text} needs {target.kind}, and {whose} scored by it; name another kind.")
        share = metric is None or METRICS[metric].percent
        fits = target.over is not None or not share or target.value <= 1
        require(fits, f"The target {target.text} is above 1; a share is at most 1: 0.9 or 90%, not 90.")
    return tuple(dict.fromkeys(str(one).strip() for one in asked))


def outcomes(asked: Sequence[str], runs: Mapping[str, Sequence[Run]]) -> list[Outcome]:
    """Return for each target its level, and when each run of each method reached it."""
    return [outcome(read_target(one, list(runs)), runs) for one in asked]


def outcome(target: Target, runs: Mapping[str, Sequence[Run]]) -> Outcome:
    """Return one target: its level, and in which round and after how much each run of each method reached it.

    A number is None for a run that did not reach it. Methods that are not scored by such models are not there.
    """
    metric = METRICS[next(iter(runs.values()))[0].metric]
    kind = target.kind or kind_for(runs, target.over, metric.name)
    level = target.value
    if target.over is not None:
        each = [last_ten(run, metric.name, kind) for run in runs[target.over]]
        known = [value for value in each if value is not None]
        level = level + float(np.mean(known)) if known else nan  # which nobody reaches
    sign = 1.0 if metric.higher_is_better else -1.0
    rows: dict[str, Outcome] = {}
    for name, several in runs.items():
        if all(kind in statistics.of_metric(run.summary, metric.name) for run in several):
            found = [counted(run, kind, metric.name, sign, level) for run in several]
            rows[name] = {word: [one[word] for one in found] for word in COUNTED}
    about = {"target": target.text, "metric": metric.name, "kind": kind, "level": None if isnan(level) else level}
    return about | {"over": target.over, "value": target.value, "rows": rows}


def last_ten(run: Run, metric: str, kind: str) -> float | None:
    """Return the mean of a run's last ten rounds over all samples; None where it has none of the kind."""
    return statistics.of_metric(run.summary, metric).get(kind, {}).get("micro", {}).get("last10")


def counted(run: Run, kind: str, metric: str, sign: float, level: float) -> Outcome:
    """Return in which round, after how many uploads and after how many client-rounds a run reached a level."""
    try:
        values = [sign * value for value in statistics.every_round(run.lines, kind, "micro", metric)]
    except BadInput:
        require(all(map(statistics.is_scored, run.lines)), f"{run.name}: {UNSCORED}")
        return dict.fromkeys(COUNTED)  # the metric was not defined in some round
    found: Outcome = {"rounds": statistics.rounds_to(sign * level, values)}
    for word, key in (("uploads", "uploads"), ("client_rounds", "replied")):
        each = [float(line[key]) for line in run.lines]
        cost = statistics.cost_to(sign * level, values, each)
        before = run.summary["cost"][word] - sum(each)  # what was sent before round 1
        found[word] = None if cost is None else cost + before
    return found


UNSCORED = "rounds to a target are counted only where every round is scored; run it anew with --evaluate-every 1."


def kind_for(runs: Mapping[str, Sequence[Run]], over: str | None, metric: str) -> str:
    """Return the kind of models that a target is counted by: the first of `PREFERRED` that all methods have, and also
    the arm that sets it; training alone need not have it."""
    named = [name for name in runs if not is_local(name) or name == over] or list(runs)
    has = [set(statistics.of_metric(runs[name][0].summary, metric)) for name in named]
    return next((kind for kind in PREFERRED if all(kind in kinds for kinds in has)), "post")


def mean_of(row: Outcome, word: str) -> tuple[float | None, float]:
    """Return the mean over the runs that reached a target, and their share of all."""
    reached = [value for value in row[word] if value is not None]
    return (float(np.mean(reached)) if reached else None), len(reached) / max(1, len(row[word]))
