"""The tables of a comparison as files: CSV with raw numbers, LaTeX and Markdown as a paper or a page shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkin.errors import require
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
    table = found.table()
    if where.suffix == ".csv":
        text = table.to_csv()
    else:
        text = WRITERS[where.suffix](methods_grid(table, [" ".join(words) for words in found.scored()]))
    files.write(where, text.encode())
    return where


def write_clients(found: Comparison, path: Path | str) -> Path:
    """Write the table of the clients: what each gains over training alone by each method."""
    where = checked_path(path)
    gains = found.gains()
    text = gains.to_csv() if where.suffix == ".csv" else WRITERS[where.suffix](clients_grid(gains))
    files.write(where, text.encode())
    return where


def methods_grid(table: pd.DataFrame, scored: Sequence[str]) -> Grid:
    """Return the table of the methods as it is read: percent, and the best of each score marked."""
    against = [name for name in ("better", "worse", "gain", "verdict") if table[name].notna().any()]
    words = {"better": "better off (%)", "worse": "worse off (%)", "gain": "gain over alone (points)"}
    grid = [[Cell(title) for title in ("method", *(f"{name} (%)" for name in scored), *against, "uploads", "seconds")]]
    grid[0] = [Cell(words.get(cell.text, cell.text)) for cell in grid[0]]
    best = {name: round(100 * table[name].max(), 2) for name in scored}
    for name, row in table.iterrows():
        cells = [Cell(str(name))]
        for score in scored:
            value, spread = row[score], row.get(f"{score} std")
            shown = number(value, 100, 2)
            cells.append(Cell(shown, with_spread(spread), known(value) and round(100 * value, 2) == best[score]))
        cells += [Cell(compared(word, row[word])) for word in against]
        grid.append([*cells, Cell(f"{row['uploads']:,.0f}"), Cell(f"{row['seconds']:.1f}")])
    return grid


def clients_grid(gains: pd.DataFrame) -> Grid:
    """Return the clients' gains in points, the largest of each client marked if it gains at all."""
    grid = [[Cell("client"), *(Cell(f"{name} (points)") for name in gains.columns)]]
    for name, row in gains.iterrows():
        most = max([round(100 * value, 2) for value in row if known(value)], default=0.0)
        marked = [most > 0 and known(value) and round(100 * value, 2) == most for value in row]
        cells = [Cell(number(value, 100, 2, "+"), best=best) for value, best in zip(row, marked, strict=True)]
        grid.append([Cell(str(name)), *cells])
    return grid


def compared(word: str, value: Any) -> str:
    """Return what a method's row says of the comparison with training alone."""
    if word == "verdict":
        return value if isinstance(value, str) else NONE
    return number(value, 100, 2, "+") if word == "gain" else number(value, 100, 0)


def known(value: Any) -> bool:
    return value is not None and value == value  # nan is not itself


def number(value: Any, times: float, digits: int, sign: str = "") -> str:
    return f"{times * value:{sign}.{digits}f}".replace("-", "−") if known(value) else NONE


def with_spread(spread: Any) -> str:
    return f" {PLUS_MINUS} {100 * spread:.2f}" if known(spread) else ""


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
