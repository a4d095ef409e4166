"""Pieces of HTML of which the report's sections are made."""

from __future__ import annotations

from html import escape

from fedkin.compare import LOCAL
from fedkin.results import charts
from fedkin.results.study import Study


def section(title: str, *content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(content)}</section>\n"


def note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""


def choice(name: str, label: str, options: dict[str, str]) -> str:
    """Buttons of which one is pressed; nothing to choose, nothing shown."""
    if len(options) < 2:
        return ""
    buttons = "".join(
        f'<label><input type="radio" name="{name}" value="{escape(value)}"{" checked" if i == 0 else ""}>'
        f"<span>{escape(text)}</span></label>"
        for i, (value, text) in enumerate(options.items())
    )
    return f'<fieldset class="choice"><legend>{escape(label)}</legend>{buttons}</fieldset>'


def chip(study: Study, name: str) -> str:
    colour = charts.styles(list(study.entries), LOCAL)[name][0]
    return f'<i class="chip" style="background:{colour}"></i>{escape(name)}'


def fixed(name: str, value: str) -> str:
    """A choice already made, for the script."""
    return f'<input type="radio" name="{name}" value="{escape(value)}" checked hidden>'


def chart(id: str, label: str) -> str:
    """The place of a figure, with a title for those who cannot see it."""
    return f'<div id="{id}" class="chart" role="img" aria-label="{escape(label)}"></div>'
