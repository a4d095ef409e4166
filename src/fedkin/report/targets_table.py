"""When methods reached the targets of a comparison, as a table of texts for a terminal, a page and files."""

from __future__ import annotations

from fedkin.metrics import METRICS
from fedkin.report.formats import measure
from fedkin.report.words import MODELS
from fedkin.runs.targets import Outcome, mean_of

Grid = list[list[str]]  # a head and rows of texts


def title(targets: list[Outcome]) -> str:
    above = "above" if METRICS[targets[0]["metric"]].higher_is_better else "below"
    return f"Rounds, and model uploads, until the mean of five rounds is {above} a target"


def grid(targets: list[Outcome], methods: list[str]) -> Grid:
    """A method a line, a target a column."""
    head = ["method", *(level(target) for target in targets)]
    return [head, *([name, *(reached(target, name) for target in targets)] for name in methods)]


def level(target: Outcome) -> str:
    """A target as a head of a column: its level with the unit."""
    metric = METRICS[target["metric"]]
    return f"{target['kind']} {measure(metric, target['level'])}" + (" %" if metric.percent else "")


def reached(target: Outcome, method: str) -> str:
    """Rounds and uploads, means over the runs that reached the target, and how many did if not all; '-' for a method
    without such models."""
    row = target["rows"].get(method)
    if row is None:
        return "-"
    rounds, share = mean_of(row, "rounds")
    uploads, _ = mean_of(row, "uploads")
    if rounds is None or uploads is None:
        return "not reached"
    number = len(row["rounds"])
    return f"{rounds:,.0f} ({uploads:,.0f})" + (f" {round(share * number)}/{number}" if share < 1 else "")


def notes(targets: list[Outcome]) -> str:
    """Whose scores are counted, and how the targets that depend on an arm were set."""
    kinds = dict.fromkeys(target["kind"] for target in targets)
    said = [f"{kind}: {METRICS[targets[0]['metric']].label} {MODELS[kind]}, over all test samples." for kind in kinds]
    for target in targets:
        if target["over"] is not None:
            sign = "+" if target["value"] > 0 else "-"
            more = f" {sign} {abs(target['value']):g}" if target["value"] else ""
            said.append(f"{level(target)}: the last ten rounds of {target['over']}{more}.")
    return " ".join(said)
