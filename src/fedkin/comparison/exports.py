"""The tables of a comparison as files: CSV with raw numbers, LaTeX and Markdown as a paper or a page shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkin.errors import require
from fedkin.metrics import METRICS, Metric
from fedkin.runs import files

if TYPE_CHECKING:
    import pandas as pd

    from fedkin.comparison.result import Comparison

PLUS_MINUS, NONE = "±", "-"
ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", PLUS_MINUS: r"$\pm$"}
ESCAPES |= {"−": "$-$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
ESCAPES |= {sign: "\\" + sign for sign in "&%$#_{}"}


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
    where = checked_path(path)
    table, metric = found.table(), METRICS[found.metric]
    if where.suffix == ".csv":
        text = table.to_csv()
    else:
        text = WRITERS[where.suffix](methods_grid(table, [" ".join(words) for words in found.scored()], metric))
    files.write(where, text.encode())
    return where


def write_clients(found: Comparison, path: Path | str) -> Path:
    """Write the table of the clients: what each gains over training alone by each method."""
    where = checked_path(path)
    gains, metric = found.gains(), METRICS[found.metric]
    text = gains.to_csv() if where.suffix == ".csv" else WRITERS[where.suffix](clients_grid(gains, metric))
    files.write(where, text.encode())
    return where


def methods_grid(table: pd.DataFrame, scored: Sequence[str], metric: Metric) -> Grid:
    """Return the table of the methods as it is read, with the best of each score marked."""
    against = [name for name in ("better", "worse", "gain", "verdict") if table[name].notna().any()]
    words = {"better": "better off (%)", "worse": "worse off (%)", "gain": f"gain over alone{unit(metric, 'points')}"}
    scores = [f"{name} {metric.label}{unit(metric, '%')}" for name in scored]
    titles = ["method", *scores, *(words.get(name, name) for name in against), "uploads", "seconds"]
    grid = [[Cell(title) for title in titles]]
    best = {
        name: number(table[name].max() if metric.higher_is_better else table[name].min(), metric) for name in scored
    }
    for name, row in table.iterrows():
        cells = [Cell(str(name))]
        for score in scored:
            value, spread = number(row[score], metric), row.get(f"{score} std")
            after = f" {PLUS_MINUS} {number(spread, metric)}" if known(spread) else ""
            cells.append(Cell(value, after, best=value == best[score] != NONE))
        cells += [Cell(compared(word, row[word], metric)) for word in against]
        grid.append([*cells, Cell(f"{row['uploads']:,.0f}"), Cell(f"{row['seconds']:.1f}")])
    return grid


def clients_grid(gains: pd.DataFrame, metric: Metric) -> Grid:
    """Return the clients' gains, the largest of each client marked if it gains at all."""
    grid = [[Cell("client"), *(Cell(f"{name}{unit(metric, 'points')}") for name in gains.columns)]]
    for name, row in gains.iterrows():
        most = row.max()
        mark = number(most, metric, "+") if known(most) and most > 0 else None
        shown = [number(value, metric, "+") for value in row]
        grid.append([Cell(str(name)), *(Cell(text, best=text == mark) for text in shown)])
    return grid


def compared(word: str, value: Any, metric: Metric) -> str:
    """Return what a method's row says of the comparison with training alone."""
    if word == "verdict":
        return value if isinstance(value, str) else NONE
    if word == "gain":
        return number(value, metric, "+")
    return f"{100 * value:.0f}" if known(value) else NONE


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


def markdown(grid: Grid) -> str:
    """Return a grid as a Markdown table."""

    def cell(one: Cell) -> str:
        text, spread = (re.sub(r"([\\|*_`<>\[\]])", r"\\\1", words) for words in (one.text, one.spread))
        return f"**{text}**{spread}" if one.best else text + spread

    titles, *rows = [f"| {' | '.join(map(cell, row))} |" for row in grid]
    rule = "|---|" + "---:|" * (len(grid[0]) - 1)
    return "\n".join([titles, rule, *rows]) + "\n"


def latex(grid: Grid) -> str:
    """Return a grid as a LaTeX table; it needs the package booktabs."""

    def escaped(text: str) -> str:
        return "".join(ESCAPES.get(sign, sign) for sign in text)

    def cell(one: Cell) -> str:
        text, spread = escaped(one.text), escaped(one.spread)
        return f"\\textbf{{{text}}}{spread}" if one.best else text + spread

    titles, *rows = [" & ".join(map(cell, row)) + r" \\" for row in grid]
    head = [r"% \usepackage{booktabs}", rf"\begin{{tabular}}{{l{'r' * (len(grid[0]) - 1)}}}", r"\toprule"]
    return "\n".join([*head, titles, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]) + "\n"


WRITERS: dict[str, Callable[[Grid], str]] = {".tex": latex, ".md": markdown}
