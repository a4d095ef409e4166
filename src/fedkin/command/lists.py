"""Prints what there is: methods and datasets."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedkin.data import datasets
from fedkin.explain import shown
from fedkin.methods import METHODS, named

WIDTH = 118  # columns a table has at least; a narrower terminal wraps its lines rather than losing numbers


def list_methods() -> None:
    """Print every method with its four parts and all their fields."""
    console = Console(width=max(WIDTH, Console().width), highlight=False)
    for name in METHODS:
        method = named(name)
        table = Table(box=None, pad_edge=False, show_header=False)
        for verb in ("select", "train", "keep", "collaborate"):
            table.add_row(f"  {verb}", escape(shown(getattr(method, verb))))
        others = {"trains": method.trains, "receives": method.receives}
        if set(others.values()) != {"selected"}:
            table.add_row("", ", ".join(f"{who}={value}" for who, value in others.items()))
        console.print(f"[bold]{name}[/bold]")
        console.print(table)
    console.print("\nOne method in words: fedkin methods fedmcsa")
    console.print("Change a field: fedkin run fedavg --set train.eta=0.1, or only eta=0.1 where one part has it")
    console.print("Change a whole part: fedkin run fedmcsa --set keep=Relevance --set keep.samples=2")


def list_datasets() -> None:
    """Print every dataset, and whether it is at hand."""
    table = Table("name", "what it is", "from", "here", box=None, pad_edge=False)
    for row in datasets():
        table.add_row(row.name, row.description, ", ".join(row.sources), "yes" if row.offline else "no")
    Console().print(table)
