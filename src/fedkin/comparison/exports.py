"""The tables of a comparison as files: CSV with raw numbers, LaTeX and Markdown as a paper or a page shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkin.errors import require
from fedkin.metrics import METRICS, Metric
from fedkin.report import targets_table
from fedkin.runs import files
from fedkin.runs.statistics import APART, judged_by
from fedkin.runs.verdict import led

if TYPE_CHECKING:
    import pandas as pd

    from fedkin.comparison.result import Comparison

PLUS_MINUS, NONE = "±", "-"
ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", PLUS_MINUS: r"$\pm$"}
ESCAPES |= {"−": "$-$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
ESCAPES |= {sign: "\\" + sign for sign in "&%$#_{}"}

WORDS = {
    "better": "better off (%)",
    "worse": "worse off (%)",
    "gain": "gain",
    "p_holm": "p (Holm)",
    "verdict": "verdict",
    "gain matched": "gain over matched Local",
    "verdict matched": "verdict over matched Local",
}


@dataclass(frozen=True)
class Cell:
    """A place in a table. What follows the bold part is its spread."""

    text: str
    spread: str = ""
    best: bool = False


Grid = list[list[Cell]]  # the titles, then a row a method or client


def checked_path(path: Path | str) -> Path:
    """Return where a table goes; refuses a file whose ending says no format, or whose folder is not there."""
    where = Path(path)
    fits = where.suffix in (".csv", *WRITERS)
    require(fits, f"A table is written as .csv, .tex or .md, not as '{where.name}'.")
    require(where.parent.is_dir(), f"There is no folder {where.parent} for the table {where.name}.")
    return where


def write_table(found: Comparison, path: Path | str) -> Path:
    """Write the table of the methods: scores with their spread, gain over training alone, verdict and cost."""
    table, scored = found.table(), [" ".join(words) for words in found.scored()]
    notes = [footnote(found), led(found.leader)]

    def grid() -> Grid:
        made = methods_grid(table, scored, METRICS[found.metric], best_cells(found))
        return with_targets(made, found.summary.get("targets", []))

    return write(found, path, table, grid, notes)


def write_clients(found: Comparison, path: Path | str) -> Path:
    """Write the table of the clients: what each gains over training alone by each method."""
    gains = found.gains()
    return write(found, path, gains, lambda: clients_grid(gains, METRICS[found.metric]))


def write_pairs(found: Comparison, path: Path | str) -> Path:
    """Write the table of the pairs: what each method gains over each other one, and whether that is clear."""
    pairs = found.pairs()
    require(
        len(pairs), "This comparison has no pairs of methods: an older version wrote it, or clients have no scores."
    )
    return write(found, path, pairs, lambda: pairs_grid(pairs, METRICS[found.metric]), [led(found.leader)])


def write(
    found: Comparison, path: Path | str, table: pd.DataFrame, grid: Callable[[], Grid], notes: Sequence[str] = ()
) -> Path:
    """Write a table: raw numbers as .csv, or the grid that is read, with notes below it.

    Where not all clients were scored it says so: in a column, or in the first note.
    """
    where, scored = checked_path(path), next(iter(found.methods.values())).get("scored", "")
    if where.suffix == ".csv":
        text = (table.assign(scored=scored) if scored else table).to_csv()
    else:
        said = [f"{scored.capitalize()}." if scored else "", *notes]
        text = WRITERS[where.suffix](grid(), [note for note in said if note])
    files.write(where, text.encode())
    return where


def footnote(found: Comparison) -> str:
    """Return what the numbers of the table are."""
    several = "mean ± standard deviation over runs" if any("std" in name for name in found.table()) else "one run"
    whom = "relevant clients" if any(average.endswith(APART) for _, average in found.scored()) else "clients"
    said = f"Scores are of the last round, {several}. Macro: mean over {whom}; micro: by their samples."
    gains = " Gains are means over clients, each with its own 95 % interval; p and verdict are corrected after Holm."
    return said + (gains if found.verdicts else "") + " Bold: clearly better than every other method."


def best_cells(found: Comparison) -> dict[str, str]:
    """Return the score that is marked, by method: that of a method that is clearly better than every other one."""
    name = found.leader.get("method", "") if found.leader.get("best") else ""
    return {name: f"{judged_by(found.methods[name])} macro"} if name else {}


def methods_grid(table: pd.DataFrame, scored: Sequence[str], metric: Metric, best: Mapping[str, str]) -> Grid:
    """Return the table of the methods as it is read; `best` says which cells are marked, by method."""
    against = [name for name in WORDS if name in table and table[name].notna().any()]
    points = unit(metric, "points")
    words = WORDS | {"gain": f"gain over alone{points}", "gain matched": f"{WORDS['gain matched']}{points}"}
    scores = [f"{name.replace(APART, ' of irrelevant clients,')} {metric.label}{unit(metric, '%')}" for name in scored]
    titles = ["method", *scores, *(words.get(name, name) for name in against), "uploads", "seconds"]
    grid = [[Cell(title) for title in titles]]
    for name, row in table.iterrows():
        cells = [Cell(str(name))]
        for score in scored:
            spread = row.get(f"{score} std")
            after = f" {PLUS_MINUS} {number(spread, metric)}" if known(spread) else ""
            cells.append(Cell(number(row[score], metric), after, best=best.get(str(name)) == score))
        cells += [compared(word, row, metric) for word in against]
        grid.append([*cells, Cell(f"{row['uploads']:,.0f}"), Cell(f"{row['seconds']:.1f}")])
    return grid


def with_targets(grid: Grid, targets: list[dict[str, Any]]) -> Grid:
    """Return the table of the methods with a column for each target: rounds, and uploads in brackets."""
    head, *rows = grid
    titles = [Cell(f"rounds (uploads) to {targets_table.level(target)}") for target in targets]
    cells = [[Cell(targets_table.reached(target, row[0].text)) for target in targets] for row in rows]
    return [head + titles, *(row + more for row, more in zip(rows, cells, strict=True))]


def pairs_grid(pairs: pd.DataFrame, metric: Metric) -> Grid:
    """Return the pairs as they are read."""
    words = ("better", "worse", "gain", "p_holm", "verdict")
    titles = ["method", "over", *(WORDS[word] for word in words)]
    titles[4] = f"gain{unit(metric, 'points')}"
    rows = [[Cell(a), Cell(b), *(compared(word, row, metric) for word in words)] for (a, b), row in pairs.iterrows()]
    return [[Cell(title) for title in titles], *rows]


def clients_grid(gains: pd.DataFrame, metric: Metric) -> Grid:
    """Return the clients' gains, the largest of each client marked if it gains at all."""
    grid = [[Cell("client"), *(Cell(f"{name}{unit(metric, 'points')}") for name in gains.columns)]]
    for name, row in gains.iterrows():
        most = row.max()
        mark = number(most, metric, "+") if known(most) and most > 0 else None
        shown = [number(value, metric, "+") for value in row]
        grid.append([Cell(str(name)), *(Cell(text, best=text == mark) for text in shown)])
    return grid


