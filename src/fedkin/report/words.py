"""What a study found, in sentences; and what the words of the page mean."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np

from fedkin.metrics import METRICS, Metric
from fedkin.report.formats import difference, gained, measure, p_in_words, titled
from fedkin.report.study import Study
from fedkin.runs.run import Run
from fedkin.runs.statistics import deciding, judged_by, of_metric, pools
from fedkin.runs.verdict import ENOUGH, is_local, led, side

SHOWN = "last"  # the statistic that is shown at first; gains and verdicts are of the last round too
TOO_FEW = "so few clients of one seed cannot show it"
LATE = 6  # unfinished runs that are named
FEW = 3  # seeds below which a spread says little
MODELS = {  # how a sentence says whose accuracy a kind is
    "post": "after local training",
    "global": "with the common model",
    "recv": "with the model as received",
    "test": "on the common test set",
}
DEFINITIONS = {
    "post": "Each client's own model after local training, on that client's test samples. For methods with one common "
    "model it is that model after one more local pass: what a client gets that takes the model home.",
    "global": "The one common model on each client's test samples, as it is, without local training.",
    "recv": "The model a client has just received, before it trains.",
    "test": "The common model on a common test set that belongs to no client.",
    "macro": "The mean over clients: every client counts the same, however few samples it has. Clients known to be "
    "irrelevant are not in it, nor in any other average; they have a column of their own.",
    "micro": "Over all test samples: clients with many samples count for more. Of accuracy it is the share of all test "
    "samples that are right.",
    "last 10 scored": "The mean of the last ten scored rounds, or of all where there are fewer (not of the last ten "
    "rounds, where scoring is less frequent).",
    "last": "The last round.",
    "best": "The best of all scored rounds. It is chosen by looking at the test samples, and so is too hopeful.",
    "by validation": "The round that was best by the validation samples. Only with a validation split.",
    "alone": "Local: every client trains on its own samples only and exchanges nothing. All clients train in every "
    "round, each as a client of the compared method trains in a round in which it takes part: as many steps at the "
    "same rate. Methods with different budgets have a Local each, named by how it differs from plain 'local'.",
    "matched": "local_matched: training alone in which a client trains in as few rounds as in the compared method. "
    "Against 'alone' a method that trains few clients a round is compared with clients that trained more often.",
    "better off, worse off": "Shares of clients whose score in the last round is better or worse than what they reach "
    "alone, by the metric that decides, counted client by client and seed by seed. The rest fare exactly the same.",
    "gain and its interval": "The mean over clients and seeds of what a client has in the last round beyond alone, and "
    "its 95 % interval. Half its width is the root of the sum of two squares: of half a t interval over the seeds' "
    "means, and of half one over the clients' means. Splits of a seed are averaged first.",
    "verdict": "Better or worse only if zero is outside such an interval, at a level corrected after Holm over all "
    "verdicts of the table: some false one is among them in at most about 5 % of tables. 'In this seed': there is one "
    "seed only, and the test is over its clients; another seed may end otherwise.",
    "marked as best": "A method that is clearly better than every other one, by the same test over all pairs of "
    "methods, corrected after Holm, and over several seeds.",
    "± and bands": "± is the standard deviation over seeds; a band reaches from the worst seed to the best.",
    "over clients: std, worst tenth": "How evenly clients fare in the last round: the standard deviation of their "
    "scores, and the mean of the worst tenth of them.",
    "std over rounds": "How steady training is: the standard deviation of the score over all samples (micro) in the "
    "last 50 scored rounds. Smaller is steadier.",
    "client-rounds": "The papers' cost: how many clients replied, summed over rounds. A client counts once a round, "
    "also where it sends more than a model (SCAFFOLD sends two).",
    "models sent, bytes sent": "What was really sent, by clients (up) and to clients (down), in the whole run.",
}


def score(summary: dict[str, Any], kind: str = "post", average: str = "macro", statistic: str = SHOWN) -> str:
    """The metric that decides as the tables have it: the mean over seeds and, if there are several, their standard
    deviation."""
    return score_of(summary, METRICS[summary.get("metric", "accuracy")], kind, average, statistic)


def score_of(summary: dict[str, Any], metric: Metric, kind: str, average: str, statistic: str = SHOWN) -> str:
    """The same of any metric."""
    found, spread = of_metric(summary, metric.name), of_metric(summary, metric.name, spread=True)
    if kind not in found:
        return "-"
    return measure(metric, found[kind][average][statistic], spread[kind][average][statistic] if spread else None)


def ranked(study: Study) -> list[str]:
    """Finished methods by the macro value of the metric that decides, the best first."""

    def key(name: str) -> float:
        value = deciding(study.summaries[name]).get(kind_of(study, name), {}).get("macro", {}).get(SHOWN)
        return inf if value is None else study.metric.gain(0.0, float(value))

    return sorted(study.summaries, key=key)


def kind_of(study: Study, name: str) -> str:
    """The kind of score that a method is ranked by: `post`, unless it is judged by its common model."""
    kind = judged_by(study.summaries[name]) if study.ranking_kind == "post" else study.ranking_kind
    return kind if kind in deciding(study.summaries[name]) else study.ranking_kind


def headline(study: Study) -> str:
    """The answer in one sentence. It calls a method better only if the verdict does."""
    order, total = ranked(study), len(study.runs)
    if not study.finished:
        return f"Not finished: {sum(len(e.done) for e in study.entries.values())} of {total} runs are done."
    if not study.against:
        what = "Training alone" if is_local(order[0]) else order[0]
        reaches = f"{what} reaches {reached(study, order[0])} {MODELS[study.ranking_kind]}"
        most = "highest" if study.metric.higher_is_better else "lowest"
        return reaches + (f", the {most} of these methods." if len(order) > 1 else ".")
    wins = [name for name in order if name in study.winners]
    if wins and study.one_seed:
        return (
            f"In this one seed clients do better than alone with {some(wins, study)}; another seed may end otherwise."
        )
    if len(wins) == 1 and order[0] == wins[0]:
        return f"{wins[0]} leads, and its clients do better than alone."
    if wins:
        return f"Clients do better than alone with {some(wins, study)}."
    if all(side(found["verdict"]) == "worse" for found in study.against.values()):
        where = "in this one seed" if study.one_seed else "here"
        return f"Training alone is best {where}: clients do worse with " + listed(study.against, "and") + "."
    few = study.begun[0].n < ENOUGH and study.one_seed
    return "No method is clearly better than training alone" + (f": {TOO_FEW}." if few else ".")


def some(names: list[str], study: Study) -> str:
    """The names of up to three methods, or how many they are."""
    return listed(names, "and") if len(names) <= 3 else f"{len(names)} of {len(study.against)} methods"


def reached(study: Study, name: str) -> str:
    """What a method reaches, with its unit: '93.12 %', 'R2 0.417'."""
    found = score(study.summaries[name], kind_of(study, name))
    if study.metric.percent:
        return f"{found} %" + ("" if study.metric.name == "accuracy" else f" {study.metric.label}")
    return f"{study.metric.label} {found}"


def listed(names: Iterable[str], word: str) -> str:
    """The names with commas between them, and a word before the last."""
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def lede(study: Study) -> list[str]:
    """The numbers behind the headline, and what a reader must know to judge them."""
    order = ranked(study)
    said = []
    if order:
        whom = "relevant clients" if study.apart else "clients"
        which = "" if study.ranking_kind == "test" else f"mean over {whom}, "
        first = "highest" if study.metric.higher_is_better else "lowest"
        which += "last round" + (f", the {first} first" if len(order) > 1 else "")
        unit = "\u00a0%" if study.metric.percent else ""
        scores = [f"{called(study, name)} {score(study.summaries[name], kind_of(study, name))}{unit}" for name in order]
        said.append(f"{titled(study.metric)} {MODELS[study.ranking_kind]} ({which}): {', '.join(scores)}.")
    tested = [name for name in order if name in study.against and name in study.gains]
    about = [name for name in tested if name in study.winners] or tested
    said += [f"{about[0]}: {against_alone(study, about[0])}"] if about else []
    older = "The methods are tested against training alone, not against each other."
    said += [sentence] if (sentence := led(study.leader) or (older if len(study.against) > 1 else "")) else []
    return said


def called(study: Study, name: str) -> str:
    """A method's name in a sentence, with its number of finished seeds if some are missing."""
    entry = study.entries[name]
    some = f" ({len(entry.done)} of {len(entry.runs)} runs)" if len(entry.done) < len(entry.runs) else ""
    budget = name.partition("@")[2]
    alone = f"training alone ({budget.replace('@', ', ')})" if budget else "training alone"
    return (alone if is_local(name) else name) + some


