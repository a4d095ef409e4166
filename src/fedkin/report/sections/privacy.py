"""What each client has spent of its privacy, where updates were clipped and noised."""

from __future__ import annotations

from html import escape

from fedkin.report.html import Section, chip, note, titled
from fedkin.report.study import Study
from fedkin.runs.spent import sentence


def privacy(study: Study) -> Section | None:
    """None where nothing was noised, or no seed is finished."""
    found = {name: summary["privacy"] for name, summary in study.summaries.items() if "privacy" in summary}
    if not any(any(one["releases"]) for one in found.values()):
        return None
    said = [f"{name}: {line}." for name, summary in study.summaries.items() for line in sentence(summary)]
    methods = "".join(f'<th colspan="2" scope="colgroup">{chip(study, name)}</th>' for name in found)
    under = '<th scope="col" class="first">releases</th><th scope="col">epsilon</th>' * len(found)
    head = f'<tr><th rowspan="2" scope="col">client</th>{methods}</tr><tr>{under}</tr>'
    rows = "".join(row(name, i, list(found.values())) for i, name in enumerate(names(study)))
    table = f'<div class="wide tall"><table id="privacy"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    first = next(iter(found.values()))
    text = (
        f"Each release was an update clipped to the length {first['clip']:g}, with normal noise of {first['noise']:g} "
        f"times that added to each number. Epsilon holds but for a probability of {first['delta']:g}, against a client "
        "that changes nothing; it does not cover numbers of samples, losses and scores. Of several seeds it is the "
        "largest, and of whoever saw several of these runs it is more."
    )
    return Section(titled("Privacy", "".join(f"<p>{escape(line)}</p>" for line in said), table, note(text)))


def row(name: str, i: int, found: list[dict[str, list[float]]]) -> str:
    """The HTML of a client's row: how often it released something, and what that has cost."""
    cells = (f'<td class="first">{one["releases"][i]:,}</td><td>{one["epsilon"][i]:.3g}</td>' for one in found)
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'


def names(study: Study) -> list[str]:
    """The clients' names, as the first finished run has them."""
    run = next(run for entry in study.entries.values() for run in entry.done)
    return [str(name) for name in run.about_clients["names"]]
