"""Who learns from whom, as the report tells it: the clients in an order that puts alike ones together, the stored
rounds that fit into a page, and what the weights mean in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from fedkin.messages import NEIGHBOUR, Kin
from fedkin.results.study import Entry, Trial

STEPS = 30  # rounds on a slider; more are hard to hit
PANELS = 4  # components side by side
BUDGET = 8_000_000  # bytes that the weights of all methods may take of a page
WHOLE = 100  # clients up to which all are drawn at first, if a quarter is selected, and not only those selected
NOTHING = 1e-7  # weights below are written as zero
DECADES = 4  # of the colour scale, at most
ALONE = 0.99  # mean self-weight from which a method is training alone in all but name
SAME = 0.05  # total variation between clients' mixtures below which everybody gets the same


@dataclass(frozen=True)
class Kinship:
    """The first seed of a method that has pictures of who learned from whom."""

    trial: Trial
    stored: dict[int, Kin]

    @property
    def clients(self) -> dict[str, Any]:
        return self.trial.clients

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Training samples of each class, where they were written down."""  # (n, classes)
        found = self.clients.get("labels")
        return np.array(found, dtype=float) if found and len(found[0]) else None

    @cached_property
    def majority(self) -> np.ndarray | None:
        """Each client's most frequent class; -1 without samples."""  # (n,)
        if self.labels is None:
            return None
        return np.where(self.labels.sum(1) > 0, self.labels.argmax(1), -1)

    @cached_property
    def order(self) -> list[int]:
        return list(range(len(self.clients["names"]))) if self.labels is None else alike(self.labels)

    @cached_property
    def components(self) -> list[str]:
        """By name, numbers as numbers: files do not keep the order of the model."""
        return sorted(self.stored[self.rounds[-1]].weights, key=natural)

    @property
    def rounds(self) -> list[int]:
        return sorted(self.stored)

    @property
    def word(self) -> str:
        """What a component is called."""
        found = self.trial.run.experiment["method"].get("collaborate", {}).get("granularity")
        return found if found in ("layer", "tensor") else "component"

    def title(self, component: str) -> str:
        return "whole model" if component == "model" else f"{self.word} {component}"

    @cached_property
    def late(self) -> list[int]:
        """The last quarter of the stored rounds, of which the sentences speak: one round of few clients says little."""
        return self.rounds[-max(1, len(self.rounds) // 4) :]


def kinship(entry: Entry) -> Kinship | None:
    """None of methods that do not give every client a mixture of its own."""
    for trial in entry.trials:
        if (trial.folder / "experiment.json").exists() and (stored := trial.run.kin()):
            return Kinship(trial, stored)
    return None


def natural(name: str) -> list[tuple[int, str]]:
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def alike(labels: np.ndarray) -> list[int]:
    """All clients, those with like shares of classes side by side: the leaves of a tree by average linkage on
    Hellinger's distance, turned so that neighbours are as close as they can be. Clients without samples come last."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    have = np.flatnonzero(labels.sum(1) > 0)
    without = np.flatnonzero(labels.sum(1) == 0)
    if len(have) > 2:
        roots = np.sqrt(labels[have] / labels[have].sum(1, keepdims=True))
        leaves = leaves_list(linkage(pdist(roots) / np.sqrt(2), "average", optimal_ordering=True))
        first = int(leaves[0] > leaves[-1])  # either direction is as good: the one that begins with the lower number
        have = have[leaves[::-1] if first else leaves]
    return [*have.tolist(), *without.tolist()]


# what the page stores


@dataclass(frozen=True)
class Packed:
    """A method's weights as the page has them, and what had to be left out."""

    text: str  # JSON; empty if not even one round fits
    rounds: list[int]
    components: list[str]
    low: float  # ends of the colour scale
    high: float
    note: str


def spaced(items: Sequence[Any], count: int) -> list[Any]:
    """So many of them, evenly, the last among them; of several the first too."""
    if count >= len(items):
        return list(items)
    return [items[i] for i in np.linspace(0, len(items) - 1, count).round().astype(int)] if count > 1 else [items[-1]]


def short(value: float) -> float:
    """Three significant digits are more than an eye can tell; a fourth tells 99.9 % from all."""
    return float(f"{value:.{4 if value >= 0.1 else 3}g}") if value >= NOTHING else 0


def step(kin: Kin, round: int, components: Iterable[str]) -> str:
    """One stored round as JSON; rows are clients, columns those they learn from."""
    weights = [[[short(v) for v in row] for row in kin.weights[name].tolist()] for name in components]
    about = {"round": round, "ids": kin.ids.tolist(), "sources": kin.sources.tolist(), "weights": weights}
    return json.dumps(about, allow_nan=False, separators=(",", ":"))


def fitted(of: Kinship, components: list[str], budget: int) -> dict[int, str]:
    """As many rounds as fit, at most STEPS, evenly spaced, the last always among them; none if that one is too big."""
    made = {of.rounds[-1]: step(of.stored[of.rounds[-1]], of.rounds[-1], components)}
    guess = int(1.5 * budget / len(made[of.rounds[-1]]))  # spares the writing of rounds that will not fit
    count = min(STEPS, len(of.rounds), guess)
    while count > 0:
        chosen = spaced(of.rounds, count)
        for r in chosen:
            made[r] = made[r] if r in made else step(of.stored[r], r, components)
        total = sum(len(made[r]) for r in chosen)
        if total <= budget:
            return {r: made[r] for r in chosen}
        count = min(count - 1, int(count * budget / total))
    return {}


def packed(of: Kinship, budget: int = BUDGET) -> Packed:
    """Fewer rounds first, then fewer components, then nothing."""
    components = of.components
    steps = fitted(of, components, budget)
    if len(steps) < min(5, len(of.rounds)) and len(components) > PANELS:
        components = spaced(components, PANELS)
        steps = fitted(of, components, budget)
    said = []
    if not steps:
        said.append("The weights are left out of this page, which would become too big; they lie in the run's folder.")
    elif len(steps) < len(of.rounds):
        said.append(f"{len(steps)} of the {len(of.rounds)} stored rounds are shown, to keep the page small.")
    if steps and len(components) < len(of.components):
        said.append(f"{len(components)} of {len(of.components)} {of.word}s are shown, for the same reason.")
    low, high = scale(of, list(steps), components)
    text = written(of, components, steps, low, high) if steps else ""
    return Packed(text, list(steps), components, low, high, " ".join(said))


def written(of: Kinship, components: list[str], steps: dict[int, str], low: float, high: float) -> str:
    about: dict[str, Any] = {
        "order": of.order,
        "names": [escape(str(name)) for name in of.clients["names"]],  # plotly.js reads HTML in texts
        "majority": None if of.majority is None else of.majority.tolist(),
        "components": [escape(of.title(name)) for name in components],
        "low": low,
        "high": high,
    }
    return f'{json.dumps(about, allow_nan=False)[:-1]}, "steps": [{",".join(steps.values())}]}}'


def own(kin: Kin) -> np.ndarray:
    """The column of each client's own model."""  # (m,)
    return np.searchsorted(kin.sources.numpy(), kin.ids.numpy())


def given(kin: Kin, component: str) -> tuple[np.ndarray, np.ndarray]:
    """Each client's weight on its own model, and its weights on others (zero at its own)."""  # (m,), (m, s)
    weights = kin.weights[component].double().numpy()
    at = np.arange(len(weights)), own(kin)
    others = weights.copy()
    others[at] = 0
    return weights[at], others


def scale(of: Kinship, rounds: list[int], components: list[str]) -> tuple[float, float]:
    """Ends of the logarithmic colour scale: up to the largest weight on another client, one to four decades down, so
    that small weights show and all but equal ones do not look different."""
    positive = []
    for r in rounds:
        for name in components:
            others = given(of.stored[r], name)[1]
            positive.append(others[others >= NOTHING])
    every = np.concatenate([np.empty(0), *positive])
    if not len(every):
        return 1e-3, 1e-2
    high = float(every.max())
    low = float(np.quantile(every, 0.02))
    return float(f"{max(high / 10**DECADES, min(low, high / 10)):.2g}"), float(f"{high:.3g}")


# what it means


@dataclass(frozen=True)
class Facts:
    """Of one component, means over clients and over the last stored rounds."""

    own: float  # weight of a client's own model
    neighbours: float  # others with a weight that counts
    apart: float  # total variation between a client's mixture and the mean mixture
    same: float | None  # of the weight on others: the share that goes to clients with the same majority class
    chance: float | None  # that share if the weight were spread evenly over the others


def facts(of: Kinship, component: str) -> Facts:
    owns, counts, aparts, shares = [], [], [], []
    for r in of.late:
        kin = of.stored[r]
        mine, others = given(kin, component)
        weights = kin.weights[component].double().numpy()
        owns.append(mine.mean())
        counts.append((others > NEIGHBOUR).sum(1).mean())
        aparts.append(np.abs(weights - weights.mean(0)).sum(1).mean() / 2)
        shares.append(to_same(of, kin, others))
    same, chance, total = np.sum(shares, axis=0)
    known = of.majority is not None and total > 0
    return Facts(
        float(np.mean(owns)),
        float(np.mean(counts)),
        float(np.mean(aparts)),
        float(same / total) if known else None,
        float(chance / total) if known else None,
    )


def to_same(of: Kinship, kin: Kin, others: np.ndarray) -> tuple[float, float, float]:
    """Weight on other clients with the same majority class; what it would be if every client spread what it gives to
    others evenly over all of them; and all weight on others."""
    total = others.sum(1)  # (m,)
    if of.majority is None:
        return 0.0, 0.0, float(total.sum())
    equal = of.majority[kin.ids.numpy()][:, None] == of.majority[kin.sources.numpy()]  # (m, s)
    equal[np.arange(len(equal)), own(kin)] = False
    among = equal.sum(1) / max(1, others.shape[1] - 1)
    return float(others[equal].sum()), float((total * among).sum()), float(total.sum())


def meaning(found: Facts) -> str:
    """What one component's weights amount to, in a sentence or two."""
    if found.own >= ALONE:
        only = "only" if found.own > 1 - 1e-6 else "almost only"
        return f"clients keep {only} their own model (self-weight {percent(found.own)}): this is training alone."
    if found.apart < SAME:
        return f"everybody gets almost the same mean (self-weight {percent(found.own)}), so this is one common model."
    others = f"{found.neighbours:.1f}".removesuffix(".0")
    people = "other client" if others == "1" else "others"
    text = f"a client keeps {percent(found.own)} of its own model and takes the rest from {others} {people} on average."
    return f"{text} {kindred(found)}".strip()


def kindred(found: Facts) -> str:
    """Whether weight goes to clients of the same majority class, against an even spread; no test, hence no verdict."""
    if found.same is None or found.chance is None:
        return ""
    if found.chance == 0:
        return "No two of these clients have the same majority class."
    ratio = found.same / found.chance
    word = "more than" if ratio >= 1.25 else "less than" if ratio <= 0.8 else "about"
    return (
        f"Of what it takes from others, {percent(found.same)} comes from clients with the same majority class, "
        f"{word} the {percent(found.chance)} of an even spread."
    )


def percent(value: float) -> str:
    """With as many digits as keep 99.98 % apart from all."""
    return f"{100 * value:.{3 if value < 0.99 else 4}g}\u00a0%"


def sentences(of: Kinship) -> list[str]:
    """What the last stored rounds mean; components of which the same is true share a sentence."""
    meant: dict[str, list[str]] = {}
    for component in of.components:
        meant.setdefault(meaning(facts(of, component)), []).append(component)
    if len(of.components) == 1:
        return [capital(text) for text in meant]
    if len(meant) > PANELS:
        return [capital(meaning(overall([facts(of, name) for name in of.components])))]
    return [f"{capital(of.word)} {', '.join(names)}: {text}" for text, names in meant.items()]


def overall(every: list[Facts]) -> Facts:
    """The mean over components, where there are too many to speak of each."""

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    own, neighbours, apart = np.mean([[f.own, f.neighbours, f.apart] for f in every], axis=0)
    return Facts(
        float(own), float(neighbours), float(apart), mean([f.same for f in every]), mean([f.chance for f in every])
    )


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
