"""How soon, and after how many uploads, methods reach a target."""

from __future__ import annotations

from html import escape

from fedkin.report import targets_table
from fedkin.report.html import Section, chip, note, titled
from fedkin.report.study import Study


def targets(study: Study) -> Section | None:
    """None where no target was asked for."""
    if not study.targets:
        return None
    head, *rows = targets_table.grid(study.targets, list(study.summaries))
    titles = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    lines = "".join(
        f'<tr><th scope="row">{chip(study, name)}</th>{"".join(f"<td>{escape(text)}</td>" for text in cells)}</tr>'
        for name, *cells in rows
    )
    table = (
        f'<div class="wide"><table id="targets"><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table></div>'
    )
    about = f"{targets_table.title(study.targets)}. {targets_table.notes(study.targets)}"
    several = " Means over the runs that reached it; 2/3: two of three runs did."
    more = several if any(len(entry.done) > 1 for entry in study.entries.values()) else ""
    return Section(titled("Rounds and uploads to a target", table, note(about + more)))
