"""The settings with which each method was run."""

from __future__ import annotations

import json
from html import escape

from fedkin.report.html import Section, chip, titled
from fedkin.report.study import Study


def settings(study: Study) -> Section:
    """The resolved experiment of each method, of its first seed that has begun."""
    blocks = []
    for name, entry in study.entries.items():
        begun = [run for run in entry.runs if run.begun]
        if begun:
            text = escape(json.dumps(begun[0].experiment, indent=2))
            seed = f"<small>as run with seed {begun[0].seed}</small>"
            blocks.append(f"<details><summary>{chip(study, name)} {seed}</summary><pre>{text}</pre></details>")
    return Section(titled("Settings", *blocks))
