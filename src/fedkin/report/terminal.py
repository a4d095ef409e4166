"""The tables of a run, a comparison and a preset, as a terminal shows them."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedkin.evaluate import KINDS
from fedkin.metrics import METRICS, Metric
from fedkin.presets.outcome import Outcome
from fedkin.report import preset_tables
from fedkin.report.formats import in_percent, measure, titled
from fedkin.report.preset_tables import PUBLISHED, Grid
from fedkin.report.words import judged_otherwise
from fedkin.runs.statistics import STATISTICS, deciding, of_metric
from fedkin.runs.verdict import LOCAL, is_local

LOOK: dict[str, Any] = {"box": SIMPLE_HEAD, "title_justify": "left", "caption_justify": "left", "title_style": "bold"}

WORDS = {
    "post": "post: each client's model after local training (for one-model methods the common model, fine-tuned)",
    "global": "global: the common model, on each client's test samples",
    "test": "test: the common model, on the common test set",
}

VERDICTS = {"better": "better", "worse": "worse", "no clear difference": "unclear"}


def accuracy_table(summary: dict[str, Any]) -> Table:
    """One method: the metric that decides, by kind, average and statistic."""
    seeds, every, metric = summary["seeds"], summary["evaluate_every"], METRICS[summary.get("metric", "accuracy")]
    what = f"{metric.label}{in_percent(metric)}"
    title = f"{summary['method']}: {what}, {summary['rounds']} rounds scored every {every}, seeds {seeds}"
    table = Table("kind", "average", "last", "last 10", "best", "by validation", title=title, **LOOK)
    found, spreads = of_metric(summary, metric.name), of_metric(summary, metric.name, spread=True)
    for kind in (kind for kind in KINDS if kind in found):
        for average, values in found[kind].items():
            spread = spreads.get(kind, {}).get(average, {})
            cells = [measure(metric, values[name], spread.get(name)) for name in STATISTICS]
            table.add_row(kind, average, *cells)
    cost, time = summary["cost"], summary["time"]
    papers = f"{cost['client_rounds']:,.0f} client-rounds (the papers' cost); " if "client_rounds" in cost else ""
    table.caption = (
        f"{papers}{cost['uploads']:,.0f} model uploads, {cost['downloads']:,.0f} downloads; {time['total_s']:.1f} s a "
        "seed"
    )
    table.caption += "".join(f"\n{line}" for line in other_numbers(summary))
    return table


def other_numbers(summary: dict[str, Any]) -> list[str]:
    """What else was measured in the last round, a line each."""
    words = {"filter": "filter of irrelevant clients", "train": "training", "heterogeneity": "heterogeneity"}
    found = []
    for group, title in words.items():
        values = {name: value["last"] for name, value in summary.get("observed", {}).get(group, {}).items()}
        shown = [f"{name.replace('_', ' ')} {value:.3f}" for name, value in values.items() if value is not None]
        found += [f"{title}, last round: {', '.join(shown)}"] if shown else []
    return found


def comparison_table(summary: dict[str, Any]) -> Table:
    """Methods side by side in the last round, and how many clients are better and worse off than alone."""
    methods = summary["methods"]
    first, metric = next(iter(methods.values())), METRICS[summary.get("metric", "accuracy")]
    title = f"{titled(metric)}{in_percent(metric)} after {first['rounds']} rounds, "
    title += f"mean ± standard deviation over {repeated(first)}"
    has = [kind for kind in ("post", "global", "test") if any(kind in deciding(m) for m in methods.values())]
    scored = [(kind, average) for kind in has for average in (("micro",) if kind == "test" else ("macro", "micro"))]
    columns = [kind if kind == "test" else f"{kind} {average}" for kind, average in scored]
    locals = [name for name in methods if is_local(name)]
    alone = ["better", "worse", "than alone"] if summary["against_local"] else []
    alone += ["alone is"] if alone and len(locals) > 1 else []
    table = Table("method", *columns, *alone, "uploads", "seconds", title=title, **LOOK)
    for column in table.columns:
        column.justify, column.no_wrap = ("right" if column is not table.columns[0] else "left"), True
    for name, method in methods.items():
        cells = [cell(method, kind, average) for kind, average in scored]
        against = summary["against_local"].get(name)
        share = ["-", "-", "alone", "-"][: len(alone)]
        if against:
            share = [
                f"{100 * against['better']:.0f} %",
                f"{100 * against['worse']:.0f} %",
                VERDICTS[against["verdict"]],
                against.get("against", LOCAL),
            ][: len(alone)]
        table.add_row(name, *cells, *share, f"{method['cost']['uploads']:,.0f}", f"{method['time']['total_s']:.1f}")
    averages = f"macro: mean over clients; micro: {pooled(metric)}."
    table.caption = " ".join([*(f"{WORDS[kind]}." for kind in has), averages])
    if alone:
        table.caption += (
            f" Better and worse: share of clients whose last post {metric.label} is better or worse than their own "
            "when training alone; the verdict is a paired test over clients and seeds (unclear: neither)."
        )
    if len(locals) > 1:
        table.caption += " Alone is the Local with as many steps a round, at the same rate, as the method."
    table.caption += f" {otherwise}" if (otherwise := judged_otherwise(methods)) else ""
    lines = {name: other_numbers(method) for name, method in methods.items()}
    if alone and any("train" in method.get("observed", {}) for method in methods.values()):
        table.caption += " Clients known to be irrelevant are in the averages, but not among the better and worse off."
    table.caption += "".join(f"\n{name}: {line}" for name, several in lines.items() for line in several)
    return table


def repeated(summary: dict[str, Any]) -> str:
    """Over how many runs the numbers of a method are: '2 seeds', or '2 seeds x 10 splits'."""
    counts = {"seed": len(summary["seeds"]), "split": len(summary.get("splits", [0]))}
    said = [f"{count} {word}" + ("s" if count > 1 else "") for word, count in counts.items()]
    return " x ".join(said if counts["split"] > 1 else said[:1])


def pooled(metric: Metric) -> str:
    """What a micro value is: over all samples where that can be pooled, else weighted by them."""
    return "over samples" if metric.name in ("accuracy", "log_loss") else "weighted by samples"


def cell(method: dict[str, Any], kind: str, average: str) -> str:
    metric = METRICS[method.get("metric", "accuracy")]
    if kind not in deciding(method):
        return "-"
    spread = of_metric(method, metric.name, spread=True).get(kind, {}).get(average, {}).get("last")
    return measure(metric, deciding(method)[kind][average]["last"], spread)


def preset_table(outcome: Outcome) -> Group:
    """A preset's rows beside the published numbers."""
    parts: list[RenderableType] = [
        Text(outcome["about"], "bold"),
        Text(preset_tables.accuracy_title(outcome), "bold"),
        ruled(preset_tables.accuracy_grid(outcome)),
        Text(f"{preset_tables.WORDS} {outcome['note']}", "italic dim"),
    ]
    if outcome["targets"]:
        parts.append(Text(f"\n{preset_tables.REACHED}", "bold"))
        parts.append(ruled(preset_tables.target_grid(outcome)))
        parts.append(Text(preset_tables.target_notes(outcome), "italic dim"))
    return Group(*parts)


def ruled(grid: Grid) -> Table:
    """A table of texts, in which the published columns are dim."""
    table = Table(box=SIMPLE_HEAD)
    for i, title in enumerate(grid[0]):
        table.add_column(
            title, justify="right" if i else "left", style="dim" if title == PUBLISHED else "", no_wrap=True
        )
    for line in grid[1:]:
        table.add_row(*line)
    return table
