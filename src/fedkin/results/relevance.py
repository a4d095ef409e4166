"""Whose updates counted: how relevant each client seemed, how often it was left out, and whether that was right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from fedkin.results import charts
from fedkin.results.attendance import Attendance, grouped, mean_of, row_name
from fedkin.results.pieces import chart, chip, note, section
from fedkin.results.study import Study
from fedkin.results.words import listed, progress

BARS = 500  # clients up to which each has a bar; more are drawn as groups of clients
POINTS = 400  # rounds up to which the filter's quality is drawn as it is; of more, means are drawn
QUALITY = {"precision": "precision", "recall": "recall", "f1": "F1", "auc": "AUC"}


@dataclass(frozen=True)
class Relevance:
    """One run of a method that may leave updates out."""

    one: Attendance
    divergence: dict[int, np.ndarray]  # by recorded round, scaled to [0, 1] over clients; nan where it is not known

    @cached_property
    def filters(self) -> dict[int, dict[str, float | None]]:
        """How good the filter was, by round, where the truth is known."""
        return {line["round"]: line["filter"] for line in self.one.trial.lines if line.get("filter")}

    @cached_property
    def mean(self) -> np.ndarray:
        """Each client's divergence, mean over the recorded rounds."""  # (n,)
        return mean_of(np.stack(list(self.divergence.values())), 0)

    @cached_property
    def last(self) -> np.ndarray:
        """In the last recorded round."""  # (n,)
        return self.divergence[max(self.divergence)]

    @cached_property
    def out(self) -> np.ndarray:
        """Share of the rounds with a reply in which the client's update did not count."""  # (n,)
        replied = self.one.replied
        return np.where(replied > 0, self.one.left_out / np.maximum(replied, 1), np.nan)


def relevance(one: Attendance) -> Relevance | None:
    """None where every update counted and nothing judges clients."""
    found = {r: scaled(values.astype(float)) for r, values in one.trial.run.marks("keep", "divergence").items()}
    made = Relevance(one, {r: values for r, values in found.items() if np.isfinite(values).any()})
    return made if made.divergence or one.left_out.any() else None


def scaled(values: np.ndarray) -> np.ndarray:
    """From 0 for the least divergent client to 1 for the most; nan stays."""
    known = np.isfinite(values)
    if not known.any():
        return np.full_like(values, np.nan)
    low, high = float(values[known].min()), float(values[known].max())
    return np.where(known, (values - low) / (high - low) if high > low else 0.0, np.nan)


def counted(study: Study, known: dict[str, Attendance], figures: dict[str, charts.Figure]) -> str:
    """A panel a method that leaves updates out; nothing where none does."""
    articles = []
    for i, (name, one) in enumerate(known.items()):
        found = relevance(one)
        if found is None:
            continue
        places = []
        if found.divergence:
            figures[f"divergence-{i}"] = divergences(found)
            places.append(chart(f"divergence-{i}", f"{name}: how little each client's updates are like the others'"))
        if found.one.kept is not None:
            figures[f"out-{i}"] = participation(found)
            places.append(chart(f"out-{i}", f"{name}: share of rounds in which each client's update did not count"))
        if found.filters:
            figures[f"filter-{i}"] = qualities(found)
            places.append(chart(f"filter-{i}", f"{name}: precision, recall, F1 and AUC of the filter over the rounds"))
        articles.append(
            f"<article><h3>{chip(study, name)}</h3><p>{escape(spoken(found))}</p>{''.join(places)}"
            f"{note(remarks(found))}</article>"
        )
    text = "The server may find a client irrelevant to the task and leave its update out of the common model. "
    text += "Divergence says how little a client's updates are like those of the others: the larger, the less relevant "
    text += "it seems."
    return section("Whose updates counted", note(text), *articles) if articles else ""


# what is said


def spoken(found: Relevance) -> str:
    said = [last_round(found), majority(found)]
    truth = found.one.irrelevant
    if truth is not None and found.divergence:
        apart = [f"{float(mean_of(found.mean[mask])):.2f}" for mask in (truth, ~truth)]
        said.append(f"The mean divergence of irrelevant clients is {apart[0]}, of relevant ones {apart[1]}.")
    return " ".join(text for text in said if text)


