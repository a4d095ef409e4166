"""The page of a preset: whether each claim holds, the table, and the paper's figure drawn with our numbers."""

from __future__ import annotations

from html import escape

from fedkin.comparison.exports import Grid
from fedkin.report import scripts
from fedkin.report.html import Section, chart, note, titled
from fedkin.report.page import POLICY, merged, shell, store
from fedkin.reproduce.figures import figures
from fedkin.reproduce.outcome import Outcome
from fedkin.reproduce.tables import claims_table, readings, table

CURVES = "Line: mean over repetitions; band: from the lowest to the highest."
DOTS = "Our mean and its standard deviation over repetitions; a diamond is what the paper prints."


def page(outcome: Outcome) -> str:
    """The page of what a preset came to, whole in itself."""
    sections = [head(outcome), claims(outcome), numbers(outcome), *drawings(outcome)]
    stores = merged(sections)
    main = "".join(section.html for section in sections)
    texts = "".join(store(name, texts) for name, texts in stores.items())
    title = f"{outcome['preset']}, {outcome['scale']}: fedkin"
    return shell(title, POLICY, scripts.style(), main, texts, scripts.script(list(stores)))


def head(outcome: Outcome) -> Section:
    said = f"<h1>{escape(outcome['preset'])}, {escape(outcome['scale'])}</h1><p>{escape(outcome['title'])}</p>"
    spent = f"{outcome['runs']} runs, {outcome['seconds'] / 60:.0f} minutes of one core. Made by: {outcome['command']}"
    return Section(f"<header>{said}{note(spent)}</header>")


def claims(outcome: Outcome) -> Section:
    if not outcome["claims"]:
        return Section("")
    words = (
        "holds: every comparison is as claimed, beyond the repetitions' spread; in shape: every mean is as claimed"
        "; does not hold: some comparison is contrary, beyond the spread. Claims by us are what a reader would ask."
    )
    grid = as_html(claims_table(outcome), texts=True)
    return Section(titled("What is claimed, and whether it holds", grid, note(words)))


def numbers(outcome: Outcome) -> Section:
    words = f"{readings(outcome)} Mean ± standard deviation over repetitions. {outcome['note']}"
    return Section(titled("Paper and ours", as_html(table(outcome)), note(words)))


def drawings(outcome: Outcome) -> list[Section]:
    found = []
    for id, (title, figure) in figures(outcome).items():
        words = CURVES if id.startswith("curves") else DOTS
        found.append(Section(titled(title, chart(id, title), note(words)), {id: figure}))
    return found


def as_html(grid: Grid, texts: bool = False) -> str:
    """A grid as a table that may be wider than the screen; `texts` are left-aligned, and names of rows not broken."""
    side, names = (' style="text-align:left"', "") if texts else ("", ' style="white-space:nowrap"')
    top = "".join(f'<th scope="col"{side}>{escape(cell.text)}</th>' for cell in grid[0])
    rows = "".join(
        f'<tr><th scope="row"{names}>{escape(line[0].text)}</th>'
        + "".join(f"<td{side}>{escape(cell.text + cell.spread)}</td>" for cell in line[1:])
        + "</tr>"
        for line in grid[1:]
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'
