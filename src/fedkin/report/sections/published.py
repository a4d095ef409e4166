"""A preset's rows beside the published numbers."""

from __future__ import annotations

from html import escape

from fedkin.report.html import Section, titled
from fedkin.report.preset_tables import REACHED, WORDS, Grid, accuracy_grid, accuracy_title, target_grid, target_notes
from fedkin.report.study import Study


def published(study: Study) -> Section | None:
    """None if the study is not a finished preset."""
    found = study.preset
    if not found:
        return None
    parts = [f"<p>{escape(found['about'])}. {escape(accuracy_title(found))}.</p>", table(accuracy_grid(found))]
    parts.append(f'<p class="note">{escape(WORDS)} {escape(found["note"])}</p>')
    if found["targets"]:
        parts += [f"<p>{escape(REACHED)}.</p>", table(target_grid(found))]
        parts.append(f'<p class="note">{escape(target_notes(found))}</p>')
    return Section(titled("Beside the published numbers", "".join(parts)))


def table(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in grid[0])
    rows = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in line[1:])}</tr>'
        for line in grid[1:]
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