def last_round(found: Relevance) -> str:
    """How good the filter was when it was last judged: in counts where the truth of each client is written down."""
    if not found.filters:
        return ""
    if found.one.irrelevant is None and "irrelevant" in found.one.trial.clients:
        return "No client is irrelevant here: whoever is left out is left out wrongly."
    r = max(found.filters)
    quality = found.filters[r]
    caught, right = (shown(quality.get(word)) for word in ("recall", "precision"))
    when = "In the last round" if r == found.one.rounds else f"In round {r:,}"
    known = {word: value for word in ("recall", "precision") if (value := quality.get(word)) is not None}
    parts = [f"a {word} of {shown(value)}" for word, value in known.items()]
    said = "had " + (listed(parts, "and") if parts else "nothing to find")
    if found.one.irrelevant is not None and found.one.kept is not None:
        bad, out = verdicts(found.one.irrelevant, found.one.ids[r - 1], found.one.kept[r - 1])
        both = int((bad & out).sum())
        said = f"found {both:,} of {int(bad.sum()):,} irrelevant clients (recall {caught})"
        left = f"{both:,} of the {int(out.sum()):,} it left out were irrelevant (precision {right})"
        said += f", and {left}" if out.any() else "; it left nobody out"
    auc = quality.get("auc")
    return f"{when} the filter {said}{'' if auc is None else f'; AUC {auc:.3f}'}."


