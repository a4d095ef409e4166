"""What a preset's rows came to, beside what was published: as numbers, and as tables for a terminal and a page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedkin.compare import Arm
from fedkin.presets import Preset, Target
from fedkin.presets.preset import STATISTICS
from fedkin.results import metrics
from fedkin.results.record import Run
from fedkin.results.table import percent
from fedkin.results.words import MODELS

Found = dict[str, Any]


def found(preset: Preset, plan: list[Arm]) -> Found:
    """For every row its accuracies over the seeds, how steady it was, and in which round and after how many uploads it
    reached each target (None where it did not); accuracies are fractions."""
    runs: dict[str, list[Run]] = {}
    for arm in plan:
        runs.setdefault(arm.experiment.method.name, []).append(Run(arm.folder))
    rows = {name: row(preset, name, of) for name, of in runs.items()}
    about = {"name": preset.name, "about": preset.about, "note": preset.note, "kind": preset.kind}
    return about | {"rows": rows, "targets": [reached(preset, target, rows, runs) for target in preset.targets]}


def row(preset: Preset, name: str, runs: list[Run]) -> Found:
    summaries = [run.summary for run in runs]
    values: Found = {
        statistic: [summary["accuracy"][preset.kind]["micro"][statistic] for summary in summaries]
        for statistic in STATISTICS
    }
    printed = {word: round(number / 100, 6) for word, number in preset.published.get(name, {}).items()}
    return {word: spread(several) for word, several in values.items()} | {
        "published": printed,
        "stability": spread([summary["stability"][preset.kind] for summary in summaries]),
        "rounds": summaries[0]["rounds"],
        "uploads": float(np.mean([summary["cost"]["uploads"] for summary in summaries])),
        "seconds": float(np.mean([summary["time"]["total_s"] for summary in summaries])),
    }


def spread(values: list[float | None]) -> dict[str, float | None]:
    """The mean over seeds and their standard deviation, which one seed has not."""
    have = [value for value in values if value is not None]
    return {
        "mean": float(np.mean(have)) if have else None,
        "std": float(np.std(have, ddof=1)) if len(have) > 1 else None,
    }


def reached(preset: Preset, target: Target, rows: Mapping[str, Found], runs: dict[str, list[Run]]) -> Found:
    """One target: what it is, and when each row reached it, seed by seed."""
    accuracy = target.value + (rows[target.over]["last10"]["mean"] if target.over else 0.0)
    result: Found = {"accuracy": accuracy, "value": target.value, "over": target.over, "rows": {}}
    for name, of in runs.items():
        seeds: Found = {"rounds": [], "uploads": []}
        for run in of:
            lines = run.rounds()
            values = metrics.every_round(lines, preset.kind, "micro")
            seeds["rounds"].append(metrics.rounds_to(accuracy, values))
            seeds["uploads"].append(metrics.cost_to(accuracy, values, [line["uploads"] for line in lines]))
        printed = target.published.get(name)
        result["rows"][name] = seeds | ({"published": list(printed)} if printed else {})
    return result


WORDS = (
    "last 10: mean of the last ten rounds; stability: standard deviation of the accuracy over the last "
    f"{metrics.TAIL} rounds, smaller is steadier."
)
REACHED = "Rounds, and model uploads, until the mean of five rounds is above a target"

Grid = list[list[str]]  # a head and rows of texts; heads named PUBLISHED are the paper's
PUBLISHED = "published"


def scored(result: Found) -> str:
    return f"Accuracy in % {MODELS[result['kind']]}, mean ± standard deviation over seeds"


def accuracies(result: Found) -> Grid:
    head = ["", "last 10", PUBLISHED, "best", PUBLISHED, "stability", "rounds", "uploads", "seconds"]
    grid = [head]
    for name, found in result["rows"].items():
        cells = [name]
        for word in STATISTICS:
            cells += [percent(found[word]["mean"], found[word]["std"]), percent(found["published"].get(word))]
        cells += [percent(found["stability"]["mean"]), f"{found['rounds']:,}", f"{found['uploads']:,.0f}"]
        grid.append([*cells, f"{found['seconds']:,.0f}"])
    return grid


def targets(result: Found) -> Grid:
    """A cell is the mean over the seeds that reached the target, and how many did if not all."""
    grid = [[""], *([name] for name in result["rows"])]
    for target in result["targets"]:
        rows = [target["rows"][name] for name in result["rows"]]
        columns = [[f"{percent(target['accuracy'])} %", *(when(row) for row in rows)]]
        if any(PUBLISHED in row for row in rows):
            printed = [row.get(PUBLISHED) for row in rows]
            columns.append([PUBLISHED, *(f"{both[0]:,} ({both[1]:,})" if both else "-" for both in printed)])
        grid = [[*line, *cells] for line, cells in zip(grid, zip(*columns, strict=True), strict=True)]
    return grid


def when(row: Found) -> str:
    rounds, uploads = ([value for value in row[word] if value is not None] for word in ("rounds", "uploads"))
    if not rounds:
        return "not reached"
    some = f" {len(rounds)}/{len(row['rounds'])}" if len(rounds) < len(row["rounds"]) else ""
    return f"{np.mean(rounds):,.0f} ({np.mean(uploads):,.0f}){some}"


def explained(target: Found) -> str:
    more = f" + {100 * target['value']:g} point" if target["value"] else ""
    return f"{percent(target['accuracy'])} %: the last 10 of {target['over']}{more}."


def explained_targets(result: Found) -> str:
    return " ".join(explained(target) for target in result["targets"] if target["over"])


def shown(result: Found) -> Group:
    """For a terminal."""
    parts: list[RenderableType] = [
        Text(result["about"], "bold"),
        Text(scored(result), "bold"),
        ruled(accuracies(result)),
    ]
    parts.append(Text(f"{WORDS} {result['note']}", "italic dim"))
    if result["targets"]:
        parts += [Text(f"\n{REACHED}", "bold"), ruled(targets(result)), Text(explained_targets(result), "italic dim")]
    return Group(*parts)


def ruled(grid: Grid) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for i, title in enumerate(grid[0]):
        table.add_column(
            title, justify="right" if i else "left", style="dim" if title == PUBLISHED else "", no_wrap=True
        )
    for line in grid[1:]:
        table.add_row(*line)
    return table


def html(result: Found) -> str:
    """For a page."""
    parts = [f"<p>{escape(result['about'])}. {escape(scored(result))}.</p>", lined(accuracies(result))]
    parts.append(f'<p class="note">{escape(WORDS)} {escape(result["note"])}</p>')
    if result["targets"]:
        parts += [f"<p>{escape(REACHED)}.</p>", lined(targets(result))]
        parts.append(f'<p class="note">{escape(explained_targets(result))}</p>')
    return "".join(parts)


def lined(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in grid[0])
    rows = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in line[1:])}</tr>'
        for line in grid[1:]
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
