"""What methods cost, how steady they are from round to round, and how evenly their clients fare."""

from __future__ import annotations

from typing import Any

from fedkin.evaluate import KINDS
from fedkin.report.formats import measure, size
from fedkin.report.html import Section, note, titled
from fedkin.report.methods_table import Column, methods_table
from fedkin.report.study import Study
from fedkin.report.words import listed
from fedkin.runs.statistics import TAIL


def costs(study: Study) -> Section | None:
    """None until a seed is finished."""
    if not study.summaries:
        return None
    several = any(len(entry.done) > 1 for entry in study.entries.values())
    text = (
        f"Of whole runs{', means over seeds' if several else ''}. Client-rounds: clients that took part, summed over "
    )
    text += "rounds, which is how the papers count. Models and bytes are what was really sent"
    much = [name for name, s in study.summaries.items() if s["cost"]["uploads"] >= 1.5 * s["cost"]["client_rounds"] > 0]
    text += f": with {listed(much, 'and')} more than one model a client and round." if much else "."
    rounds = study.scored_rounds[-TAIL:]
    if steady_kinds(study):
        text += f" The std over rounds is of {len(rounds)} scored rounds, {rounds[0]} to {rounds[-1]}; a score that "
        text += "still changes there adds to it."
    return Section(titled("Costs and fairness", methods_table(study, columns(study), 'id="costs"'), note(text)))


def columns(study: Study) -> list[Column]:
    found = [Column("client-rounds", "the papers' cost", lambda _, s: f"{s['cost']['client_rounds']:,.0f}")]
    found += [models_column(word, title) for word, title in (("uploads", "up"), ("downloads", "down"))]
    found += [bytes_column(word, title) for word, title in (("bytes_up", "up"), ("bytes_down", "down"))]
    found.append(Column("time", "seconds", lambda _, s: f"{s['time']['total_s']:,.1f}"))
    if all("measured" in summary.get("memory", {}) for summary in study.summaries.values()):
        found += [memory_column("measured", "at its peak"), memory_column("estimated", "expected")]
    found += [steadiness_column(study, kind) for kind in steady_kinds(study)]
    kind = fairness_kind(study)
    if kind:
        units = (", points", ", %") if study.metric.percent else ("", "")
        titles = (("std_clients", f"std{units[0]}"), ("worst10", f"worst tenth{units[1]}"))
        found += [fairness_column(study, kind, word, title) for word, title in titles]
    return found


def models_column(word: str, title: str) -> Column:
    return Column("models sent", title, lambda _, summary: f"{summary['cost'][word]:,.0f}")


def bytes_column(word: str, title: str) -> Column:
    return Column("bytes sent", title, lambda _, summary: size(summary["cost"][word]))


def memory_column(word: str, title: str) -> Column:
    def cell(_: str, summary: dict[str, Any]) -> str:
        found = summary["memory"].get(word)
        return "-" if found is None else size(found)

    return Column("memory", title, cell)


def steadiness_column(study: Study, kind: str) -> Column:
    title = "std over rounds, points" if study.metric.percent else "std over rounds"
    return Column(title, kind, lambda _, summary: measure(study.metric, summary["stability"].get(kind)))


def fairness_column(study: Study, kind: str, word: str, title: str) -> Column:
    def cell(_: str, summary: dict[str, Any]) -> str:
        return measure(study.metric, summary["fairness"].get(kind, {}).get(word))

    return Column(f"{kind} over clients", title, cell)


def steady_kinds(study: Study) -> list[str]:
    """The kinds of models that were scored often enough to vary."""
    return [kind for kind in KINDS if any(kind in summary["stability"] for summary in study.summaries.values())]


def fairness_kind(study: Study) -> str | None:
    """The kind of models by which clients are compared with each other: post if it was scored."""
    found = [kind for summary in study.summaries.values() for kind in summary["fairness"]]
    return next((kind for kind in KINDS if kind in found), None)
