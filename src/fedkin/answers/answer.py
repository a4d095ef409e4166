"""Makes the answer for every site out of the runs of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedkin import metrics
from fedkin.answers import bootstrap
from fedkin.answers.audit import Opinions, Telling
from fedkin.answers.bootstrap import Gain
from fedkin.answers.held_out import held_out_at, with_predictions
from fedkin.answers.kin import kin_of, mean_weights
from fedkin.answers.site import JOIN, Answer, decided
from fedkin.data.seeds import keyed_generator
from fedkin.runs.run import Repetition, Run

Runs = Mapping[str, Mapping[Repetition, Run]]  # by method


def silent(what: str, done: int, of: int) -> None:
    """Tell nobody."""


def answers(
    runs: Runs, against: Mapping[str, str], telling: Telling = silent, opinions: Opinions | None = None
) -> dict[str, Any]:
    """Return the answer for every site as JSON; empty where runs that regress kept no predictions.

    `against` has the compared methods, each with the Local that it is compared with; `opinions` say who was left out.
    """
    first = next(iter(next(iter(runs.values())).values()))
    names, metric = first.about_clients["names"], first.metric
    percent = metrics.METRICS[metric].percent
    measured = by_rows(runs, against, metric, names, telling)
    exact = measured is not None
    if measured is None and first.task == "regress":
        return {}
    if measured is None:
        metric, percent, measured = "accuracy", True, by_accuracy(runs, against, names)
    weights = {name: mean_weights(runs[name].values()) for name in against}
    kin = {name: found for name, found in weights.items() if found is not None}
    found = []
    for client, site in enumerate(measured):
        gains = site.gains
        answer = decided(names[client], site.rows, gains, site.reached, against, percent, site.rarer)
        answer = with_kin(answer, client, names, kin)
        found.append(with_opinions(answer, client, opinions).as_json(gains))
    said = notes(runs, exact) + truth_told(first, opinions)
    asked = {} if opinions is None else {"filters": list(opinions.left_out), "agreement": plain(opinions.agreement)}
    return {"metric": metric, "level": bootstrap.LEVEL, "notes": said, "sites": found} | asked


@dataclass(frozen=True)
class Measured:
    """One site: its test rows, the gain of each method there, and what every arm reaches, larger is better."""

    rows: int
    gains: dict[str, Gain]
    reached: dict[str, float]
    rarer: int | None = None  # of the rows those of rarer classes, where the metric depends on them


def by_rows(
    runs: Runs, against: Mapping[str, str], metric: str, names: list[str], telling: Telling
) -> list[Measured] | None:
    """Return the gains of every site by bootstrap; None where predictions were not kept."""
    needed = {name: dict(runs[name]) for name in {*against, *against.values()}}
    in_order = {name: needed[name] for name in runs if name in needed}
    stored = with_predictions(in_order)
    if stored is None:
        return None
    sites = [held_out_at(name, stored) for name in names]
    count, sign = bootstrap.replicates(sites), 1 if metrics.METRICS[metric].higher_is_better else -1
    found = []
    for done, site in enumerate(sites, 1):
        generator = keyed_generator(0, "bootstrap", names[done - 1])
        reached = {name: sign * value for name, value in site.reached(metric).items()} if len(site.distinct) else {}
        gains = bootstrap.gains(site, against, metric, generator, count)
        rarer = site.rarer if metrics.METRICS[metric].by_class else None
        found.append(Measured(len(site.distinct), gains, reached, rarer))
        telling("an answer for each site", done, len(sites))
    return found


def by_accuracy(runs: Runs, against: Mapping[str, str], names: list[str]) -> list[Measured]:
    """Return the gains of every site from accuracies alone.

    Without predictions it is not known which rows two models get right, so both are taken as independent, which makes
    the intervals wider; and for several methods at once they are widened by Bonferroni's rule.
    """
    from scipy import stats

    first = next(iter(next(iter(runs.values())).values()))
    rows = np.array(first.about_clients.get("test", [0] * len(names)), dtype=float)
    q = float(stats.norm.ppf(1 - (1 - bootstrap.LEVEL) / 2 / max(1, len(against))))
    found = [Measured(int(count), {}, {}) for count in rows]
    for name, local in against.items():
        pairs = [(run.accuracies[run.judged], runs[local][key].accuracies["post"]) for key, run in runs[name].items()]
        theirs, alone = np.mean(pairs, axis=0)
        variance = (theirs * (1 - theirs) + alone * (1 - alone)) / np.maximum(rows, 1) + 2 / (rows + 2) ** 2
        half, gain = q * np.sqrt(variance), theirs - alone
        for client in np.flatnonzero(np.isfinite(gain)):
            g, h = float(gain[client]), float(half[client])
            found[client].gains[name] = Gain(g, g - h, g + h)
            found[client].reached.update({name: float(theirs[client]), local: float(alone[client])})
    return found


def with_kin(answer: Answer, client: int, names: list[str], kin: Mapping[str, np.ndarray]) -> Answer:
    """Return the answer of a site that should join with its kin: as the chosen method says or, if it says nothing, as
    the first of the compared methods that does."""
    if answer.verdict != JOIN:
        return answer
    for name in [*(one for one in kin if one == answer.method), *kin]:
        if found := kin_of(kin[name], client):
            return replace(answer, kin=tuple(names[other] for other in found), kin_from=name)
    return answer


def with_opinions(answer: Answer, client: int, opinions: Opinions | None) -> Answer:
    """Return the answer with the filters that left the site out."""
    if opinions is None:
        return answer
    out, of = tuple(opinions.by(client)), len(opinions.left_out)
    return replace(answer, left_out_by=out, opinions=of, looks=opinions.looks(client))


def truth_told(run: Run, opinions: Opinions | None) -> list[str]:
    """Return how far the suspicion is right, where it is known who is irrelevant."""
    truth = run.about_clients.get("irrelevant")
    if truth is None or opinions is None:
        return []
    named = [opinions.looks(client) == "mislabelled" for client in range(len(truth))]
    right = sum(a and bool(b) for a, b in zip(named, truth, strict=True))
    return [
        f"The truth is known here: of {sum(map(bool, truth))} irrelevant sites {right} look mislabelled, and of the "
        f"{sum(not b for b in truth)} others {sum(named) - right}. Irrelevant sites are tested on right labels, so "
        "joining may pay for them as well."
    ]


def plain(values: np.ndarray) -> list[float | None]:
    """Return numbers as JSON has them: None for nan."""
    return [None if np.isnan(value) else round(float(value), 4) for value in values]


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
        said.append("These runs kept no predictions, so accuracy decides here, with wider intervals than they need be.")
    return said
