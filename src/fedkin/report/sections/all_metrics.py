"""More than accuracy: all metrics of all methods, whichever decides."""

from __future__ import annotations

from typing import Any

from fedkin.metrics import METRICS, Metric, of_task
from fedkin.report.html import Section, note, titled
from fedkin.report.methods_table import Column, methods_table
from fedkin.report.study import Study
from fedkin.report.words import MODELS, score_of
from fedkin.runs.facts import scored_words


def all_metrics(study: Study) -> Section | None:
    """None where a version wrote the runs that measured accuracy alone, and before a seed is finished."""
    measured = {name for summary in study.summaries.values() for name in summary.get("metrics", {})}
    if not measured:
        return None
    names = [name for name in of_task(study.metric.task) if name in measured or name == "accuracy"]
    names.sort(key=lambda name: name != study.metric.name)  # the one that decides first
    kind = study.ranking_kind
    text = f"{MODELS[kind][0].upper()}{MODELS[kind][1:]}, last round"
    text += ", on all test samples. " if kind == "test" else ", mean over the clients where a metric is defined. "
    text += "An arrow says which direction is better; accuracies, AUC and F1 are in %. "
    text += f"{METRICS[study.metric.name].label} decides here; another one does with --metric."
    text += f" {said.capitalize()}." if (said := scored_words(study.experiment["resolved"])) else ""
    columns = [metric_column(METRICS[name], kind) for name in names]
    title = "More than accuracy" if study.metric.task == "classify" else "All metrics"
    return Section(titled(title, methods_table(study, columns, 'id="metrics"'), note(text)))


def metric_column(metric: Metric, kind: str) -> Column:
    def cell(_: str, summary: dict[str, Any]) -> str:
        return score_of(summary, metric, kind, "micro" if kind == "test" else "macro")

    arrow = "\u2191" if metric.higher_is_better else "\u2193"
    return Column("all metrics", f"{metric.label} {arrow}", cell)
