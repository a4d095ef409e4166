"""How relevant clients seemed to a filter, how often it left them out, and how often it was right."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkin.report.charts.style import (
    ALONE,
    COUNTED,
    DASHES,
    LOST,
    NAMED,
    PALETTE,
    Figure,
    layout,
    legend_above,
    named_ticks,
)
from fedkin.report.findings.filtering import Filtering
from fedkin.report.findings.participation import mean_of

QUALITY = {"precision": "precision", "recall": "recall", "f1": "F1", "auc": "AUC"}


def kinds(found: Filtering) -> list[tuple[str, str, list[tuple[int, np.ndarray]]]]:
    """For all clients, or for relevant and irrelevant ones: a title, a colour, and the groups with their places."""
    groups, truth = list(enumerate(found.groups)), found.clients.irrelevant
    if truth is None:
        return [("clients", COUNTED, groups)]
    both = ((False, "relevant clients", COUNTED), (True, "irrelevant clients", LOST))
    made = [(title, tone, [(i, ids) for i, ids in groups if truth[ids[0]] == kind]) for kind, title, tone in both]
    return [kind for kind in made if kind[2]]


def hover(found: Filtering, ids: np.ndarray) -> str:
    """What pointing at a client, or a group of clients, says."""
    said = [f"<b>{found.clients.group_name(ids)}</b>"]
    if found.divergence:
        mean, last = (float(mean_of(values[ids])) for values in (found.mean, found.last))
        said.append(f"divergence {mean:.2f} on average" + ("" if np.isnan(last) else f", {last:.2f} in the last round"))
    replied, out = found.clients.replied[ids].sum(), found.clients.left_out[ids].sum()
    if found.clients.kept is not None:
        text = f"left out in {out:,.0f} of {replied:,.0f} rounds with a reply ({100 * out / max(replied, 1):.0f} %)"
        said.append(text if replied else "never replied")
    return "<br>".join(said)


def value(values: np.ndarray, ids: np.ndarray) -> float | None:
    """The mean over a group of clients; None if nothing is known of them."""
    found = float(mean_of(values[ids]))
    return None if np.isnan(found) else round(found, 4)


def frame(found: Filtering, height: int, y: dict[str, Any], title: bool) -> dict[str, Any]:
    """The layout of a figure with a place for every client. Of two figures below each other the lower has the title."""
    groups = found.groups
    text = "clients, by number" if found.clients.irrelevant is None else "clients, irrelevant ones last"
    x: dict[str, Any] = {"title": {"text": text if title else ""}, "showgrid": False, "showticklabels": False}
    x["range"] = [-0.6, len(groups) - 0.4]
    if len(groups) <= NAMED:
        names = [str(found.clients.names[ids[0]]) for ids in groups]
        x |= named_ticks(range(len(groups)), names) | {"showticklabels": True}
    around = {"margin": {"l": 56, "r": 12, "t": 40, "b": 48 if title else 20}}
    return layout(height, x, y) | legend_above() | around


def divergences(found: Filtering) -> Figure:
    """A bar a client: its scaled divergence, mean over the recorded rounds. A dot is its last recorded round."""
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
    bars = {"bargap": 0.25 if len(every) <= 150 else 0.0, "barmode": "overlay"}
    return {"data": data, "layout": frame(found, 280, y, found.clients.kept is None) | bars}


def left_out(found: Filtering) -> Figure:
    """A dot a client: the share of its rounds in which its update did not count. A line marks one half."""
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": title,
            "x": [i for i, _ in groups],
            "y": [None if (v := value(found.out, ids)) is None else round(100 * v, 2) for _, ids in groups],
            "marker": {"color": tone, "size": 9 if found.clients.n <= 100 else 5},
            "hovertext": [hover(found, ids) for _, ids in groups],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for title, tone, groups in kinds(found)
    ]
    half = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 50, "y1": 50}
    half |= {"line": {"color": ALONE, "width": 1.5, "dash": "dash"}}
    y = {"title": {"text": "left out, % of rounds"}, "range": [-3, 103], "tickvals": [0, 25, 50, 75, 100]}
    return {"data": data, "layout": frame(found, 260, y, True) | {"shapes": [half]}}


def qualities(found: Filtering) -> Figure:
    """Precision, recall, F1 and AUC of the filter, round by round or as means of some rounds."""
    rounds = sorted(found.quality)
    wide = found.rounds_a_point
    windows = [rounds[i : i + wide] for i in range(0, len(rounds), wide)]
    data = []
    for k, (word, title) in enumerate(QUALITY.items()):
        known = [[v for r in window if (v := found.quality[r].get(word)) is not None] for window in windows]
        values = [round(float(np.mean(some)), 4) if some else None for some in known]
        if any(v is not None for v in values):
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers" if len(windows) <= 15 else "lines",
                    "name": title,
                    "x": [window[-1] for window in windows],
                    "y": values,
                    "line": {"color": PALETTE[k], "dash": DASHES[k], "width": 2},
                    "hovertemplate": "%{y:.3f}",
                }
            )
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y = {"title": {"text": "quality of the filter"}, "range": [0, 1.04]}
    return {"data": data, "layout": layout(300, x, y) | {"hovermode": "x unified"} | legend_above()}
