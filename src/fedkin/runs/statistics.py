"""Numbers of a run, from its lines in rounds.jsonl and its clients' last values. Accuracies are fractions."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

import numpy as np

from fedkin.errors import BadInput
from fedkin.metrics import METRICS
from fedkin.runs import spent

AVERAGES = ("macro", "micro")  # over the relevant clients, where it is known who is irrelevant
APART = "_irrelevant"  # what is added to the name of an average over the irrelevant clients; "_all": over all clients
STATISTICS = ("last", "last10", "best", "validated")

Accuracy = dict[str, dict[str, dict[str, float | None]]]  # of any metric: kind -> average -> statistic


def is_scored(line: dict[str, Any]) -> bool:
    """Whether the round of this line was scored."""
    return "loss" in line or "accuracy" in line


def in_line(line: dict[str, Any], metric: str) -> dict[str, dict[str, float | None]]:
    """Return what the line of a round says of a metric: kind -> average -> value; empty where it says nothing."""
    found: dict[str, dict[str, float | None]] = line.get("metrics", {}).get(metric, {})
    return line.get("accuracy", {}) if metric == "accuracy" else found


def metrics_in(lines: list[dict[str, Any]]) -> list[str]:
    """Return the metrics that the last scored round has."""
    last: dict[str, Any] = next((line for line in reversed(lines) if is_scored(line)), {})
    return [*(["accuracy"] if "accuracy" in last else []), *last.get("metrics", {})]


def of_metric(summary: dict[str, Any], metric: str, spread: bool = False) -> Accuracy:
    """Return what a summary says of a metric: kind -> average -> statistic; with `spread`: how much seeds vary."""
    if metric == "accuracy":
        found: Accuracy = summary.get("spread" if spread else "accuracy", {})
    else:
        found = summary.get("metrics_spread" if spread else "metrics", {}).get(metric, {})
    return found


def deciding(summary: dict[str, Any]) -> Accuracy:
    """Return what a summary says of the metric that decides; older versions decided by accuracy."""
    return of_metric(summary, summary.get("metric", "accuracy"))


def measured(lines: list[dict[str, Any]], metric: str = "accuracy") -> Accuracy:
    """Return four statistics of every kind and average of a metric.

    `last` is that of the last round, `last10` the mean of the last ten scored rounds, `best` the best of all, and
    `validated` that of the round that was best by the validation samples (None without a validation split).
    """
    scored = [found for line in lines if (found := in_line(line, metric))]
    kinds = [kind for kind in (scored[-1] if scored else {}) if "/" not in kind]
    return {
        kind: {average: over_rounds(scored, kind, average, metric) for average in scored[-1][kind]} for kind in kinds
    }


def over_rounds(
    scored: list[dict[str, dict[str, float | None]]], kind: str, average: str, metric: str
) -> dict[str, float | None]:
    """Return the four statistics of one kind and average; None where some round has no value."""
    values = [value for found in scored if (value := found[kind][average]) is not None]
    if len(values) < len(scored):
        return dict.fromkeys(STATISTICS)
    checks = [c for found in scored if (c := found.get(f"{kind}/validation", {}).get(average)) is not None]
    higher = METRICS[metric].higher_is_better
    chosen = int(np.argmax(checks) if higher else np.argmin(checks)) if len(checks) == len(values) else None
    return {
        "last": values[-1],
        "last10": float(np.mean(values[-10:])),
        "best": float(np.max(values) if higher else np.min(values)),
        "validated": None if chosen is None else values[chosen],
    }


def averaged_rounds(summary: dict[str, Any]) -> int:
    """Return of how many scored rounds `last10` is the mean: of ten, or of all where fewer are scored."""
    rounds, every = summary["rounds"], summary["evaluate_every"]
    return int(min(10, -(-rounds // every)))


def cost(lines: list[dict[str, Any]], before: dict[str, float]) -> dict[str, float]:
    """Return what was sent in all, in models and in bytes, with what was sent before round 1; and the client-rounds."""
    names = ("uploads", "downloads", "bytes_up", "bytes_down")
    total = {name: before.get(name, 0) + sum(line[name] for line in lines) for name in names}
    counted = {name: int(value) if float(value).is_integer() else value for name, value in total.items()}
    return counted | {"client_rounds": client_rounds(lines)}


def client_rounds(lines: list[dict[str, Any]]) -> int:
    """Return the papers' cost: how many clients replied, summed over rounds, however much each of them sent."""
    return sum(int(line["replied"]) for line in lines)


