"""Prints what became of the columns of a table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from fedkin.data.federation import Federation
from fedkin.data.prepare import column_lines


def print_columns(federation: Federation, screen: Console) -> None:
    """Print a line for each column of the table that the samples were made of; nothing where there was no table."""
    if federation.preparation is None:
        return
    table = Table("column", "what it became", box=None, pad_edge=False, title_justify="left")
    for name, said in column_lines(federation.preparation["columns"]):
        table.add_row(name, said, style="yellow" if said.startswith("left out") else "")
    screen.print(table, markup=False, highlight=False)