def compared(word: str, row: pd.Series, metric: Metric) -> Cell:
    """Return what a row says of a comparison; a gain has its interval behind it."""
    value = row[word]
    if word.startswith("verdict"):
        return Cell(value if isinstance(value, str) else NONE)
    if word == "gain" and known(row["low"]):
        return Cell(
            number(value, metric, "+"), f" [{number(row['low'], metric, '+')}, {number(row['high'], metric, '+')}]"
        )
    if word.startswith("gain"):
        return Cell(number(value, metric, "+"))
    if word == "p_holm":
        return Cell(NONE if not known(value) else "<0.001" if value < 0.001 else f"{value:.3f}")
    return Cell(f"{100 * value:.0f}" if known(value) else NONE)


def unit(metric: Metric, word: str) -> str:
    return f" ({word})" if metric.percent else ""


def known(value: Any) -> bool:
    return value is not None and value == value  # nan is not itself


def number(value: Any, metric: Metric, sign: str = "") -> str:
    """Return a value or a difference of a metric: in percent with two digits, else as it is with three."""
    if not known(value):
        return NONE
    text = f"{100 * value:{sign}.2f}" if metric.percent else f"{value:{sign}.3f}"
    return text.replace("-", "−")


def markdown(grid: Grid, notes: Sequence[str] = ()) -> str:
    """Return a grid as a Markdown table, with notes below it."""

    def cell(one: Cell) -> str:
        text, spread = (re.sub(r"([\\|*_`<>\[\]])", r"\\\1", words) for words in (one.text, one.spread))
        return f"**{text}**{spread}" if one.best else text + spread

    titles, *rows = [f"| {' | '.join(map(cell, row))} |" for row in grid]
    rule = "|---|" + "---:|" * (len(grid[0]) - 1)
    return "\n".join([titles, rule, *rows, *(line for note in notes for line in ("", note))]) + "\n"


def latex(grid: Grid, notes: Sequence[str] = ()) -> str:
    """Return a grid as a LaTeX table, with notes as comments in front of it; it needs the package booktabs."""

    def escaped(text: str) -> str:
        return "".join(ESCAPES.get(sign, sign) for sign in text)

    def cell(one: Cell) -> str:
        text, spread = escaped(one.text), escaped(one.spread)
        return f"\\textbf{{{text}}}{spread}" if one.best else text + spread

    titles, *rows = [" & ".join(map(cell, row)) + r" \\" for row in grid]
    head = [
        *(f"% {note}" for note in notes),
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * (len(grid[0]) - 1)}}}",
        r"\toprule",
    ]
    return "\n".join([*head, titles, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]) + "\n"


WRITERS: dict[str, Callable[[Grid, Sequence[str]], str]] = {".tex": latex, ".md": markdown}
