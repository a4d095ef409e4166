"""Methods side by side: the metric that decides, and how each fares against training alone."""

from __future__ import annotations

from html import escape
from typing import Any

from fedkin.report.formats import in_percent
from fedkin.report.formats import titled as titled_metric
from fedkin.report.html import Section, choice, note, titled
from fedkin.report.methods_table import Column, methods_table
from fedkin.report.study import Study
from fedkin.report.words import SHOWN, headline, judged_otherwise, lede, score
from fedkin.runs.statistics import AVERAGES, deciding
from fedkin.runs.verdict import is_local

STATISTICS = {"last": "last", "last10": "last 10", "best": "best", "validated": "by validation"}


def accuracies(study: Study) -> Section:
    scored = [values for s in study.summaries.values() for kind in deciding(s).values() for values in kind.values()]
    options = {name: text for name, text in STATISTICS.items() if any(values[name] is not None for values in scored)}
    if "last10" in options:
        options["last10"] = last_ten_title(study)
    several = any(len(entry.done) > 1 for entry in study.entries.values())
    explained = [f"{titled_metric(study.metric)}{in_percent(study.metric)}."]
    explained += ["Means over seeds and splits ± their standard deviation." if several else "Of one seed."]
    explained += [last_ten(study)]
    if study.against:
        explained += ["Columns against alone are of the last round; only a tested win over training alone is marked."]
    explained += [judged_otherwise(study.summaries)]
    said = [headline(study), *lede(study)] if study.sites else []  # without sites the header says it
    return Section(
        titled(
            "Methods side by side" if len(study.entries) > 1 else titled_metric(study.metric),
            f'<div class="lede">{"".join(f"<p>{escape(text)}</p>" for text in said)}</div>' if said else "",
            choice("statistic", "Rounds", options),
            methods_table(study, columns(study), f'id="comparison" data-shows="{SHOWN}"'),
            note(" ".join(explained)),
        )
    )


def columns(study: Study) -> list[Column]:
    found = [
        score_column(study, kind, average)
        for kind in study.kinds
        for average in (("micro",) if kind == "test" else AVERAGES)
    ]
    if study.against:
        found += [share_column(study, word) for word in ("better", "worse")]
        found.append(Column("against alone", "verdict", lambda name, _: verdict(study, name)))
        if sum(map(is_local, study.entries)) > 1:
            found.append(Column("against alone", "alone is", lambda name, _: alone_is(study, name)))
    return found


def score_column(study: Study, kind: str, average: str) -> Column:
    """Every statistic of a kind and average, of which the page shows the one that is chosen."""

    def cell(_: str, summary: dict[str, Any]) -> str:
        return "".join(f'<span class="{name}">{score(summary, kind, average, name)}</span>' for name in STATISTICS)

    return Column(f"{kind}, %" if study.metric.percent else kind, average, cell)


def share_column(study: Study, word: str) -> Column:
    """The share of clients that are better, or worse, off than alone."""

    def cell(name: str, _: dict[str, Any]) -> str:
        return f"{100 * study.against[name][word]:.0f} %" if name in study.against else "-"

    return Column("against alone", f"{word} off", cell)


def verdict(study: Study, name: str) -> str:
    """The verdict on a method. Only a win is marked."""
    text = escape(study.against[name]["verdict"]) if name in study.against else "-"
    return f'<b class="win">{text}</b>' if name in study.winners else text


def alone_is(study: Study, name: str) -> str:
    """The Local that a method is compared with."""
    return escape(study.alone_of(name)) if name in study.against else "-"


def last_ten(study: Study) -> str:
    """Which rounds the last ten scored ones are here. If few rounds are scored, these go far back."""
    rounds = study.scored_rounds[-10:]
    if not rounds:
        return ""
    return f"'{last_ten_title(study).capitalize()}' is the mean of rounds {rounds[0]} to {rounds[-1]}."


def last_ten_title(study: Study) -> str:
    """What the mean of the last ten scored rounds is called, where there may be fewer."""
    return f"last {len(study.scored_rounds[-10:])} scored"