def against_alone(study: Study, name: str) -> str:
    """How many clients are better and worse off than alone, their mean gain, and the verdict if there is one."""
    gains = study.gains[name][~np.isnan(study.gains[name])]
    better, worse = float((gains > 0).mean()), float((gains < 0).mean())
    text = f"{100 * better:.0f} % of the clients are better off than alone, {100 * worse:.0f} % worse off"
    text += ", the others the same" if (gains == 0).any() else ""
    if name not in study.against:
        why = "there is no summary of these runs" if study.finished else "the comparison is not finished"
        return f"{text}; the mean gain is {gained(study.metric, gains.mean())}. No verdict: {why}."
    found = study.against[name]
    text += f"; the mean gain is {gained(study.metric, found['gain'])}{interval(study.metric, found)}. "
    text += f"Verdict: {than(found, 'alone')} (paired test, {p_in_words(found)})."
    if "matched" in found:
        less = found["matched"]
        text += f" Against a Local that trains as rarely: {gained(study.metric, less['gain'])}"
        text += f"{interval(study.metric, less)}, {than(less, 'that')} ({p_in_words(less)})."
    return text


def interval(metric: Metric, found: dict[str, Any]) -> str:
    """The 95 % interval of a gain in words; nothing where an older version wrote the verdict."""
    ends = [found.get("low"), found.get("high")]
    return (
        "" if None in ends else f" (95 % interval {' to '.join(difference(metric, float(end or 0)) for end in ends)})"
    )


