"""What a preset's rows came to, as numbers beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedkin.presets.preset import STATISTICS, Preset, Target
from fedkin.runs import statistics
from fedkin.runs.run import Run

Outcome = dict[str, Any]


def outcome(preset: Preset, runs: Mapping[str, list[Run]]) -> Outcome:
    """For every row its accuracies over the seeds, how steady it was, and in which round and after how many uploads it
    reached each target (None if it did not). Accuracies are fractions."""
    rows = {name: row_outcome(preset, name, of) for name, of in runs.items()}
    about = {"name": preset.name, "about": preset.about, "note": preset.note, "kind": preset.kind}
    return about | {"rows": rows, "targets": [target_outcome(preset, target, rows, runs) for target in preset.targets]}


def row_outcome(preset: Preset, name: str, runs: list[Run]) -> Outcome:
    """One row over its seeds."""
    summaries = [run.summary for run in runs]
    values: Outcome = {
        statistic: [summary["accuracy"][preset.kind]["micro"][statistic] for summary in summaries]
        for statistic in STATISTICS
    }
    printed = {word: round(number / 100, 6) for word, number in preset.published.get(name, {}).items()}
    return {word: mean_and_std(several) for word, several in values.items()} | {
        "published": printed,
        "stability": mean_and_std([summary["stability"][preset.kind] for summary in summaries]),
        "rounds": summaries[0]["rounds"],
        "uploads": float(np.mean([summary["cost"]["uploads"] for summary in summaries])),
        "seconds": float(np.mean([summary["time"]["total_s"] for summary in summaries])),
    }


def mean_and_std(values: list[float | None]) -> dict[str, float | None]:
    """The mean over seeds and their standard deviation, which is None for one seed."""
    have = [value for value in values if value is not None]
    return {
        "mean": float(np.mean(have)) if have else None,
        "std": float(np.std(have, ddof=1)) if len(have) > 1 else None,
    }


def target_outcome(
    preset: Preset, target: Target, rows: Mapping[str, Outcome], runs: Mapping[str, list[Run]]
) -> Outcome:
    """One target: its accuracy, and when each row reached it, seed by seed."""
    accuracy = target.value + (rows[target.over]["last10"]["mean"] if target.over else 0.0)
    result: Outcome = {"accuracy": accuracy, "value": target.value, "over": target.over, "rows": {}}
    for name, of in runs.items():
        seeds: Outcome = {"rounds": [], "uploads": []}
        for run in of:
            lines = run.lines
            values = statistics.every_round(lines, preset.kind, "micro")
            seeds["rounds"].append(statistics.rounds_to(accuracy, values))
            seeds["uploads"].append(statistics.cost_to(accuracy, values, [line["uploads"] for line in lines]))
        printed = target.published.get(name)
        result["rows"][name] = seeds | ({"published": list(printed)} if printed else {})
    return result
