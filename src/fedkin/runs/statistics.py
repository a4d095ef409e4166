"""Numbers of a run, from its lines in rounds.jsonl and its clients' accuracies. Accuracies are fractions."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np

from fedkin.errors import BadInput

AVERAGES = ("macro", "micro")
STATISTICS = ("last", "last10", "best", "validated")

Accuracy = dict[str, dict[str, dict[str, float | None]]]  # kind -> average -> statistic


def accuracy(lines: list[dict[str, Any]]) -> Accuracy:
    """Return four statistics of every kind and average of accuracy.

    `last` is that of the last round, `last10` the mean of the last ten scored rounds, `best` the largest of all, and
    `validated` that of the round whose validation accuracy was best (None without a validation split).
    """
    scored = [line["accuracy"] for line in lines if "accuracy" in line]
    kinds = [kind for kind in (scored[-1] if scored else {}) if "/" not in kind]
    result: Accuracy = {}
    for kind in kinds:
        result[kind] = {}
        for average in AVERAGES:
            values = [score[kind][average] for score in scored]
            if any(value is None for value in values):
                result[kind][average] = dict.fromkeys(STATISTICS)
                continue
            checks = [score.get(f"{kind}/validation", {}).get(average) for score in scored]
            validated = None if any(c is None for c in checks) else values[int(np.argmax(checks))]
            result[kind][average] = {
                "last": values[-1],
                "last10": float(np.mean(values[-10:])),
                "best": float(np.max(values)),
                "validated": validated,
            }
    return result


def cost(lines: list[dict[str, Any]], before: dict[str, float]) -> dict[str, float]:
    """Return what was sent in all, in models and in bytes, with what was sent before round 1; and the client-rounds."""
    names = ("uploads", "downloads", "bytes_up", "bytes_down")
    total = {name: before.get(name, 0) + sum(line[name] for line in lines) for name in names}
    counted = {name: int(value) if float(value).is_integer() else value for name, value in total.items()}
    return counted | {"client_rounds": client_rounds(lines)}


def client_rounds(lines: list[dict[str, Any]]) -> int:
    """Return the papers' cost: how many clients replied, summed over rounds, however much each of them sent."""
    return sum(int(line["replied"]) for line in lines)


def fairness(clients: np.ndarray) -> dict[str, float | None]:
    """Return how evenly clients fare: the standard deviation of their accuracies, and the mean of the worst tenth."""
    values = np.sort(clients[~np.isnan(clients)])
    if not len(values):
        return {"std_clients": None, "worst10": None}
    return {"std_clients": float(values.std()), "worst10": float(values[: max(1, len(values) // 10)].mean())}


def merged(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the summaries of several runs of one method: means, and standard deviations in `spread`.

    Every pair of a seed and a split counts as one repetition. `spread` is empty for one run.
    """

    def over(f: Any) -> Accuracy:
        first: Accuracy = summaries[0]["accuracy"]
        return {
            kind: {
                average: {
                    statistic: None
                    if any(s["accuracy"][kind][average][statistic] is None for s in summaries)
                    else float(f([s["accuracy"][kind][average][statistic] for s in summaries]))
                    for statistic in statistics
                }
                for average, statistics in averages.items()
            }
            for kind, averages in first.items()
        }

    def mean(name: str) -> dict[str, Any]:
        """Return the means of the numbers that every seed has; an older version wrote fewer."""
        found = [s.get(name, {}) for s in summaries]
        known = [key for key in found[0] if all(other.get(key) is not None for other in found)]
        return {key: float(np.mean([other[key] for other in found])) for key in known}

    return {
        "method": summaries[0]["method"],
        "accuracy": over(np.mean),
        "spread": over(lambda values: np.std(values, ddof=1)) if len(summaries) > 1 else {},
        "fairness": {
            kind: {key: float(np.mean([s["fairness"][kind][key] for s in summaries])) for key in values}
            for kind, values in summaries[0]["fairness"].items()
            if all(value is not None for value in values.values())
        },
        "stability": {
            kind: float(np.mean([s["stability"][kind] for s in summaries]))
            for kind in summaries[0]["accuracy"]
            if all(s.get("stability", {}).get(kind) is not None for s in summaries)
        },
        "observed": mean_other_numbers([s.get("observed", {}) for s in summaries]),
        "cost": mean("cost"),
        "time": mean("time"),
        "rounds": summaries[0]["rounds"],
        "evaluate_every": summaries[0]["evaluate_every"],
        "dropped": sum(s["dropped"] for s in summaries),
        "never_selected": float(np.mean([s["never_selected"] for s in summaries])),
        "seeds": list(dict.fromkeys(seed for s in summaries for seed in s["seeds"])),
        "splits": list(dict.fromkeys(split for s in summaries for split in s.get("splits", [0]))),
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
    """Return the standard deviation of the accuracy over the last 50 scored rounds: smaller is steadier."""
    return float(np.std(values[-TAIL:])) if len(values) > 1 else None


def every_round(lines: list[dict[str, Any]], kind: str, average: str) -> list[float]:
    """Return the accuracies of a run that was scored in every round."""
    if any("accuracy" not in line for line in lines):
        raise BadInput("Rounds to a target are counted only where every round is scored; use --evaluate-every 1.")
    found = [line["accuracy"].get(kind, {}).get(average) for line in lines]
    if any(value is None for value in found):
        raise BadInput(f"This run has no {average} accuracy of the kind '{kind}'.")
    return found


def no_participation(n: int) -> dict[str, np.ndarray]:
    """Return the participation of n clients before round 1."""
    return {name: np.zeros(n, dtype=np.int64) for name in ("selected", "replied", "left_out")}


def add_participation(counts: dict[str, np.ndarray], ids: np.ndarray, kept: np.ndarray) -> None:
    """Count one round, in place: who was selected, who of them replied, and whose update counted for nothing."""
    counts["selected"][ids] += 1
    counts["replied"][ids[~np.isnan(kept)]] += 1
    counts["left_out"][ids[kept == 0]] += 1


def participation(n: int, ids: list[np.ndarray], kept: list[np.ndarray] | None) -> dict[str, np.ndarray]:
    """Count all rounds of a run: who was selected in each, and how far each update counted, where that is known."""
    found = no_participation(n)
    for who, weights in zip(ids, kept or [np.full(len(who), np.nan) for who in ids], strict=True):
        add_participation(found, who, weights)
    return found


OBSERVED = ("filter", "train", "heterogeneity", "select")


def other_numbers(lines: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return what the rounds say beyond accuracies: of the filter, of training losses, of gap and skew, of scores.

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
