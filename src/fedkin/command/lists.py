"""Prints what there is: methods, presets and datasets."""

from __future__ import annotations

from dataclasses import fields

from rich.console import Console
from rich.table import Table

from fedkin.data import datasets
from fedkin.methods import METHODS, named
from fedkin.parts import Part
from fedkin.presets import PRESETS

WIDTH = 118  # columns a table has at least; a narrower terminal wraps its lines rather than losing numbers


def list_methods() -> None:
    """Print every method with its four parts."""
    table = Table("method", "select", "train", "keep", "collaborate", box=None, pad_edge=False)
    for name in METHODS:
        method = named(name)
        parts = (method.select, method.train, method.keep, method.collaborate)
        table.add_row(name, *(changed_fields(part) for part in parts))
    console = Console(width=max(WIDTH, Console().width))
    console.print(table)
    console.print("Change a field with --set, as in: fedkin run fedavg --set train.eta=0.1 --set select.fraction=0.2")
    console.print("or a whole part: fedkin run fedmcsa --set keep=Relevance --set keep.samples=2")


def changed_fields(part: Part) -> str:
    """Return a part's name with the fields that differ from its class's defaults."""
    default = {f.name: f.default for f in fields(part)}  # type: ignore[arg-type]
    inside = ", ".join(f"{name}={value}" for name, value in part.values().items() if value != default[name])
    return f"{type(part).__name__}({inside})"


def list_presets() -> None:
    """Print every preset with its numbers of rows, seeds and rounds."""
    table = Table("preset", "what it is", "rows", "seeds", "rounds", box=None, pad_edge=False)
    for found in PRESETS.values():
        rounds = sorted({row.rounds for row in found.rows})
        numbers = (str(len(found.rows)), str(len(found.seeds)), " to ".join(map(str, {rounds[0]: 0, rounds[-1]: 0})))
        table.add_row(found.name, found.about, *numbers)
    Console(width=max(WIDTH, Console().width)).print(table)


def list_datasets() -> None:
    """Print every dataset, and whether it is at hand."""
    table = Table("name", "what it is", "from", "here", box=None, pad_edge=False)
    for row in datasets():
        table.add_row(row.name, row.description, ", ".join(row.sources), "yes" if row.offline else "no")
    Console().print(table)
