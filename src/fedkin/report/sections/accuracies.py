"""Methods side by side: the metric that decides, and how each fares against training alone."""

from __future__ import annotations

from html import escape
from typing import Any

from fedkin.report.formats import gain_with_ends, in_percent, in_points, p_in_words, repeated
from fedkin.report.formats import titled as titled_metric
from fedkin.report.html import Section, choice, note, titled
from fedkin.report.methods_table import Column, methods_table
from fedkin.report.study import Study
from fedkin.report.words import SHOWN, headline, judged_otherwise, kind_of, lede, offered, score
from fedkin.runs.facts import scored_words
from fedkin.runs.statistics import APART, AVERAGES, deciding
from fedkin.runs.verdict import is_local, led

STATISTICS = {"last": "last", "last10": "last 10", "best": "best", "validated": "by validation"}

MORE_PAIRS = (
    "Verdicts are corrected over all these pairs, intervals are not. So a method may be clearly better than alone in "
    "the table above, which has fewer comparisons, and not clearly so here."
)


def accuracies(study: Study) -> Section:
    scored = [values for s in study.summaries.values() for kind in deciding(s).values() for values in kind.values()]
    options = {name: text for name, text in STATISTICS.items() if any(values[name] is not None for values in scored)}
    if "last10" in options:
        options["last10"] = last_ten_title(study)
    several = any(len(entry.done) > 1 for entry in study.entries.values())
    explained = [f"{titled_metric(study.metric)}{in_percent(study.metric)}."]
    explained += [means(study) if several else "Of one seed."]
    explained += [last_ten(study)]
    whom = "relevant clients; those known to be irrelevant stand apart" if study.apart else "clients"
    explained += [f"Macro: mean over {whom}; micro: by their samples."]
    sampled = scored_words(study.experiment["resolved"])
    explained += [f"{sampled.capitalize()}." if sampled else ""]
    if study.against:
        explained += [
            "Columns against alone are of the last round: shares of clients, the mean gain with its 95 % interval, and "
            "the verdict, corrected after Holm over the table; only a tested win over training alone is marked."
        ]
    explained += [led(study.leader)]
    explained += [judged_otherwise(study.summaries), offered(study.summaries)]
    said = [headline(study), *lede(study)] if study.sites else []  # without sites the header says it
    return Section(
        titled(
            "Methods side by side" if len(study.entries) > 1 else titled_metric(study.metric),
            f'<div class="lede">{"".join(f"<p>{escape(text)}</p>" for text in said)}</div>' if said else "",
            choice("statistic", "Rounds", options),
            methods_table(study, columns(study), f'id="comparison" data-shows="{SHOWN}"'),
            note(" ".join(text for text in explained if text)),
            every_pair(study),
        )
    )


def means(study: Study) -> str:
    """Over how many runs the means are: those of the method with the most finished ones."""
    most = max(study.summaries.values(), key=lambda summary: int(summary["runs"]))
    return f"Means over {repeated(most)} ± their standard deviation."


def columns(study: Study) -> list[Column]:
    found = [
        score_column(study, kind, average)
        for kind in study.kinds
        for average in (("micro",) if kind == "test" else AVERAGES)
    ]
    if study.apart:
        kinds = [kind for kind in study.kinds if kind != "test"]
        found += [apart_column(study, kind) for kind in kinds]
    if study.against:
        found += [share_column(study, word) for word in ("better", "worse")]
        found.append(Column("against alone", f"gain{in_points(study.metric)}", lambda name, _: gain(study, name)))
        found.append(Column("against alone", "verdict", lambda name, _: verdict(study, name)))
        if any("matched" in one for one in study.against.values()):
            found.append(Column("against alone", "against matched", lambda name, _: matched(study, name)))
        if sum(map(is_local, study.entries)) > 1:
            found.append(Column("against alone", "alone is", lambda name, _: alone_is(study, name)))
    return found


def score_column(study: Study, kind: str, average: str) -> Column:
    """Every statistic of a kind and average, of which the page shows the one that is chosen."""

    def cell(method: str, summary: dict[str, Any]) -> str:
        best = study.leader.get("best") and method == study.leader["method"] and average == "macro"
        best = best and kind == kind_of(study, method)
        shown = {name: score(summary, kind, average, name) for name in STATISTICS}
        shown |= {SHOWN: f'<b class="win">{shown[SHOWN]}</b>'} if best else {}
        return "".join(f'<span class="{name}">{text}</span>' for name, text in shown.items())

    return Column(f"{kind}, %" if study.metric.percent else kind, average, cell)


def apart_column(study: Study, kind: str) -> Column:
    """The mean over the clients that are known to be irrelevant, and in no other column."""

    def cell(_: str, summary: dict[str, Any]) -> str:
        return "".join(
            f'<span class="{name}">{score(summary, kind, f"macro{APART}", name)}</span>' for name in STATISTICS
        )

    return Column("irrelevant clients" + (", %" if study.metric.percent else ""), f"{kind} macro", cell)


def gain(study: Study, name: str) -> str:
    """A method's mean gain over alone with its interval."""
    return escape(gain_with_ends(study.metric, study.against[name])) if name in study.against else "-"


def matched(study: Study, name: str) -> str:
    """The verdict on a method against a Local that trains as rarely, and the gain."""
    found = study.against.get(name, {}).get("matched")
    return f"{escape(found['verdict'])}, {escape(gain_with_ends(study.metric, found))}" if found else "-"


def every_pair(study: Study) -> str:
    """Each method against each other one, as a table that opens; nothing where there is one pair."""
    if len(study.pairs) < 2:
        return ""
    words = ["method", "over", "better off", "worse off", f"gain{in_points(study.metric)} [95 % interval]", "verdict"]
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in words)
    rows = []
    for pair in study.pairs:
        shares = [f"{100 * pair[word]:.0f}\u00a0%" for word in ("better", "worse")]
        cells = [pair["over"], *shares, gain_with_ends(study.metric, pair), f"{pair['verdict']} ({p_in_words(pair)})"]
        row = "".join(f"<td>{escape(text)}</td>" for text in cells)
        rows.append(f'<tr><th scope="row">{escape(pair["method"])}</th>{row}</tr>')
    return (
        "<details><summary>Every method against every other, corrected together</summary>"
        f"{note(MORE_PAIRS)}"
        f'<div class="wide"><table class="pairs"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        "</div></details>"
    )


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
