"""What a preset's rows came to, as tables of texts for a terminal and for the page.

`presets/outcome.py` computes the numbers.
"""

from __future__ import annotations

import numpy as np

from fedkin.presets.outcome import Outcome
from fedkin.presets.preset import STATISTICS
from fedkin.report.formats import percent
from fedkin.report.words import MODELS
from fedkin.runs.statistics import TAIL

WORDS = (
    "last 10: mean of the last ten rounds; stability: standard deviation of the accuracy over the last "
    f"{TAIL} rounds, smaller is steadier."
)
REACHED = "Rounds, and model uploads, until the mean of five rounds is above a target"

Grid = list[list[str]]  # a head and rows of texts; columns with the head PUBLISHED are the paper's
PUBLISHED = "published"


def accuracy_title(outcome: Outcome) -> str:
    return f"Accuracy in % {MODELS[outcome['kind']]}, mean ± standard deviation over seeds"


def accuracy_grid(outcome: Outcome) -> Grid:
    """A row of the preset a line: its accuracies, each beside the published one, and what it cost."""
    head = ["", "last 10", PUBLISHED, "best", PUBLISHED, "stability", "rounds", "uploads", "seconds"]
    grid = [head]
    for name, found in outcome["rows"].items():
        cells = [name]
        for word in STATISTICS:
            cells += [percent(found[word]["mean"], found[word]["std"]), percent(found["published"].get(word))]
        cells += [percent(found["stability"]["mean"]), f"{found['rounds']:,}", f"{found['uploads']:,.0f}"]
        grid.append([*cells, f"{found['seconds']:,.0f}"])
    return grid


def target_grid(outcome: Outcome) -> Grid:
    """A row of the preset a line, a target a column: when the row reached the target."""
    grid = [[""], *([name] for name in outcome["rows"])]
    for target in outcome["targets"]:
        rows = [target["rows"][name] for name in outcome["rows"]]
        columns = [[f"{percent(target['accuracy'])} %", *(when_reached(row) for row in rows)]]
        if any(PUBLISHED in row for row in rows):
            printed = [row.get(PUBLISHED) for row in rows]
            columns.append([PUBLISHED, *(f"{both[0]:,} ({both[1]:,})" if both else "-" for both in printed)])
        grid = [[*line, *cells] for line, cells in zip(grid, zip(*columns, strict=True), strict=True)]
    return grid


def when_reached(row: Outcome) -> str:
    """Rounds and uploads, means over the seeds that reached the target, and how many did if not all."""
    rounds, uploads = ([value for value in row[word] if value is not None] for word in ("rounds", "uploads"))
    if not rounds:
        return "not reached"
    some = f" {len(rounds)}/{len(row['rounds'])}" if len(rounds) < len(row["rounds"]) else ""
    return f"{np.mean(rounds):,.0f} ({np.mean(uploads):,.0f}){some}"


def target_notes(outcome: Outcome) -> str:
    """How the targets that depend on a row of the preset were set."""
    return " ".join(target_note(target) for target in outcome["targets"] if target["over"])


def target_note(target: Outcome) -> str:
    more = f" + {100 * target['value']:g} point" if target["value"] else ""
    return f"{percent(target['accuracy'])} %: the last 10 of {target['over']}{more}."
