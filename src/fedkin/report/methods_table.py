"""A table of the page with a row a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from fedkin.report.html import chip
from fedkin.report.study import Entry, Study


@dataclass(frozen=True)
class Column:
    """Columns of one group stand under a common title. `cell` makes HTML of a method's name and its summary."""

    group: str
    title: str
    cell: Callable[[str, dict[str, Any]], str]


def methods_table(study: Study, columns: list[Column], attributes: str) -> str:
    """The HTML of a table under two rows of titles; `attributes` are those of the table element."""
    groups = list(dict.fromkeys(column.group for column in columns))
    widths = {group: sum(column.group == group for column in columns) for group in groups}
    over = "".join(f'<th colspan="{widths[group]}" scope="colgroup">{escape(group)}</th>' for group in groups)
    under = "".join(
        f'<th scope="col"{edge(columns, i)}>{escape(column.title)}</th>' for i, column in enumerate(columns)
    )
    rows = "".join(row(study, entry, columns) for entry in study.entries.values())
    return (
        f'<div class="wide"><table {attributes}>'
        f'<thead><tr><th rowspan="2" scope="col">method</th>{over}</tr><tr>{under}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def edge(columns: list[Column], i: int) -> str:
    """Marks the first column of a group, which gets a little space."""
    return ' class="first"' if i == 0 or columns[i].group != columns[i - 1].group else ""


def row(study: Study, entry: Entry, columns: list[Column]) -> str:
    done, total = len(entry.done), len(entry.runs)
    some = f" <small>{done} of {total} seeds</small>" if 0 < done < total else ""
    head = f'<th scope="row">{chip(study, entry.name)}{some}</th>'
    if entry.summary is None:
        return f'<tr>{head}<td class="none" colspan="{len(columns)}">no seed is finished</td></tr>'
    cells = "".join(
        f"<td{edge(columns, i)}>{column.cell(entry.name, entry.summary)}</td>" for i, column in enumerate(columns)
    )
    return f"<tr>{head}{cells}</tr>"