def verdicts(truth: np.ndarray, ids: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of those who replied: who is irrelevant, and who was left out."""  # (k,), (k,)
    replied = ~np.isnan(kept)
    return truth[ids[replied]], kept[replied] == 0


def shown(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f}\u00a0%"


def majority(found: Relevance) -> str:
    """Who was left out in more than half of its rounds."""
    if found.one.kept is None:
        return ""
    often, truth = found.out > 0.5, found.one.irrelevant
    number = int(often.sum())
    was = "was" if number == 1 else "were"
    said = f"{number:,} of {found.one.n:,} clients {was} left out in more than half of the rounds with a reply"
    if truth is None:
        return f"{said}."
    right = int((often & truth).sum())
    wrong = f"{number - right:,}" if number > right else "none"
    return f"{said}: {right:,} of the {int(truth.sum()):,} irrelevant ones, and {wrong} of the others."


def remarks(found: Relevance) -> str:
    one = found.one
    said = [f"Seed {one.trial.seed}."]
    said += [f"That seed is unfinished ({progress(one.trial)})." if one.trial.summary is None else ""]
    if found.divergence:
        many = f"{len(found.divergence)} recorded rounds" if len(found.divergence) > 1 else "the one recorded round"
        said.append(f"Divergence is scaled to run from 0 to 1 in each round; bars: mean of {many}, dots: the last.")
    tall = max(len(ids) for ids in grouped(one, BARS))
    said += [f"A bar or dot is the mean of up to {tall:,} clients, so that the page stays small." if tall > 1 else ""]
    wide = -(-len(found.filters) // POINTS)
    said += [f"The filter's lines are means of {wide} rounds." if wide > 1 else ""]
    return " ".join(text for text in said if text)


# what is drawn


def kinds(found: Relevance) -> list[tuple[str, str, list[tuple[int, np.ndarray]]]]:
    """A title, a colour, and the groups of clients with their places: all clients, or relevant and irrelevant ones."""
    groups, truth = list(enumerate(grouped(found.one, BARS))), found.one.irrelevant
    if truth is None:
        return [("clients", charts.COUNTED, groups)]
    both = ((False, "relevant clients", charts.COUNTED), (True, "irrelevant clients", charts.LOST))
    made = [(title, tone, [(i, ids) for i, ids in groups if truth[ids[0]] == kind]) for kind, title, tone in both]
    return [kind for kind in made if kind[2]]


def hover(found: Relevance, ids: np.ndarray) -> str:
    """What pointing at a client, or a group of clients, says."""
    said = [f"<b>{row_name(found.one, ids)}</b>"]
    if found.divergence:
        mean, last = (float(mean_of(values[ids])) for values in (found.mean, found.last))
        said.append(f"divergence {mean:.2f} on average" + ("" if np.isnan(last) else f", {last:.2f} in the last round"))
    replied, out = found.one.replied[ids].sum(), found.one.left_out[ids].sum()
    if found.one.kept is not None:
        judged = f"left out in {out:,.0f} of {replied:,.0f} rounds with a reply ({100 * out / max(replied, 1):.0f} %)"
        said.append(judged if replied else "never replied")
    return "<br>".join(said)


def value(values: np.ndarray, ids: np.ndarray) -> float | None:
    found = float(mean_of(values[ids]))
    return None if np.isnan(found) else round(found, 4)


def frame(found: Relevance, height: int, y: dict[str, Any], title: bool, **rest: Any) -> dict[str, Any]:
    """The layout of a figure with a place for every client; of two below each other the lower has the title."""
    groups = grouped(found.one, BARS)
    text = "clients, by number" + ("" if found.one.irrelevant is None else ", the irrelevant ones last")
    x: dict[str, Any] = {"title": {"text": text if title else ""}, "showgrid": False, "showticklabels": False}
    x["range"] = [-0.6, len(groups) - 0.4]
    if len(groups) <= charts.NAMED:
        names = [charts.brief(str(found.one.trial.clients["names"][ids[0]])) for ids in groups]
        x |= {"showticklabels": True, "tickvals": [*range(len(groups))], "ticktext": names, "tickangle": -60}
    around = {"margin": {"l": 56, "r": 12, "t": 40, "b": 48 if title else 20}}
    return charts.layout(height, x, y, legend=charts.legend(), showlegend=True, **rest) | around


def divergences(found: Relevance) -> charts.Figure:
    """A bar a client: its divergence, scaled; with a dot for the last recorded round."""
    data: list[dict[str, Any]] = []
    for title, tone, groups in kinds(found):
        text = [hover(found, ids) for _, ids in groups]
        data.append(
            {
                "type": "bar",
                "name": title,
                "x": [i for i, _ in groups],
                "y": [value(found.mean, ids) for _, ids in groups],
                "marker": {"color": tone, "line": {"width": 0}},
                "hovertext": text,
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        )
    every = sorted((place for _, _, groups in kinds(found) for place in groups), key=lambda place: place[0])
    dark = {"color": "#2b2f36", "line": {"color": "#ffffff", "width": 1}, "size": 7 if len(every) <= 100 else 4}
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"in round {max(found.divergence):,}",
            "x": [i for i, _ in every],
            "y": [value(found.last, ids) for _, ids in every],
            "marker": dark,
            "hoverinfo": "skip",
        }
    )
    y = {"title": {"text": "divergence, scaled"}, "range": [0, 1.04]}
    made = frame(found, 280, y, found.one.kept is None, bargap=0.25 if len(every) <= 150 else 0.0, barmode="overlay")
    return {"data": data, "layout": made}


def participation(found: Relevance) -> charts.Figure:
    """A dot a client: the share of its rounds in which its update did not count; more than half is marked by a line."""
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": title,
            "x": [i for i, _ in groups],
            "y": [None if (v := value(found.out, ids)) is None else round(100 * v, 2) for _, ids in groups],
            "marker": {"color": tone, "size": 9 if found.one.n <= 100 else 5},
            "hovertext": [hover(found, ids) for _, ids in groups],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for title, tone, groups in kinds(found)
    ]
    half = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 50, "y1": 50}
    half |= {"line": {"color": charts.ALONE, "width": 1.5, "dash": "dash"}}
    y = {"title": {"text": "left out, % of rounds"}, "range": [-3, 103], "tickvals": [0, 25, 50, 75, 100]}
    return {"data": data, "layout": frame(found, 260, y, True, shapes=[half])}


def qualities(found: Relevance) -> charts.Figure:
    """Precision, recall, F1 and AUC of the filter, round by round or as means of some rounds."""
    rounds = sorted(found.filters)
    wide = -(-len(rounds) // POINTS)
    windows = [rounds[i : i + wide] for i in range(0, len(rounds), wide)]
    data = []
    for k, (word, title) in enumerate(QUALITY.items()):
        known = [[v for r in window if (v := found.filters[r].get(word)) is not None] for window in windows]
        values = [round(float(np.mean(some)), 4) if some else None for some in known]
        if any(v is not None for v in values):
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers" if len(windows) <= 15 else "lines",
                    "name": title,
                    "x": [window[-1] for window in windows],
                    "y": values,
                    "line": {"color": charts.PALETTE[k], "dash": charts.DASHES[k], "width": 2},
                    "hovertemplate": "%{y:.3f}",
                }
            )
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y = {"title": {"text": "quality of the filter"}, "range": [0, 1.04]}
    top = {"margin": {"l": 56, "r": 12, "t": 40, "b": 48}}
    made = charts.layout(300, x, y, hovermode="x unified", legend=charts.legend(), showlegend=True)
    return {"data": data, "layout": made | top}