def decided(
    lines: list[dict[str, Any]], last: dict[str, np.ndarray], metric: str, irrelevant: Sequence[bool] | None = None
) -> dict[str, Any]:
    """Return what a summary says of the metric that decides: how evenly clients fare, and how steady the rounds are.

    `last` are the clients' last values by kind. Who is known to be irrelevant is left out.
    """
    if irrelevant is not None and not all(irrelevant):
        last = {kind: values[~np.array(irrelevant)] for kind, values in last.items()}
    scored = [found for line in lines if (found := in_line(line, metric))]
    kinds = [kind for kind in (scored[-1] if scored else {}) if "/" not in kind]
    steady = {kind: [found[kind]["micro"] for found in scored if found[kind]["micro"] is not None] for kind in kinds}
    return {
        "metric": metric,
        "fairness": {kind: fairness(values, METRICS[metric].higher_is_better) for kind, values in last.items()},
        "stability": {kind: stability(values) for kind, values in steady.items() if values},  # type: ignore[arg-type]
    }


def fairness(clients: np.ndarray, higher_is_better: bool = True) -> dict[str, float | None]:
    """Return how evenly clients fare: the standard deviation of their values, and the mean of the worst tenth."""
    values = np.sort(clients[np.isfinite(clients)])
    values = values if higher_is_better else values[::-1]
    if not len(values):
        return {"std_clients": None, "worst10": None}
    return {"std_clients": float(values.std()), "worst10": float(values[: max(1, len(values) // 10)].mean())}


def merged(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the summaries of several runs of one method: means, and standard deviations in `spread`.

    Every pair of a seed and a split counts as one repetition. `spread` is empty for one run.
    """

    def over(f: Any, metric: str = "accuracy") -> Accuracy:
        found = [of_metric(summary, metric) for summary in summaries]
        return {
            kind: {
                average: {
                    statistic: None
                    if any(one[kind][average][statistic] is None for one in found)
                    else float(f([one[kind][average][statistic] for one in found]))
                    for statistic in statistics
                }
                for average, statistics in averages.items()
                if all(average in one[kind] for one in found)  # older versions did not keep irrelevant clients apart
            }
            for kind, averages in found[0].items()
        }

    def std(values: list[float]) -> float:
        return float(np.std(values, ddof=1))

    known = [name for name in summaries[0].get("metrics", {}) if all(name in s.get("metrics", {}) for s in summaries)]
    several = len(summaries) > 1

    def mean(name: str) -> dict[str, Any]:
        """Return the means of the numbers that every seed has; an older version wrote fewer."""
        found = [s.get(name, {}) for s in summaries]
        known = [key for key in found[0] if all(other.get(key) is not None for other in found)]
        return {key: float(np.mean([other[key] for other in found])) for key in known}

    return {
        "method": summaries[0]["method"],
        **({"scored": summaries[0]["scored"]} if "scored" in summaries[0] else {}),
        **spent.merged(summaries),
        "metric": summaries[0].get("metric", "accuracy"),
        "accuracy": over(np.mean),
        "spread": over(std) if several else {},
        "metrics": {name: over(np.mean, name) for name in known},
        "metrics_spread": {name: over(std, name) for name in known} if several else {},
        "fairness": {
            kind: {key: float(np.mean([s["fairness"][kind][key] for s in summaries])) for key in values}
            for kind, values in summaries[0]["fairness"].items()
            if all(s["fairness"].get(kind, {}).get(key) is not None for s in summaries for key in values)
        },
        "stability": {
            kind: float(np.mean([s["stability"][kind] for s in summaries]))
            for kind in summaries[0].get("stability", {})
            if all(s.get("stability", {}).get(kind) is not None for s in summaries)
        },
        "observed": mean_other_numbers([s.get("observed", {}) for s in summaries]),
        **{name: mean(name) for name in ("cost", "time", "memory")},
        "rounds": summaries[0]["rounds"],
        "evaluate_every": summaries[0]["evaluate_every"],
        "dropped": sum(s["dropped"] for s in summaries),
        "never_selected": float(np.mean([s["never_selected"] for s in summaries])),
        "seeds": list(dict.fromkeys(seed for s in summaries for seed in s["seeds"])),
        "splits": list(dict.fromkeys(split for s in summaries for split in s.get("splits", [0]))),
        "data_seeds": list(dict.fromkeys(seed for s in summaries for seed in s.get("data_seeds", [0]))),
        "runs": sum(s.get("runs", 1) for s in summaries),
        "experiment": summaries[0]["experiment"],
    }


def mean_other_numbers(several: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over seeds of what `other_numbers` gives; None where a seed has no such number."""
    found: dict[str, Any] = {}
    for group, names in several[0].items():
        for name, values in names.items():
            for word in values:
                seeds = [one.get(group, {}).get(name, {}).get(word) for one in several]
                mean = None if any(value is None for value in seeds) else float(np.mean(seeds))
                found.setdefault(group, {}).setdefault(name, {})[word] = mean
    return found


def judged_by(summary: dict[str, Any]) -> str:
    """Return the kind of score that a method is judged by, from its summary; older versions judged all by `post`."""
    return str(summary["experiment"].get("resolved", {}).get("judged", "post"))


def pools(summary: dict[str, Any]) -> bool:
    """Return whether a method trains on everybody's samples together, from its summary."""
    return bool(summary["experiment"].get("resolved", {}).get("pools", False))


WINDOW = 5  # rounds whose mean must pass a target
TAIL = 50  # rounds over which stability is taken


def rounds_to(target: float, values: list[float]) -> int | None:
    """Return the first round t >= 5 at which the mean over rounds t-4 .. t is above the target; None if there is none.

    `values` are the accuracies of every round, from the first.
    """
    ends = range(WINDOW, len(values) + 1)
    return next((t for t in ends if fsum(values[t - WINDOW : t]) / WINDOW > target), None)


def cost_to(target: float, values: list[float], costs: list[float]) -> float | None:
    """Return what the rounds cost up to the one at which the target is reached, that one included."""
    reached = rounds_to(target, values)
    return None if reached is None else float(sum(costs[:reached]))


def stability(values: list[float]) -> float | None:
    """Return the standard deviation of a metric over the last 50 scored rounds: smaller is steadier."""
    return float(np.std(values[-TAIL:])) if len(values) > 1 else None


def every_round(lines: list[dict[str, Any]], kind: str, average: str, metric: str = "accuracy") -> list[float]:
    """Return a metric of a run that was scored in every round."""
    if not all(map(is_scored, lines)):
        raise BadInput("Rounds to a target are counted only where every round is scored; use --evaluate-every 1.")
    found = [value for line in lines if (value := in_line(line, metric).get(kind, {}).get(average)) is not None]
    if len(found) < len(lines):
        raise BadInput(f"This run has no {average} {METRICS[metric].label} of the kind '{kind}'.")
    return found


def no_participation(n: int) -> dict[str, np.ndarray]:
    """Return the participation of n clients before round 1."""
    return {name: np.zeros(n, dtype=np.int64) for name in ("selected", "replied", "left_out")}


def add_participation(counts: dict[str, np.ndarray], ids: np.ndarray, kept: np.ndarray) -> None:
    """Count one round, in place: who was selected, who of them replied, and whose update counted for nothing."""
    counts["selected"][ids] += 1
    counts["replied"][ids[~np.isnan(kept)]] += 1
    counts["left_out"][ids[kept == 0]] += 1


def by_round(rounds: list[dict[str, Any]], values: np.ndarray) -> list[np.ndarray]:
    """Cut an array of one value for each selected client into rounds. A run at work, or killed, may have more values.

    Read the rounds before the values: a run writes them last, so that the values of every line are there.
    """
    ends = np.cumsum([line["selected"] for line in rounds], dtype=int)
    return np.split(values[: ends[-1]], ends[:-1]) if len(ends) else []


def participation(n: int, ids: list[np.ndarray], kept: list[np.ndarray] | None) -> dict[str, np.ndarray]:
    """Count all rounds of a run: who was selected in each, and how far each update counted, where that is known."""
    found = no_participation(n)
    for who, weights in zip(ids, kept or [np.full(len(who), np.nan) for who in ids], strict=True):
        add_participation(found, who, weights)
    return found


OBSERVED = ("filter", "train", "heterogeneity", "gradient", "select")


def other_numbers(lines: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return what the rounds say beyond accuracies: of the filter, of training losses, of gap and skew, of gradients,
    of scores.

    `last` is the last value of a number, `last10` the mean of its last ten values.
    """
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    for group in OBSERVED:
        said = [line[group] for line in lines if group in line]
        for name in said[-1] if said else ():
            values = [value[name] for value in said if value.get(name) is not None]
            last10 = float(np.mean(values[-10:])) if values else None
            found.setdefault(group, {})[name] = {"last": said[-1][name], "last10": last10}
    return found
