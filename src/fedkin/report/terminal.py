"""The tables of a run and a comparison, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedkin.evaluate import KINDS
from fedkin.metrics import METRICS, Metric
from fedkin.report import targets_table as targets
from fedkin.report.formats import gain_with_ends, in_percent, in_points, measure, repeated, titled
from fedkin.report.words import judged_otherwise, offered
from fedkin.runs.memory import words
from fedkin.runs.spent import sentence as spent
from fedkin.runs.statistics import APART, AVERAGES, STATISTICS, averaged_rounds, deciding, of_metric
from fedkin.runs.verdict import LOCAL, is_local, led, mixed, unequal_participation

LOOK: dict[str, Any] = {"box": SIMPLE_HEAD, "title_justify": "left", "caption_justify": "left", "title_style": "bold"}

WORDS = {
    "post": "post: each client's model after local training (for one-model methods the common model, fine-tuned)",
    "global": "global: the common model, on each client's test samples",
    "test": "test: the common model, on the common test set",
}

VERDICTS = {"better": "better", "worse": "worse", "no clear difference": "unclear"}
VERDICTS |= {"better in this seed": "better, one seed", "worse in this seed": "worse, one seed"}
TESTED = (
    "The verdict is on the mean gain, over seeds and clients, corrected after Holm over the table, as an interval is "
    "not (unclear: neither; one seed: over its clients only, another seed may end otherwise)."
)


def accuracy_table(summary: dict[str, Any]) -> Table:
    """One method: the metric that decides, by kind, average and statistic."""
    seeds, every, metric = summary["seeds"], summary["evaluate_every"], METRICS[summary.get("metric", "accuracy")]
    what = f"{metric.label}{in_percent(metric)}"
    title = f"{summary['method']}: {what}, {summary['rounds']} rounds scored every {every}, seeds {seeds}"
    means = f"last {averaged_rounds(summary)} scored"
    table = Table("kind", "average", "last", means, "best", "by validation", title=title, **LOOK)
    found, spreads = of_metric(summary, metric.name), of_metric(summary, metric.name, spread=True)
    for kind in (kind for kind in KINDS if kind in found):
        for average, values in found[kind].items():
            spread = spreads.get(kind, {}).get(average, {})
            cells = [measure(metric, values[name], spread.get(name)) for name in STATISTICS]
            table.add_row(kind, average_title(average, found[kind]), *cells)
    cost, time = summary["cost"], summary["time"]
    papers = f"{cost['client_rounds']:,.0f} client-rounds (the papers' cost); " if "client_rounds" in cost else ""
    table.caption = (
        f"{papers}{cost['uploads']:,.0f} model uploads, {cost['downloads']:,.0f} downloads; {time['total_s']:.1f} s a "
        "seed"
    )
    table.caption += f"; {said}" if (said := words(summary.get("memory", {}))) else ""
    table.caption += "".join(f"\n{line}" for line in [*of_whom(summary), *spent(summary), *other_numbers(summary)])
    return table


def of_whom(summary: dict[str, Any]) -> list[str]:
    """Of whom the scores are, where not all clients were scored, as a line."""
    return [f"{said.capitalize()}."] if (said := summary.get("scored")) else []


def average_title(average: str, averages: Collection[str]) -> str:
    """What an average is called, and over whom it is where irrelevant clients are kept apart."""
    name, _, whom = average.partition("_")
    if f"macro{APART}" not in averages:
        return name
    return f"{name}, {whom or 'relevant'} clients"


def run_table(summary: dict[str, Any]) -> RenderableType:
    """One method as `accuracy_table` has it or, where no client has test samples, a sentence and what the run cost."""
    table = accuracy_table(summary)
    known = [value for kind in deciding(summary).values() for each in kind.values() for value in each.values()]
    if any(value is not None for value in known):
        return table
    title = f"{summary['method']}: no client has test samples, so nothing is scored; raise --test."
    return Group(Text(title, "bold"), Text(str(table.caption), "italic dim"))


def other_numbers(summary: dict[str, Any]) -> list[str]:
    """What else was measured in the last round, a line each."""
    words = {"filter": "filter of irrelevant clients", "train": "training"}
    words |= {"heterogeneity": "heterogeneity", "gradient": "gradient"}
    found = []
    for group, title in words.items():
        values = {name: value["last"] for name, value in summary.get("observed", {}).get(group, {}).items()}
        shown = [f"{name.replace('_', ' ')} {value:.3f}" for name, value in values.items() if value is not None]
        found += [f"{title}, last round: {', '.join(shown)}"] if shown else []
    return found


def comparison_table(summary: dict[str, Any]) -> Table:
    """Methods side by side in the last round, and how they fare against training alone."""
    methods, against = summary["methods"], summary["against_local"]
    first, metric = next(iter(methods.values())), METRICS[summary.get("metric", "accuracy")]
    title = f"{titled(metric)}{in_percent(metric)} after {first['rounds']} rounds, "
    title += f"mean ± standard deviation over {runs}" if (runs := repeated(first)) != "1 seed" else "one seed"
    has = [kind for kind in ("post", "global", "test") if any(kind in deciding(m) for m in methods.values())]
    scored = [(kind, average) for kind in has for average in (("micro",) if kind == "test" else AVERAGES)]
    apart = any(f"macro{APART}" in deciding(method).get("post", {}) for method in methods.values())
    scored += [("post", f"macro{APART}")] if apart else []
    columns = [
        kind if kind == "test" else f"{kind} {average.replace(APART, ', irrelevant')}" for kind, average in scored
    ]
    compared = against_columns(against, [name for name in methods if is_local(name)], metric)
    table = Table("method", *columns, *compared, "uploads", "seconds", title=title, **LOOK)
    for column in table.columns:
        column.justify, column.no_wrap = ("right" if column is not table.columns[0] else "left"), True
    for name, method in methods.items():
        cells = [cell(method, kind, average) for kind, average in scored]
        cells += [of_method.get(name, "-") for of_method in compared.values()]
        table.add_row(name, *cells, f"{method['cost']['uploads']:,.0f}", f"{method['time']['total_s']:.1f}")
    table.caption = "\n".join([caption(summary, has, apart), *notes(summary)])
    return table


def against_columns(against: dict[str, Any], locals: list[str], metric: Metric) -> dict[str, dict[str, str]]:
    """The columns on training alone, each with its cells by method."""
    if not against:
        return {}
    found = {word: {name: f"{100 * one[word]:.0f} %" for name, one in against.items()} for word in ("better", "worse")}
    found["gain"] = {name: gain_with_ends(metric, one) for name, one in against.items()}
    alone = dict.fromkeys(locals, "alone")
    found["than alone"] = alone | {name: VERDICTS[one["verdict"]] for name, one in against.items()}
    matched = {name: one["matched"] for name, one in against.items() if "matched" in one}
    if matched:
        found["gain on matched"] = {name: gain_with_ends(metric, one) for name, one in matched.items()}
        found["than matched"] = {name: VERDICTS[one["verdict"]] for name, one in matched.items()}
    if len(locals) > 1:
        found["alone is"] = {name: one.get("against", LOCAL) for name, one in against.items()}
    return found


def caption(summary: dict[str, Any], has: list[str], apart: bool) -> str:
    """What each number of the table is: its kind, its average, over whom, and how a verdict is found."""
    metric = METRICS[summary.get("metric", "accuracy")]
    whom = "relevant clients" if apart else "clients"
    said = [*(f"{WORDS[kind]}." for kind in has), f"macro: mean over {whom}; micro: {pooled(metric)} of these."]
    said += ["Irrelevant: the mean over clients known to be irrelevant, who are in no other column."] if apart else []
    if summary["against_local"]:
        said += [
            f"Better and worse: share of clients whose last {metric.label} is better or worse than their own when "
            f"training alone; gain: its mean over {whom}{in_points(metric)} with a 95 % interval. {TESTED}"
        ]
        several = sum(map(is_local, summary["methods"])) > 1
        rate = " (its rate was tuned too)" if tuned_local(summary) else ", at the same rate"
        said += [f"Alone is the Local with as many steps a round{rate}, as the method."] if several else []
        said += ["Alone: Local, in which every client trains in every round."]
        matched = any("matched" in one for one in summary["against_local"].values())
        said += ["Matched: local_matched, in which clients train as rarely as the method's."] if matched else []
    more = [judged_otherwise(summary["methods"]), offered(summary["methods"])]
    return " ".join([*said, *(text for text in more if text)])


def notes(summary: dict[str, Any]) -> list[str]:
    """What the table does not show, a line each: who leads, what misleads, and what parts measured."""
    against, methods = summary["against_local"], summary["methods"]
    said = [
        *of_whom(next(iter(methods.values()))),
        led(summary.get("leader", {})),
        *unequal_participation(against),
        *mixed(against),
    ]
    said += [f"{name}: {line}" for name, method in methods.items() for line in [*spent(method), *other_numbers(method)]]
    return [text for text in said if text]


def tuned_local(summary: dict[str, Any]) -> bool:
    """Whether Local was tuned as the methods were, so that its rate is its own."""
    return LOCAL in summary.get("tuned", {}).get("methods", {})


def pooled(metric: Metric) -> str:
    """What a micro value is: over all samples where that can be pooled, else weighted by them."""
    return "over samples" if metric.name in ("accuracy", "log_loss") else "weighted by samples"


def cell(method: dict[str, Any], kind: str, average: str) -> str:
    metric = METRICS[method.get("metric", "accuracy")]
    if kind not in deciding(method):
        return "-"
    spread = of_metric(method, metric.name, spread=True).get(kind, {}).get(average, {}).get("last")
    return measure(metric, deciding(method)[kind][average]["last"], spread)


def targets_table(found: list[dict[str, Any]], methods: list[str]) -> Group:
    """When each method reached the targets that were asked for."""
    head, *rows = targets.grid(found, methods)
    table = Table(*head, box=SIMPLE_HEAD)
    for column in table.columns:
        column.justify, column.no_wrap = ("right" if column is not table.columns[0] else "left"), True
    for row in rows:
        table.add_row(*row)
    return Group(Text(targets.title(found), "bold"), table, Text(targets.notes(found), "italic dim"))
