"""Prints one method or one part in words: what it does, its fields, its paper, and how to change it."""

from __future__ import annotations

import inspect

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedkin.command.lists import WIDTH
from fedkin.explain import explained, joined, purpose
from fedkin.methods import METHODS
from fedkin.methods.papers import PAPERS
from fedkin.parts import Method, Part

VERBS = {"select": "who takes part", "train": "what a client does", "keep": "whose update counts"}
VERBS |= {"collaborate": "what each client gets back"}


def explain_method(method: Method, asked: str) -> None:
    """Print a method; `asked` is what the user called it."""
    screen = console()
    screen.print(f"[bold]{escape(method.name)}[/bold]")
    name = asked.partition("@")[0]
    if name in METHODS:
        words, box = purpose(name)
        say(screen, words)
        if box:
            say(screen, f"\n{box}")
    for verb, question in VERBS.items():
        part: Part = getattr(method, verb)
        kind = type(part)
        screen.print(f"\n[bold]{verb}[/bold], {question}: [bold]{kind.__name__}[/bold]")
        say(screen, joined((inspect.getdoc(kind) or "").partition("\n\n")[0]))
        fields_table(screen, part, f"{verb}.")
    screen.print("\n[bold]who[/bold] trains and receives")
    fields_table(screen, method, "", ("trains", "receives"))
    for paper in PAPERS.get(name, ()):
        say(screen, f"\nPaper: {paper}" + (f" How we read it: {paper.page}" if paper.page else ""))
    field = "train.eta"
    say(screen, f"\nChange a field: fedkin run {asked} --set {field}=0.1")
    say(screen, f"Compare values: fedkin compare {asked}@{field}=0.01,0.1")
    say(screen, f"Change a part:  fedkin run {asked} --set keep=Relevance (in words: fedkin methods Relevance)")
    if name in METHODS:
        given = inspect.signature(METHODS[name]).parameters.values()
        say(screen, f"In Python:      fk.methods.{name}({', '.join(f'{one.name}={one.default!r}' for one in given)})")


def explain_part(kind: type[Part]) -> None:
    """Print a class of parts with its defaults."""
    screen = console()
    screen.print(f"[bold]{kind.__name__}[/bold]" + (f", a part for {kind.verb}" if kind.verb else ""))
    say(screen, joined(inspect.getdoc(kind) or ""))
    screen.print()
    fields_table(screen, kind, f"{kind.verb}." if kind.verb else "")
    if kind.verb:
        say(screen, f"\nPut it in any method: fedkin run fedavg --set {kind.verb}={kind.__name__}")


def fields_table(screen: Console, part: Part | type[Part], before: str, only: tuple[str, ...] = ()) -> None:
    """Print the fields of a part, those of its inner parts below their own."""
    table = Table(
        "field", "value" if isinstance(part, Part) else "default", "fits", "meaning", box=None, pad_edge=False
    )
    add_rows(table, part, before, only)
    if table.rows:
        screen.print(table)


def add_rows(table: Table, part: Part | type[Part], before: str, only: tuple[str, ...]) -> None:
    for one in explained(part):
        if only and one.name not in only:
            continue
        inner = getattr(part, one.name, None) if isinstance(part, Part) else None
        value = type(inner).__name__ if isinstance(inner, Part) else one.value
        table.add_row(*map(escape, (f"  {before}{one.name}", value, one.fits, one.meaning)))
        if isinstance(inner, Part) and not only:
            add_rows(table, inner, f"{before}{one.name}.", ())


def console() -> Console:
    return Console(width=max(WIDTH, Console().width), highlight=False)


def say(screen: Console, text: str) -> None:
    screen.print(text, markup=False)
