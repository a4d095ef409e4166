"""Makes the answer for every site out of the runs of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fedkin import metrics
from fedkin.answers import bootstrap
from fedkin.answers.bootstrap import Gain
from fedkin.answers.kin import kin_of, mean_weights
from fedkin.answers.site import JOIN, Answer, decided
from fedkin.answers.tested import sites_tested
from fedkin.data.seeds import keyed_generator
from fedkin.runs.run import Repetition, Run

Runs = Mapping[str, Mapping[Repetition, Run]]  # by method
Telling = Callable[[str, int, int], None]  # (what is done, how many are done, of how many)


def silent(what: str, done: int, of: int) -> None:
    """Tell nobody."""


def answers(runs: Runs, against: Mapping[str, str], telling: Telling = silent) -> dict[str, Any]:
    """Return the answer for every site as JSON.

    `against` has the compared methods, each with the Local that it is compared with.
    """
    first = next(iter(next(iter(runs.values())).values()))
    names, metric = first.about_clients["names"], getattr(first, "metric", "accuracy")
    percent = metrics.METRICS[metric].percent
    measured = by_rows(runs, against, metric, names, telling)
    exact = measured is not None
    if measured is None:
        metric, percent, measured = "accuracy", True, by_accuracy(runs, against, names)
    kin, kin_from = kin_weights(runs, list(against))
    found = []
    for client, (rows, gains) in enumerate(measured):
        answer = decided(names[client], rows, gains, against, percent)
        found.append(with_kin(answer, client, names, kin, kin_from).as_json(gains))
    return {"metric": metric, "level": bootstrap.LEVEL, "notes": notes(runs, exact), "sites": found}


def by_rows(
    runs: Runs, against: Mapping[str, str], metric: str, names: list[str], telling: Telling
) -> list[tuple[int, dict[str, Gain]]] | None:
    """Return the test rows of every site and its gains by bootstrap; None where predictions were not kept."""
    needed = {name: dict(runs[name]) for name in {*against, *against.values()}}
    in_order = {name: needed[name] for name in runs if name in needed}
    sites = sites_tested(in_order)
    if sites is None:
        return None
    count = bootstrap.replicates(sites)
    found = []
    for done, site in enumerate(sites, 1):
        generator = keyed_generator(0, "bootstrap", names[done - 1])
        found.append((len(site.distinct), bootstrap.gains(site, against, metric, generator, count)))
        telling("an answer for each site", done, len(sites))
    return found


def by_accuracy(runs: Runs, against: Mapping[str, str], names: list[str]) -> list[tuple[int, dict[str, Gain]]]:
    """Return the test rows of every site and its gains from accuracies alone.

    Without predictions it is not known which rows two models get right, so both are taken as independent, which makes
    the intervals wider; and for several methods at once they are widened by Bonferroni's rule.
    """
    from scipy import stats

    first = next(iter(next(iter(runs.values())).values()))
    rows = np.array(first.about_clients.get("test", [0] * len(names)), dtype=float)
    q = float(stats.norm.ppf(1 - (1 - bootstrap.LEVEL) / 2 / max(1, len(against))))
    found: list[dict[str, Gain]] = [{} for _ in names]
    for name, local in against.items():
        pairs = [(run.accuracies[run.judged], runs[local][key].accuracies["post"]) for key, run in runs[name].items()]
        theirs, alone = np.mean(pairs, axis=0)
        variance = (theirs * (1 - theirs) + alone * (1 - alone)) / np.maximum(rows, 1) + 2 / (rows + 2) ** 2
        half, gain = q * np.sqrt(variance), theirs - alone
        for client in np.flatnonzero(np.isfinite(gain)):
            g, h = float(gain[client]), float(half[client])
            found[client][name] = Gain(g, g - h, g + h)
    return [(int(count), gains) for count, gains in zip(rows, found, strict=True)]


def kin_weights(runs: Runs, methods: list[str]) -> tuple[dict[str, np.ndarray], str | None]:
    """Return who takes how much from whom by method, and the method to ask where the chosen one has no kin."""
    found = {name: mean_weights(runs[name].values()) for name in methods}
    known = {name: weights for name, weights in found.items() if weights is not None}
    return known, next(iter(known), None)


def with_kin(
    answer: Answer, client: int, names: list[str], kin: Mapping[str, np.ndarray], otherwise: str | None
) -> Answer:
    """Return the answer of a site that should join with its kin, if any method says who they are."""
    source = answer.method if answer.method in kin else otherwise
    if answer.verdict != JOIN or source is None:
        return answer
    return replace(answer, kin=tuple(names[other] for other in kin_of(kin[source], client)), kin_from=source)


def notes(runs: Runs, exact: bool) -> list[str]:
    """Return what a reader of the intervals must know."""
    keys = next(iter(runs.values()))
    said = []
    if len({key.split for key in keys}) == 1:
        said.append(
            "One split: the intervals cover the noise of the test rows, not that of the division into train and test; "
            "try --splits 10."
        )
    if not exact:
        said.append("These runs kept no predictions, so the intervals are wider than they need be.")
    return said
