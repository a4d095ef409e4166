"""Who was selected: how often each client, and in which rounds."""

from __future__ import annotations

import json
from html import escape
from math import isqrt

import numpy as np

from fedkin.report.charts.selected import selected_shares
from fedkin.report.charts.style import COUNTED, LOST
from fedkin.report.findings import rounds_map
from fedkin.report.findings.participation import Participation
from fedkin.report.formats import share as percent
from fedkin.report.html import Section, chart, choice, note, styles, titled
from fedkin.report.study import Study
from fedkin.report.words import joined, listed, unfinished
from fedkin.runs.run import Run

TITLE = "Who was selected"
Drawn = dict[str, tuple[Run, Participation]]


def who_was_selected(study: Study) -> Section | None:
    """Pictures of the methods that leave somebody out, and a sentence on the others; None before the first round."""
    drawn = {name: pair for name, pair in study.drawn.items() if not pair[1].complete}
    said = everybody({name: one for name, (_, one) in study.drawn.items() if name not in drawn})
    if not drawn:
        return Section(titled(TITLE, note(said))) if said else None
    shares = {name: study.entries[name].selected for name in drawn}
    shares = {name: share for name, share in shares.items() if (share < 1).any()}
    parts, figures = [note(said)], {}
    if shares:
        names = [str(name) for name in study.clients["names"]]
        figures["selected"] = selected_shares(shares, names, styles(study))
        text = "Share of rounds in which each client was selected, mean over seeds. Chance alone makes the line fall a "
        text += "little; a steep fall means that some clients are preferred. "
        label = "Share of rounds in which each client was selected, a line a method"
        parts = [chart("selected", label), note(text + said)]
    maps = round_by_round(drawn)
    return Section(titled(TITLE, *parts, maps.html), figures, maps.data)


def everybody(complete: dict[str, Participation]) -> str:
    """A sentence on methods of which no picture is needed, because every client always took part."""
    silent = [name for name, one in complete.items() if one.kept is None]
    heard = [name for name in complete if name not in silent]
    said = [f"{listed(silent, 'and')}: every client in every round." if silent else ""]
    said += [f"{listed(heard, 'and')}: every client in every round, and every update counted." if heard else ""]
    return joined(said)


def round_by_round(drawn: Drawn) -> Section:
    """The map of clients against rounds, of the method that is chosen."""
    side = min(rounds_map.SIDE, isqrt(rounds_map.BUDGET // len(drawn)))
    texts, stored = [], {}
    for i, (name, (run, one)) in enumerate(drawn.items()):
        found = rounds_map.rounds_map(one, side)
        texts.append({"said": spoken(name, one), "note": remarks(run, one, found.note)})
        stored[str(i)] = json.dumps(texts[-1] | found.stored, allow_nan=False, separators=(",", ":"))
    options = {str(i): name for i, name in enumerate(drawn)}
    lost = any(one.lost for _, one in drawn.values())
    html = (
        f'<article id="attended"><h3>Round by round</h3>{choice("attended", "Method", options)}'
        f"<p>{escape(texts[0]['said'])}</p>"
        f"{chart('attended-map', 'Clients against rounds: who was selected when, and whether it counted')}"
        f"{keys(lost)}{note(texts[0]['note'])}</article>"
    )
    return Section(html, data={"rounds": stored})


def keys(lost: bool) -> str:
    """What the colours mean. The page's script fills in how often the darkest cell was selected."""
    what = "selected, and its update counted" if lost else "selected"
    ramp = f'<i style="background:{COUNTED}"></i>{what}<span class="most"></span>'
    out = f'<span><i style="background:{LOST}"></i>selected, but its update did not count</span>' if lost else ""
    return f'<div class="keys"><span>{ramp}</span>{out}<span><i></i>not selected</span></div>'


def spoken(name: str, one: Participation) -> str:
    """What the map shows, in words."""
    said = [f"{name} selected every client in every round."]
    if (one.selected < one.rounds).any():
        said = how_many(name, one)
    if one.kept is not None:
        said.append(outcome(one))
    return " ".join(said)


def how_many(name: str, one: Participation) -> list[str]:
    """How many clients were selected a round, and who most and least often."""
    sizes = [len(ids) for ids in one.ids]
    share = one.selected / one.rounds
    mean = f"{np.mean(sizes):,.1f}".removesuffix(".0")
    said = [f"{name} selected {mean} of {one.n:,} clients a round on average"]
    said[0] += f", {sizes[0]:,} in the first round and {sizes[-1]:,} in the last." if sizes[0] != sizes[-1] else "."
    most, least = int(share.argmax()), int(share.argmin())
    said.append(f"Most often {one.called(most)}, in {percent(share[most])} of the rounds")
    never = int((share == 0).sum())
    if never:
        said[-1] += f"; {never:,} {'client was' if never == 1 else 'clients were'} never selected."
    else:
        said[-1] += f", least often {one.called(least)}, in {percent(share[least])}."
    if one.irrelevant is not None:
        apart = [percent(float(share[mask].mean())) for mask in (one.irrelevant, ~one.irrelevant)]
        said.append(f"Irrelevant clients were selected in {apart[0]} of the rounds, the others in {apart[1]}.")
    return said


def outcome(one: Participation) -> str:
    """How many updates came, and how many of them did not count."""
    total, came, out = (int(v.sum()) for v in (one.selected, one.replied, one.left_out))
    if not one.lost:
        return "Every update counted."
    said = (
        f"Of {came:,} updates, {out:,} did not count ({percent(out / came)})"
        if out
        else f"All {came:,} updates counted"
    )
    said += ", some only in part" if any(((kept > 0) & (kept < 1)).any() for kept in one.kept or []) else ""
    missing = total - came
    never = "1 selected client did not reply" if missing == 1 else f"{missing:,} times a selected client did not reply"
    return said + (f"; {never}." if missing else ".")


def remarks(run: Run, one: Participation, drawn_together: str) -> str:
    order = "Clients are in the order of their numbers"
    last = f"{order}." if one.irrelevant is None else f"{order}, the irrelevant ones at the bottom."
    return joined([f"Seed {run.seed}.", drawn_together, unfinished(run), last])
