"""What the words of the page mean."""

from __future__ import annotations

from html import escape

from fedkin.report.html import Section, titled
from fedkin.report.study import Study
from fedkin.report.words import DEFINITIONS


def definitions(_: Study) -> Section:
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in DEFINITIONS.items())
    return Section(titled("What the words mean", f'<dl class="words">{words}</dl>'))
