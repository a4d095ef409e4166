"""The report's tables."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from fedkin.evaluate import KINDS
from fedkin.results import metrics
from fedkin.results.pieces import chip, choice, note, section
from fedkin.results.study import Entry, Study
from fedkin.results.table import percent
from fedkin.results.words import SHOWN, listed, score, size

STATISTICS = {"last": "last", "last10": "last 10", "best": "best", "validated": "by validation"}


Column = tuple[str, str, Callable[[str, dict[str, Any]], str]]  # group, title, HTML of a method's cell


def columns(study: Study) -> list[Column]:
    """The table's columns after the method."""
    found: list[Column] = []
    for kind in study.kinds:
        for average in ("micro",) if kind == "test" else metrics.AVERAGES:
            found.append((f"{kind}, %", average, lambda _, s, k=kind, a=average: statistics_cell(s, k, a)))  # type: ignore[misc]
    if study.against:
        for word in ("better", "worse"):
            found.append(("against alone", f"{word} off", lambda name, _, w=word: share_cell(study, name, w)))  # type: ignore[misc]
        found.append(("against alone", "verdict", lambda name, _: verdict_cell(study, name)))
    return found


def cost_columns(study: Study) -> list[Column]:
    """What a method costs, how steady it is from round to round, and how evenly its clients fare."""
    judged = fair_kind(study)
    found: list[Column] = [("client-rounds", "the papers' cost", lambda _, s: f"{s['cost']['client_rounds']:,.0f}")]
    for word, title in (("uploads", "up"), ("downloads", "down")):
        found.append(("models sent", title, lambda _, s, w=word: f"{s['cost'][w]:,.0f}"))  # type: ignore[misc]
    for word, title in (("bytes_up", "up"), ("bytes_down", "down")):
        found.append(("bytes sent", title, lambda _, s, w=word: size(s["cost"][w])))  # type: ignore[misc]
    found.append(("time", "seconds", lambda _, s: f"{s['time']['total_s']:,.1f}"))
    for kind in steady_kinds(study):
        found.append(("std over rounds, points", kind, lambda _, s, k=kind: percent(s["stability"].get(k))))  # type: ignore[misc]
    for word, title in (("std_clients", "std, points"), ("worst10", "worst tenth, %")) if judged else ():
        cell = lambda _, s, w=word: percent(s["fairness"].get(judged, {}).get(w))  # noqa: E731
        found.append((f"{judged} over clients", title, cell))
    return found


def steady_kinds(study: Study) -> list[str]:
    """Kinds of accuracy that were scored often enough to vary."""
    return [kind for kind in KINDS if any(kind in summary["stability"] for summary in study.summaries.values())]


def fair_kind(study: Study) -> str | None:
    """The kind by which clients are set against each other: post where it was scored."""
    found = [kind for summary in study.summaries.values() for kind in summary["fairness"]]
    return next((kind for kind in KINDS if kind in found), None)


def statistics_cell(summary: dict[str, Any], kind: str, average: str) -> str:
    """Every statistic, of which the page shows the one chosen."""
    return "".join(f'<span class="{name}">{score(summary, kind, average, name)}</span>' for name in STATISTICS)


def share_cell(study: Study, name: str, word: str) -> str:
    return f"{100 * study.against[name][word]:.0f} %" if name in study.against else "-"


def verdict_cell(study: Study, name: str) -> str:
    """Only a win is marked."""
    verdict = escape(study.against[name]["verdict"]) if name in study.against else "-"
    return f'<b class="win">{verdict}</b>' if name in study.winners else verdict


def table(study: Study) -> str:
    """Accuracies, and each method against training alone."""
    scored = [values for s in study.summaries.values() for kind in s["accuracy"].values() for values in kind.values()]
    options = {name: text for name, text in STATISTICS.items() if any(values[name] is not None for values in scored)}
    several = any(len(entry.done) > 1 for entry in study.entries.values())
    explained = ["Accuracies are means over seeds ± their standard deviation." if several else "Of one seed."]
    explained += [last_ten(study)]
    if study.against:
        explained += ["Columns against alone are of the last round; only a tested win over training alone is marked."]
    return section(
        "Methods side by side" if len(study.entries) > 1 else "Accuracy",
        choice("statistic", "Rounds", options),
        grid(study, columns(study), f'id="comparison" data-shows="{SHOWN}"'),
        note(" ".join(explained)),
    )


def costs(study: Study) -> str:
    """Nothing until a seed is finished."""
    if not study.summaries:
        return ""
    several = any(len(entry.done) > 1 for entry in study.entries.values())
    text = (
        f"Of whole runs{', means over seeds' if several else ''}. Client-rounds: clients that took part, summed over "
    )
    text += "rounds, which is how the papers count. Models and bytes are what was really sent"
    much = [name for name, s in study.summaries.items() if s["cost"]["uploads"] >= 1.5 * s["cost"]["client_rounds"] > 0]
    text += f": with {listed(much, 'and')} more than one model a client and round." if much else "."
    rounds = scored_rounds(study)[-metrics.TAIL :]
    if steady_kinds(study):
        text += f" The std over rounds is of {len(rounds)} scored rounds, {rounds[0]} to {rounds[-1]}; accuracy that "
        text += "still rises there adds to it."
    return section("Costs and fairness", grid(study, cost_columns(study), 'id="costs"'), note(text))


def grid(study: Study, wanted: list[Column], about: str) -> str:
    """A row a method, under two rows of titles."""
    groups = list(dict.fromkeys(group for group, _, _ in wanted))
    widths = {group: sum(other == group for other, _, _ in wanted) for group in groups}
    over = "".join(f'<th colspan="{widths[group]}" scope="colgroup">{escape(group)}</th>' for group in groups)
    under = "".join(f'<th scope="col"{edge(wanted, i)}>{escape(wanted[i][1])}</th>' for i in range(len(wanted)))
    rows = "".join(row(study, entry, wanted) for entry in study.entries.values())
    return (
        f'<div class="wide"><table {about}>'
        f'<thead><tr><th rowspan="2" scope="col">method</th>{over}</tr><tr>{under}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def scored_rounds(study: Study) -> list[int]:
    """Of the first finished run."""
    trial = next((entry.done[0] for entry in study.entries.values() if entry.done), None)
    return [line["round"] for line in trial.lines if "accuracy" in line] if trial else []


def last_ten(study: Study) -> str:
    """Which rounds 'last 10' means here, for with seldom scoring they reach far back."""
    rounds = scored_rounds(study)[-10:]
    if not rounds:
        return ""
    return f"'Last 10' here is the mean of {len(rounds)} scored rounds, from {rounds[0]} to {rounds[-1]}."


def edge(wanted: list[Column], i: int) -> str:
    """Marks the first column of a group, which gets a little air."""
    return ' class="first"' if i == 0 or wanted[i][0] != wanted[i - 1][0] else ""


def row(study: Study, entry: Entry, wanted: list[Column]) -> str:
    done, total = len(entry.done), len(entry.trials)
    some = f" <small>{done} of {total} seeds</small>" if 0 < done < total else ""
    head = f'<th scope="row">{chip(study, entry.name)}{some}</th>'
    if entry.summary is None:
        return f'<tr>{head}<td class="none" colspan="{len(wanted)}">no seed is finished</td></tr>'
    cells = "".join(f"<td{edge(wanted, i)}>{wanted[i][2](entry.name, entry.summary)}</td>" for i in range(len(wanted)))
    return f"<tr>{head}{cells}</tr>"
