"""The report's tables."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from fedkin.results import metrics
from fedkin.results.pieces import chip, choice, note, section
from fedkin.results.study import Entry, Study
from fedkin.results.table import KINDS, percent
from fedkin.results.words import SHOWN, score, size

STATISTICS = {"last": "last", "last10": "last 10", "best": "best", "validated": "by validation"}


def kinds(study: Study) -> list[str]:
    """Those that any method has, in the order of the table."""
    found: list[list[Any]] = [[line["accuracy"] for line in t.lines if "accuracy" in line][-1:] for t in study.trials]
    return [kind for kind in KINDS if any(kind in last for scores in found for last in scores)]


Column = tuple[str, str, Callable[[str, dict[str, Any]], str]]  # group, title, HTML of a method's cell


def columns(study: Study) -> list[Column]:
    """The table's columns after the method."""
    found: list[Column] = []
    for kind in kinds(study):
        for average in ("micro",) if kind == "test" else metrics.AVERAGES:
            found.append((f"{kind}, %", average, lambda _, s, k=kind, a=average: statistics_cell(s, k, a)))  # type: ignore[misc]
    if study.against:
        for word in ("better", "worse"):
            found.append(("against alone", f"{word} off", lambda name, _, w=word: share_cell(study, name, w)))  # type: ignore[misc]
        found.append(("against alone", "verdict", lambda name, _: verdict_cell(study, name)))
    for key, title in (("std_clients", "std"), ("worst10", "worst tenth")):
        found.append(("post over clients, %", title, lambda _, s, k=key: percent(s["fairness"].get("post", {}).get(k))))  # type: ignore[misc]
    found.append(("cost, a seed", "uploads", lambda _, s: f"{s['cost']['uploads']:,.0f}"))
    found.append(("cost, a seed", "exchanged", lambda _, s: size(s["cost"]["bytes_up"] + s["cost"]["bytes_down"])))
    found.append(("cost, a seed", "seconds", lambda _, s: f"{s['time']['total_s']:,.1f}"))
    return found


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
    wanted = columns(study)
    groups = list(dict.fromkeys(group for group, _, _ in wanted))
    widths = {group: sum(other == group for other, _, _ in wanted) for group in groups}
    over = "".join(f'<th colspan="{widths[group]}" scope="colgroup">{escape(group)}</th>' for group in groups)
    under = "".join(f'<th scope="col"{edge(wanted, i)}>{escape(wanted[i][1])}</th>' for i in range(len(wanted)))
    rows = "".join(row(study, entry, wanted) for entry in study.entries.values())
    scored = [values for s in study.summaries.values() for kind in s["accuracy"].values() for values in kind.values()]
    options = {name: text for name, text in STATISTICS.items() if any(values[name] is not None for values in scored)}
    several = any(len(entry.done) > 1 for entry in study.entries.values())
    explained = ["Accuracies are means over seeds ± their standard deviation." if several else "Of one seed."]
    explained += [last_ten(study)]
    explained += ["Columns over clients" + (" and against alone" if study.against else "") + " are of the last round."]
    explained += ["Only a tested win over training alone is marked."] if study.against else []
    return section(
        "Methods side by side" if len(study.entries) > 1 else "Accuracy and cost",
        choice("statistic", "Rounds", options),
        f'<div class="wide"><table id="comparison" data-shows="{SHOWN}">'
        f'<thead><tr><th rowspan="2" scope="col">method</th>{over}</tr><tr>{under}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>",
        note(" ".join(explained)),
    )


def last_ten(study: Study) -> str:
    """Which rounds 'last 10' means here, for with seldom scoring they reach far back."""
    trial = next((entry.done[0] for entry in study.entries.values() if entry.done), None)
    rounds = [line["round"] for line in trial.lines if "accuracy" in line][-10:] if trial else []
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
