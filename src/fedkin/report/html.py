"""Sections of the page, and the pieces of HTML they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from fedkin.report.charts.style import Figure, Style
from fedkin.report.charts.style import styles as styles_of
from fedkin.report.study import Study
from fedkin.runs.verdict import LOCAL


@dataclass(frozen=True)
class Section:
    """A part of the page: its HTML, the figures that are drawn in it by id, and what the page's scripts read for it:
    JSON texts by the name of a store ('rounds', 'kin') and an id."""

    html: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def titled(title: str, *content: str) -> str:
    """The HTML of a section under its title."""
    return f"<section><h2>{escape(title)}</h2>{''.join(content)}</section>\n"


def note(text: str) -> str:
    """A remark in small print; nothing for an empty text."""
    return f'<p class="note">{escape(text)}</p>' if text else ""


def choice(name: str, label: str, options: dict[str, str]) -> str:
    """Buttons of which one is pressed; nothing if there is only one option."""
    if len(options) < 2:
        return ""
    buttons = "".join(
        f'<label><input type="radio" name="{name}" value="{escape(value)}"{" checked" if i == 0 else ""}>'
        f"<span>{escape(text)}</span></label>"
        for i, (value, text) in enumerate(options.items())
    )
    return f'<fieldset class="choice"><legend>{escape(label)}</legend>{buttons}</fieldset>'


def fixed_choice(name: str, value: str) -> str:
    """A hidden button that is always pressed, for the page's script to read."""
    return f'<input type="radio" name="{name}" value="{escape(value)}" checked hidden>'


def chart(id: str, label: str) -> str:
    """The place of a figure, with a label for readers who cannot see it."""
    return f'<div id="{id}" class="chart" role="img" aria-label="{escape(label)}"></div>'


def styles(study: Study) -> dict[str, Style]:
    """The colour and the dash of each method."""
    return styles_of(list(study.entries), LOCAL)


def chip(study: Study, name: str) -> str:
    """The name of a method after a small square in its colour."""
    return f'<i class="chip" style="background:{styles(study)[name][0]}"></i>{escape(name)}'