def than(found: dict[str, Any], other: str) -> str:
    """A verdict with what a method is better or worse than: 'better than alone in this seed'."""
    word = side(found["verdict"])
    return found["verdict"].replace(word, f"{word} than {other}", 1) if word in ("better", "worse") else word


def cautions(study: Study) -> list[str]:
    """What a reader must not overlook."""
    said = []
    late = [(name, run) for name, entry in study.entries.items() for run in entry.runs if not run.finished]
    if late:
        at = [f"{name} {repetition(t)} ({how_far(t)})" for name, t in late[:LATE]]
        at += [f"{len(late) - LATE} more"] if len(late) > LATE else []
        said.append(f"Unfinished: {', '.join(at)}. Numbers are of finished runs only, and there is no verdict yet.")
    seeds = max(len({run.seed for run in entry.done}) for entry in study.entries.values())
    if 0 < seeds < FEW:
        few = "One seed" if seeds == 1 else f"{seeds} seeds"
        said.append(f"{few} only: how much the numbers vary from one run to the next is not well known.")
    for name, summary in study.summaries.items():
        if summary["dropped"]:
            said.append(f"{name}: {summary['dropped']} uploads were not finite and were not used.")
    return said + study.cautions


def repetition(run: Run) -> str:
    """Which one of a method's runs it is; one that has not begun is known by its folder only."""
    return f"seed {run.seed}" if run.folder is None else run.folder.name.replace("-", " ")


def judged_otherwise(methods: dict[str, Any]) -> str:
    """A footnote on the methods that are judged by their common model."""
    by_common = {name: found for name, found in methods.items() if judged_by(found) == "global"}
    alone = [name for name, found in by_common.items() if not pools(found)]
    together = [name for name, found in methods.items() if pools(found)]
    reasons = "a client's own model never sees the others there, so post is training alone"
    said = [f"{judged_by_common(alone)}: {reasons}."] if alone else []
    said += [f"{judged_by_common(together)}, {POOL}, and no client is advised to take part."] if together else []
    return " ".join(said)


POOL = "which is trained on everybody's samples together: what privacy forbids"
OFFER = "What one model trained on everybody's samples together would reach, which privacy forbids: add pooled."


def judged_by_common(names: list[str]) -> str:
    verb, whose = ("is", "its") if len(names) == 1 else ("are", "their")
    return f"{', '.join(names)} {verb} judged by {whose} common model (global)"


def offered(methods: dict[str, Any]) -> str:
    """The offer to compare with pooled samples too; nothing where they are there, or Local is not."""
    beside_local = len(methods) > 1 and any(map(is_local, methods))
    return OFFER if beside_local and not any(map(pools, methods.values())) else ""


def how_far(run: Run) -> str:
    """How many of its rounds a run has played."""
    return f"round {run.reached} of {run.asked}" if run.reached else "not begun"


def unfinished(run: Run) -> str:
    """A sentence on a run that is drawn though it is not finished; nothing if it is finished."""
    return f"That seed is unfinished ({how_far(run)})." if not run.finished else ""


def joined(sentences: Iterable[str]) -> str:
    """The sentences that are not empty, as one text."""
    return " ".join(text for text in sentences if text)


def by_size(study: Study, gains: np.ndarray) -> str:
    """The mean gain of the clients with the fewest samples, beside that of the clients with the most."""
    sizes = np.array(study.clients["train"], dtype=float)
    known = np.flatnonzero(~np.isnan(gains))
    quarter = len(known) // 4
    if quarter < 2:
        return ""
    order = known[np.argsort(sizes[known], kind="stable")]
    few, many = order[:quarter], order[-quarter:]
    return (
        f"The quarter of clients with the fewest samples (up to {sizes[few].max():,.0f}) has a "
        f"mean gain of {gained(study.metric, gains[few].mean())}, the quarter with the most (from "
        f"{sizes[many].min():,.0f}) of {difference(study.metric, gains[many].mean())}."
    )
