"""Every client's score beside what it reaches alone."""

from __future__ import annotations

from html import escape

import numpy as np

from fedkin.report.charts.gains import common_span, gains_by_size, sorted_gains
from fedkin.report.charts.style import DOTS, drawn_places
from fedkin.report.formats import difference, gained
from fedkin.report.html import Section, chart, chip, note, titled
from fedkin.report.study import Entry, Study
from fedkin.report.words import against_alone, by_size
from fedkin.runs.difference import mean_of_known
from fedkin.runs.facts import scored_words
from fedkin.runs.verdict import LOCAL

TITLE = "Every client's gain"
LISTED = 2000  # clients up to which the page has a table of them


def gains(study: Study) -> Section:
    """A panel a method. If nothing can be said of gains, the section says why."""
    missing = why_no_gains(study)
    if missing:
        return Section(titled(TITLE, note(missing)))
    means = {name: shown(study, found) for name, found in study.gains.items()}
    known = ~np.isnan(np.stack(list(means.values()))).any(0)
    span = common_span([found[known] for found in means.values()])
    panels = [panel(study, name, i, known, span) for i, name in enumerate(means)]
    html = titled(TITLE, note(explained(study, known)), *(one.html for one in panels), every_client(study, means))
    return Section(html, {id: figure for one in panels for id, figure in one.figures.items()})


def why_no_gains(study: Study) -> str:
    """Why this study has no gains; nothing if it has."""
    if LOCAL not in study.entries:
        return "Local was not run, so nothing here says whether clients gain by joining; 'fedkin compare' adds it."
    if len(study.entries) == 1:
        return "Only training alone was run; 'fedkin compare' sets methods beside it."
    if not study.gains:
        return "No seed is finished and scored both by Local and by another method: no gains yet."
    return ""


def shown(study: Study, found: np.ndarray) -> np.ndarray:
    """Gains as the pictures have them, means over seeds: in percentage points, or in the metric itself."""  # (n,)
    mean: np.ndarray = np.round((100 if study.metric.percent else 1) * mean_of_known(found, 0), 9)
    return mean


def unit(study: Study) -> str:
    return "points" if study.metric.percent else study.metric.label


def explained(study: Study, known: np.ndarray) -> str:
    """What the panels show, and which clients they leave out."""
    metric = study.metric
    text = f"Each client's {metric.label} after local training in the last round, minus what it reaches alone"
    text += ", in percentage points" if metric.percent else ""
    text += "" if metric.higher_is_better else ", with the sign turned: above zero is better"
    text += ", mean over seeds; all panels have one scale. Point at a client for its name and size."
    missing, many = int((~known).sum()), int(known.sum())
    why = "no test samples" if metric.name in ("accuracy", "log_loss") else f"no test samples, or no {metric.label},"
    sampled = scored_words(study.experiment["resolved"])
    why = f"not been scored ({sampled}) or have {why}" if sampled else why
    mute = f"client has {why} and is" if missing == 1 else f"clients have {why} and are"
    text += f" {missing:,} {mute} left out." if missing else ""
    data_seeds = sorted({run.data_seed for run in study.begun})
    text += f" The clients are those of data seed {data_seeds[0]}." if len(data_seeds) > 1 else ""
    return text + (f" Of {many:,} clients {DOTS:,} are drawn, evenly spaced by gain." if many > DOTS else "")


def panel(study: Study, name: str, i: int, known: np.ndarray, span: tuple[float, float]) -> Section:
    """One method: its clients sorted by gain, and their gain against their size."""
    found = study.gains[name]
    mean = shown(study, found)
    ids = np.flatnonzero(known)
    ids = ids[np.argsort(mean[ids], kind="stable")][drawn_places(len(ids))] if len(ids) > DOTS else ids
    names = [str(study.clients["names"][k]) for k in ids]
    texts = [hover(study, found, int(k)) for k in ids]
    figures = {f"bars-{i}": sorted_gains(mean[ids], texts, names, span, unit(study))}
    pictures, sized = chart(f"bars-{i}", f"{name}: every client's gain over training alone, sorted"), ""
    if "train" in study.clients:
        sizes = np.array(study.clients["train"])[ids]
        figures[f"sizes-{i}"] = gains_by_size(mean[ids], sizes, texts, span, unit(study))
        pictures += chart(f"sizes-{i}", f"{name}: every client's gain against its number of samples")
        sized = by_size(study, mean_of_known(found, 0))
    said = escape(" ".join([against_alone(study, name), sized, effort(study.entries[name])]))
    html = f'<article><h3>{chip(study, name)}</h3><p>{said}</p><div class="pair">{pictures}</div></article>'
    return Section(html, figures)


def effort(entry: Entry) -> str:
    """In how many rounds a client trains, if that is fewer than alone; nothing if it trains in all."""
    share = float(entry.selected.mean())
    if entry.done[0].experiment["method"]["trains"] == "everyone" or share == 1:
        return ""
    return f"A client trains in {100 * share:.0f} % of the rounds here, alone in all of them."


def hover(study: Study, found: np.ndarray, k: int) -> str:
    """What pointing at a client says."""
    name = f"<b>client {escape(str(study.clients['names'][k]))}</b>"
    size = f"<br>{study.clients['train'][k]:,} training samples" if "train" in study.clients else ""
    seeds = ", ".join("-" if np.isnan(value) else difference(study.metric, value, 1) for value in found[:, k])
    return f"{name}{size}<br>gain {gained(study.metric, np.nanmean(found[:, k]))}" + (
        f"<br>by seed: {seeds}" if len(found) > 1 else ""
    )


def every_client(study: Study, means: dict[str, np.ndarray]) -> str:
    """The gains as a table, in which a client can look for itself; left out if there are very many clients."""
    if len(study.clients["names"]) > LISTED:
        return note(
            f"Every client's gain is not listed, for there are more than {LISTED:,}; the runs' folders have it."
        )
    about = {word: study.clients[word] for word in ("train", "test") if word in study.clients}
    head = ["client", *about, *(f"{name}, {unit(study)}" for name in means)]
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    rows, plain = [], {name: mean_of_known(study.gains[name], 0) for name in means}
    for k, name in enumerate(study.clients["names"]):
        cells = [f"{values[k]:,}" for values in about.values()]
        cells += ["-" if np.isnan(gains[k]) else difference(study.metric, gains[k]) for gains in plain.values()]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(str(name))}</th>{row}</tr>')
    return (
        "<details><summary>Every client's gain, as a table</summary>"
        f'<div class="wide tall"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )
