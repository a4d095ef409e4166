"""The settings with which each method was run, and what became of the columns of a table."""

from __future__ import annotations

import json
from html import escape

from fedkin.data.prepare import column_lines
from fedkin.report.html import Section, chip, titled
from fedkin.report.study import Study


def settings(study: Study) -> Section:
    """What the columns of the table became, and the resolved experiment of each method, of its first seed that has
    begun."""
    blocks = [columns(study)]
    for name, entry in study.entries.items():
        begun = [run for run in entry.runs if run.begun]
        if begun:
            text = escape(json.dumps(begun[0].experiment, indent=2))
            seed = f"<small>as run with seed {escape(str(begun[0].seed))}</small>"
            blocks.append(f"<details><summary>{chip(study, name)} {seed}</summary><pre>{text}</pre></details>")
    return Section(titled("Settings", *blocks))


def columns(study: Study) -> str:
    """What became of every column of the table that the samples were made of; nothing where there was no table."""
    preparation = next((run.preparation for run in study.begun), None)
    if preparation is None:
        return ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(said)}</td></tr>"
        for name, said in column_lines(preparation["columns"])
    )
    head = "<thead><tr><th>column</th><th>what it became</th></tr></thead>"
    table = f'<div class="wide"><table>{head}<tbody>{rows}</tbody></table></div>'
    return f"<details><summary>Columns of the table</summary>{table}</details>"
