"""What the weights of who learns from whom mean, in sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkin.messages import NEIGHBOUR, Kin
from fedkin.report import formats
from fedkin.report.findings.kin import Kinship, own_and_others, own_column

ALONE = 0.99  # mean self-weight from which a method is training alone in all but name
SAME = 0.05  # total variation between clients' mixtures below which everybody gets the same
SPOKEN = 4  # different sentences at most; of more components their mean is spoken of


@dataclass(frozen=True)
class Facts:
    """Numbers of one component, means over clients and over the last stored rounds."""

    own: float  # weight of a client's own model
    neighbours: float  # others with a weight that counts
    apart: float  # total variation between a client's mixture and the mean mixture
    same: float | None  # of the weight on others: the share that goes to clients with the same majority class
    chance: float | None  # that share if the weight were spread evenly over the others


def facts(of: Kinship, component: str) -> Facts:
    owns, counts, aparts, shares = [], [], [], []
    for r in of.late:
        kin = of.stored[r]
        mine, others = own_and_others(kin, component)
        weights = kin.weights[component].double().numpy()
        owns.append(mine.mean())
        counts.append((others > NEIGHBOUR).sum(1).mean())
        aparts.append(np.abs(weights - weights.mean(0)).sum(1).mean() / 2)
        shares.append(weight_on_same_class(of, kin, others))
    same, chance, total = np.sum(shares, axis=0)
    known = of.majority is not None and total > 0
    return Facts(
        float(np.mean(owns)),
        float(np.mean(counts)),
        float(np.mean(aparts)),
        float(same / total) if known else None,
        float(chance / total) if known else None,
    )


def weight_on_same_class(of: Kinship, kin: Kin, others: np.ndarray) -> tuple[float, float, float]:
    """Three sums over clients: the weight on others with the same majority class, what that weight would be if every
    client spread its weight on others evenly, and all weight on others."""
    total = others.sum(1)  # (m,)
    if of.majority is None:
        return 0.0, 0.0, float(total.sum())
    equal = of.majority[kin.ids.numpy()][:, None] == of.majority[kin.sources.numpy()]  # (m, s)
    equal[np.arange(len(equal)), own_column(kin)] = False
    among = equal.sum(1) / max(1, others.shape[1] - 1)
    return float(others[equal].sum()), float((total * among).sum()), float(total.sum())


def meaning(found: Facts) -> str:
    """What the weights of one component mean, in a sentence or two."""
    own = formats.weight(found.own)
    if found.own >= ALONE:
        only = "only" if found.own > 1 - 1e-6 else "almost only"
        return f"clients keep {only} their own model (self-weight {own}): this is training alone."
    if found.apart < SAME:
        return f"everybody gets almost the same mean (self-weight {own}), so this is one common model."
    others = f"{found.neighbours:.1f}".removesuffix(".0")
    people = "other client" if others == "1" else "others"
    text = f"a client keeps {own} of its own model and takes the rest from {others} {people} on average."
    return f"{text} {same_class(found)}".strip()


def same_class(found: Facts) -> str:
    """How much weight goes to clients of the same majority class, beside an even spread. Nothing is tested here."""
    if found.same is None or found.chance is None:
        return ""
    if found.chance == 0:
        return "No two of these clients have the same majority class."
    ratio = found.same / found.chance
    word = "more than" if ratio >= 1.25 else "less than" if ratio <= 0.8 else "about"
    return (
        f"Of what it takes from others, {formats.weight(found.same)} comes from clients with the same majority class, "
        f"{word} the {formats.weight(found.chance)} of an even spread."
    )


def sentences(of: Kinship) -> list[str]:
    """What the weights of the last stored rounds mean. Components with the same meaning share a sentence."""
    meant: dict[str, list[str]] = {}
    for component in of.components:
        meant.setdefault(meaning(facts(of, component)), []).append(component)
    if len(of.components) == 1:
        return [capitalised(text) for text in meant]
    if len(meant) > SPOKEN:
        return [capitalised(meaning(overall([facts(of, name) for name in of.components])))]
    return [f"{capitalised(of.word)} {', '.join(names)}: {text}" for text, names in meant.items()]


def overall(every: list[Facts]) -> Facts:
    """The mean over components, for a run with too many components to speak of each."""

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    own, neighbours, apart = np.mean([[f.own, f.neighbours, f.apart] for f in every], axis=0)
    return Facts(
        float(own), float(neighbours), float(apart), mean([f.same for f in every]), mean([f.chance for f in every])
    )


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
