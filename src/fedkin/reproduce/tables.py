"""What a preset came to as tables of texts: paper / ours ± spread / difference, and the verdict of every claim."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import numpy as np

from fedkin.comparison.exports import NONE, PLUS_MINUS, Cell, Grid, latex, markdown
from fedkin.presets.claims import NOT_RUN
from fedkin.reproduce.outcome import Outcome

WIDE = 8  # columns that a reader takes in


def mean(cell: Outcome) -> float | None:
    """The mean over the repetitions that have a number."""
    known = [value for value in cell["values"] if value is not None]
    return float(np.mean(known)) if known else None


def spread(cell: Outcome) -> float | None:
    """The standard deviation over repetitions; None for one."""
    known = [value for value in cell["values"] if value is not None]
    return float(np.std(known, ddof=1)) if len(known) > 1 else None


def number(value: float | None, counted: bool = False, sign: str = "") -> str:
    """A number as tables have it: counts whole, others with two digits."""
    if value is None:
        return NONE
    return (f"{value:{sign},.0f}" if counted else f"{value:{sign}.2f}").replace("-", "−")


def counted(cell: Outcome) -> bool:
    """Whether a cell has a number of rounds or uploads."""
    return "until the mean" in cell["is"]


def ours(cell: Outcome) -> tuple[str, str]:
    """Our number of a cell, and its spread."""
    if not cell["values"]:
        return NOT_RUN, ""
    value, deviation, whole = mean(cell), spread(cell), counted(cell)
    if value is None:
        return "not reached" if whole else NONE, ""
    reached = sum(v is not None for v in cell["values"])
    some = f" {reached}/{len(cell['values'])}" if reached < len(cell["values"]) else ""
    return number(value, whole), (f" {PLUS_MINUS} {number(deviation, whole)}" if deviation is not None else "") + some


def printed(cell: Outcome) -> str:
    """The published number of a cell, with its spread."""
    if "published" not in cell:
        return NONE
    behind = f" {PLUS_MINUS} {number(cell['published_spread'])}" if "published_spread" in cell else ""
    return number(cell["published"], counted(cell)) + behind


def difference(cell: Outcome) -> str:
    """How much our number is above the published one."""
    value = mean(cell)
    both = value is not None and "published" in cell
    return number(value - cell["published"], counted(cell), "+") if both and value is not None else NONE


def by_place(outcome: Outcome) -> dict[tuple[str, str], Outcome]:
    return {(cell["row"], cell["column"]): cell for cell in outcome["cells"]}


def table(outcome: Outcome) -> Grid:
    """Rows and columns as the paper has them; behind our number the published one, where there is one.

    A table of many columns and few rows is turned, because nobody reads so far to the right.
    """
    rows, columns = outcome["rows"], outcome["columns"]
    if len(columns) > max(WIDE, len(rows)):
        return [list(line) for line in zip(*grid_of(outcome, rows, columns), strict=True)]
    return grid_of(outcome, rows, columns)


def grid_of(outcome: Outcome, rows: list[str], columns: list[str]) -> Grid:
    """These rows and columns as texts."""
    cells = by_place(outcome)
    grid = [[Cell(""), *(Cell(column) for column in columns)]]
    for row in rows:
        line = [Cell(row)]
        for column in columns:
            cell = cells.get((row, column))
            if cell is None:
                line.append(Cell(""))
                continue
            value, behind = ours(cell)
            paper = f" (paper {printed(cell)})" if "published" in cell else ""
            line.append(Cell(value, behind + paper))
        grid.append(line)
    return grid


def long_table(outcome: Outcome) -> Grid:
    """A line a cell: paper / ours ± spread / difference."""
    grid = [[Cell(word) for word in ("", "", "paper", f"ours {PLUS_MINUS} spread", "difference", "runs")]]
    for cell in outcome["cells"]:
        value, behind = ours(cell)
        texts = (cell["row"], cell["column"], printed(cell), value + behind, difference(cell), str(len(cell["values"])))
        grid.append([Cell(text) for text in texts])
    return grid


def claims_table(outcome: Outcome) -> Grid:
    """A line a claim: what is claimed, by whom, the verdict, and the step that fares worst."""
    grid = [[Cell(word) for word in ("claim", "by", "verdict", "weakest step")]]
    for claim in outcome["claims"]:
        by = "the paper" if claim["by"] == "paper" else "us"
        grid.append([Cell(claim["text"]), Cell(by), Cell(verdict(claim), best=True), Cell(weakest(claim))])
    return grid


def verdict(claim: Outcome) -> str:
    """The verdict of a claim, with how much of it was run."""
    run = len(claim["steps"])
    part = f" ({run} of {claim['of']} comparisons run)" if 0 < run < claim["of"] else ""
    return str(claim["verdict"]) + part


def weakest(claim: Outcome) -> str:
    """The step that fares worst: by how much the higher cell is above the lower one."""
    if not claim["steps"]:
        return NONE
    step = min(claim["steps"], key=lambda one: (one["side"], one["difference"] or 0.0))
    high, low, value = step["high"], step["low"], step["difference"]
    words = "not reached" if value is None else number(value + step["margin"], sign="+")
    if low is None:
        return f"{', '.join(high)}: {words}"
    if high[1] == low[1]:
        return f"{high[0]} against {low[0]}, {high[1]}: {words}"
    if high[0] == low[0]:
        return f"{high[0]}, {high[1]} against {low[1]}: {words}"
    return f"{', '.join(high)} against {', '.join(low)}: {words}"


def readings(outcome: Outcome) -> str:
    """What the numbers of a table are: kind of model, average, statistic; and where, if there are several kinds."""
    places: dict[str, list[tuple[str, str]]] = {}
    for cell in outcome["cells"]:
        places.setdefault(cell["is"], []).append((cell["row"], cell["column"]))
    if len(places) == 1:
        return f"Numbers: {next(iter(places))}."
    said = []
    for words, where in places.items():
        rows, columns = (list(dict.fromkeys(place[i] for place in where)) for i in (0, 1))
        fewer = columns if len(columns) < len(outcome["columns"]) else rows
        said.append(f"{few(fewer)}: {words}")
    return f"Numbers: {'; '.join(said)}."


def few(names: list[str]) -> str:
    """Names in a row; of many the first three, and how many more there are."""
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def as_csv(outcome: Outcome) -> str:
    """Every cell as a line of raw numbers, with every repetition."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "column", "is", "paper", "paper spread", "ours", "spread", "difference", "values"])
    for cell in outcome["cells"]:
        value, paper = mean(cell), cell.get("published")
        gap = None if value is None or paper is None else round(value - paper, 6)
        values = " ".join("" if one is None else str(one) for one in cell["values"])
        known = [value, spread(cell)]
        rounded = [None if one is None else round(one, 6) for one in known]
        line = [cell["row"], cell["column"], cell["is"], paper, cell.get("published_spread"), *rounded, gap, values]
        writer.writerow(["" if one is None else one for one in line])
    return out.getvalue()


def claims_markdown(outcome: Outcome) -> str:
    """The claims as a Markdown table, whose texts are left-aligned."""
    return markdown(claims_table(outcome)).replace("---:|", "---|", len(claims_table(outcome)[0]))


def as_markdown(outcome: Outcome) -> str:
    """The table and the claims as Markdown."""
    parts = [markdown(table(outcome))]
    if outcome["claims"]:
        parts.append(claims_markdown(outcome))
    return "\n".join(parts)


def as_latex(outcome: Outcome) -> str:
    """The table as LaTeX."""
    return latex(table(outcome))


FILES: dict[str, Callable[[Outcome], str]] = {"table.md": as_markdown, "table.csv": as_csv, "table.tex": as_latex}
