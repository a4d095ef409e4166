"""Is it worth joining? Every client against itself alone."""

from __future__ import annotations

from html import escape

import numpy as np

from fedkin.compare import LOCAL
from fedkin.results import charts
from fedkin.results.pieces import chart, chip, note, section
from fedkin.results.selection import selection
from fedkin.results.study import Entry, Study
from fedkin.results.words import by_size, points, shares

LISTED = 2000  # clients up to which the page has a table of them


def gains(study: Study, figures: dict[str, charts.Figure]) -> str:
    """Every client against itself alone; without Local nothing can be said, and that is said."""
    title = "Is it worth joining?"
    if LOCAL not in study.entries:
        text = "Local was not run, so nothing here says whether clients gain by joining; 'fedkin compare' adds it."
        return section(title, note(text))
    if len(study.entries) == 1:
        return section(title, note("Only training alone was run; 'fedkin compare' sets methods beside it."))
    if not study.gains:
        return section(title, note("No seed is finished and scored both by Local and by another method: no gains yet."))
    means = {name: np.round(100 * found.mean(0), 9) for name, found in study.gains.items()}
    known = ~np.isnan(np.stack(list(means.values()))).any(0)
    missing = int((~known).sum())
    span = charts.span_of([found[known] for found in means.values()])
    explained = "Each client's accuracy after local training in the last round, minus what it reaches alone, in "
    explained += (
        "percentage points, mean over seeds; all panels have one scale. Point at a client for its name and size."
    )
    mute = "client has no test samples and is" if missing == 1 else "clients have no test samples and are"
    explained += f" {missing} {mute} left out." if missing else ""
    many = int(known.sum())
    explained += f" Of {many:,} clients {charts.DOTS:,} are drawn, evenly spaced by gain." if many > charts.DOTS else ""
    panels = [panel(study, name, i, known, span, figures) for i, name in enumerate(means)]
    return section(title, note(explained), *panels, every_client(study, means))


def panel(
    study: Study, name: str, i: int, known: np.ndarray, span: tuple[float, float], figures: dict[str, charts.Figure]
) -> str:
    """One method: its clients sorted by gain, and their gain against their size."""
    found = study.gains[name]
    mean = np.round(100 * found.mean(0), 9)
    ids = np.flatnonzero(known)
    ids = ids[np.argsort(mean[ids], kind="stable")][charts.spread(len(ids))] if len(ids) > charts.DOTS else ids
    names = [str(study.clients["names"][k]) for k in ids]
    texts = [hover(study, found, int(k)) for k in ids]
    figures[f"bars-{i}"] = charts.bars(mean[ids], texts, names, span)
    pictures, sized = chart(f"bars-{i}", f"{name}: every client's gain over training alone, sorted"), ""
    if "train" in study.clients:
        sizes = np.array(study.clients["train"])[ids]
        figures[f"sizes-{i}"] = charts.scatter(mean[ids], sizes, texts, span)
        pictures += chart(f"sizes-{i}", f"{name}: every client's gain against its number of samples")
        sized = by_size(study, found.mean(0))
    said = escape(" ".join([shares(study, name), sized, effort(study.entries[name], len(known))]))
    return f'<article><h3>{chip(study, name)}</h3><p>{said}</p><div class="pair">{pictures}</div></article>'


def effort(entry: Entry, n: int) -> str:
    """Being alone means training every round; a method that trains fewer clients is compared at less work."""
    share = float(selection(entry, n).mean())
    if entry.done[0].run.experiment["method"]["trains"] == "everyone" or share == 1:
        return ""
    return f"A client trains in {100 * share:.0f} % of the rounds here, alone in all of them."


def hover(study: Study, found: np.ndarray, k: int) -> str:
    """What pointing at a client says."""
    name = f"<b>client {escape(str(study.clients['names'][k]))}</b>"
    size = f"<br>{study.clients['train'][k]:,} training samples" if "train" in study.clients else ""
    seeds = ", ".join(points(value, 1) for value in found[:, k])
    return f"{name}{size}<br>gain {points(found[:, k].mean())} points" + (
        f"<br>by seed: {seeds}" if len(found) > 1 else ""
    )


def every_client(study: Study, means: dict[str, np.ndarray]) -> str:
    """The same as numbers, for the client that looks for itself; of very many clients not in the page."""
    if len(study.clients["names"]) > LISTED:
        return note(
            f"Every client's gain is not listed, for there are more than {LISTED:,}; the runs' folders have it."
        )
    about = {word: study.clients[word] for word in ("train", "test") if word in study.clients}
    head = ["client", *about, *(f"{name}, points" for name in means)]
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    rows = []
    for k, name in enumerate(study.clients["names"]):
        cells = [f"{values[k]:,}" for values in about.values()]
        cells += ["-" if np.isnan(gains[k]) else points(gains[k] / 100) for gains in means.values()]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(str(name))}</th>{row}</tr>')
    return (
        "<details><summary>Every client's gain, as a table</summary>"
        f'<div class="wide tall"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )
