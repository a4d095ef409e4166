"""The metric that decides over the rounds."""

from __future__ import annotations

from fedkin.report.charts.curves import metric_curves
from fedkin.report.formats import titled as titled_metric
from fedkin.report.html import Section, chart, choice, fixed_choice, note, styles, titled
from fedkin.report.study import Study
from fedkin.runs.facts import scored_words
from fedkin.runs.statistics import AVERAGES

KIND_LABELS = {
    "post": "after local training (post)",
    "global": "common model (global)",
    "recv": "as received (recv)",
    "test": "common test set (test)",
}
AVERAGE_LABELS = {"macro": "mean over clients (macro)", "micro": "over all samples (micro)"}
RELEVANT_LABELS = {"macro": "mean over relevant clients (macro)", "micro": "over their samples (micro)"}


def curves(study: Study) -> Section:
    """A line a method, of the kind of models and the average that the reader chooses."""
    found, title = study.kinds, f"{titled_metric(study.metric)} over the rounds"
    if not found:
        return Section(titled(title, note("No round has been scored yet.")))
    series = []
    for name, entry in study.entries.items():
        label = name if entry.done else f"{name} (unfinished)"
        for kind in found:
            for average in AVERAGES:
                if values := entry.scores(kind, average):
                    series.append((name, label, f"{kind}/{average}", values))
    kinds = choice("kind", "Which model", {kind: KIND_LABELS[kind] for kind in found}) or fixed_choice("kind", found[0])
    one = all(len(entry.done) < 2 for entry in study.entries.values())
    seeds = "One seed, so no band." if one else "Line: mean over seeds; band: from the worst seed to the best."
    seeds += f" {said.capitalize()}." if (said := scored_words(study.experiment["resolved"])) else ""
    averages = RELEVANT_LABELS if study.apart else AVERAGE_LABELS
    html = titled(
        title,
        f'<div class="choices">{kinds}{choice("average", "Average", averages)}</div>',
        chart("curves", f"{title}, a line a method"),
        note(f"{seeds} A method that has no such model has no line. Click a method's name to hide it."),
    )
    return Section(html, {"curves": metric_curves(series, styles(study), f"{found[0]}/macro", study.metric)})
