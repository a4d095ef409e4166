"""Who was selected: how often each client, in which rounds, and what the selection thinks of it."""

from __future__ import annotations

import json
from html import escape
from math import isqrt

import numpy as np

from fedkin.compare import LOCAL
from fedkin.results import attendance, charts
from fedkin.results.attendance import Attendance
from fedkin.results.pieces import chart, choice, note, section
from fedkin.results.study import Entry, Study
from fedkin.results.words import listed, progress

TITLE = "Who was selected"


def selected(
    study: Study, known: dict[str, Attendance], figures: dict[str, charts.Figure], rounds: dict[str, str]
) -> str:
    """Who took part how often, and when; of methods where everybody always does a sentence is enough."""
    drawn = {name: one for name, one in known.items() if not one.whole}
    said = everybody([name for name in known if name not in drawn], known)
    if not drawn:
        return section(TITLE, note(said)) if said else ""
    n = len(study.clients["names"])
    shares = {name: selection(study.entries[name], n) for name in drawn}
    shares = {name: share for name, share in shares.items() if (share < 1).any()}
    parts = [note(said)]
    if shares:
        names = [str(name) for name in study.clients["names"]]
        figures["selected"] = charts.selections(shares, names, charts.styles(list(study.entries), LOCAL))
        text = "Share of rounds in which each client was selected, mean over seeds. Chance alone makes the line fall a "
        text += "little; a steep fall means that some clients are preferred. "
        label = "Share of rounds in which each client was selected, a line a method"
        parts = [chart("selected", label), note(text + said)]
    return section(TITLE, *parts, round_by_round(drawn, rounds))


def everybody(names: list[str], known: dict[str, Attendance]) -> str:
    """Methods of which no picture is needed."""
    silent = [name for name in names if known[name].kept is None]
    heard = [name for name in names if name not in silent]
    said = [f"{listed(silent, 'and')}: every client in every round." if silent else ""]
    said += [f"{listed(heard, 'and')}: every client in every round, and every update counted." if heard else ""]
    return " ".join(text for text in said if text)


def selection(entry: Entry, n: int) -> np.ndarray:
    """The share of rounds in which each client was selected, mean over finished seeds, or those begun."""  # (n,)
    trials = entry.done or [trial for trial in entry.trials if trial.lines]
    counts = [attendance.times(t.run.selected(), n) / len(t.lines) for t in trials]
    share: np.ndarray = np.mean(counts, axis=0)
    return share


def round_by_round(drawn: dict[str, Attendance], rounds: dict[str, str]) -> str:
    """The picture of clients against rounds, of the method that is chosen."""
    side = min(attendance.SIDE, isqrt(attendance.BUDGET // len(drawn)))
    texts = []
    for i, (name, one) in enumerate(drawn.items()):
        picture = attendance.pictured(one, side)
        texts.append({"said": spoken(name, one), "note": remarks(one, picture)})
        rounds[str(i)] = json.dumps(texts[-1] | picture.stored, allow_nan=False, separators=(",", ":"))
    options = {str(i): name for i, name in enumerate(drawn)}
    left = any(one.lost for one in drawn.values())
    return (
        f'<article id="attended"><h3>Round by round</h3>{choice("attended", "Method", options)}'
        f"<p>{escape(texts[0]['said'])}</p>"
        f"{chart('attended-map', 'Clients against rounds: who was selected when, and whether it counted')}"
        f"{keys(left)}{note(texts[0]['note'])}</article>"
    )


def keys(left: bool) -> str:
    """What the colours mean; the script fills in how often the darkest cell was selected."""
    counted, lost = charts.COUNTED, charts.LOST
    what = "selected, and its update counted" if left else "selected"
    ramp = f'<i style="background:{counted}"></i>{what}<span class="most"></span>'
    out = f'<span><i style="background:{lost}"></i>selected, but its update did not count</span>' if left else ""
    return f'<div class="keys"><span>{ramp}</span>{out}<span><i></i>not selected</span></div>'


def spoken(name: str, one: Attendance) -> str:
    """What the picture shows, in words."""
    sizes = [len(ids) for ids in one.ids]
    share = one.selected / one.rounds
    said = [f"{name} selected every client in every round."]
    if (share < 1).any():
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
    if one.kept is not None:
        said.append(outcome(one))
    return " ".join(said)


def outcome(one: Attendance) -> str:
    """What became of the updates."""
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


def remarks(one: Attendance, picture: attendance.Picture) -> str:
    said = [f"Seed {one.trial.seed}.", picture.note]
    said += [f"That seed is unfinished ({progress(one.trial)})." if one.trial.summary is None else ""]
    order = "Clients are in the order of their numbers"
    said += [f"{order}." if one.irrelevant is None else f"{order}, the irrelevant ones at the bottom."]
    return " ".join(text for text in said if text)


def percent(value: float) -> str:
    return f"{100 * value:.3g}\u00a0%"
