"""Is a method better than training alone, or than another one? Runs against runs, client by client, seed by seed."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from fedkin.methods.local import alone
from fedkin.metrics import METRICS
from fedkin.parts import Method, Train
from fedkin.runs.difference import LEVEL, Difference, difference, holm
from fedkin.runs.run import Run

LOCAL, MATCHED = "local", "local_matched"
BETTER, WORSE, UNCLEAR = "better", "worse", "no clear difference"
IN_THIS_SEED = " in this seed"  # what is added to a verdict on one seed
ENOUGH = 6  # clients from which on one seed gets a verdict: fewer can agree by chance
MORE_OFTEN = 1.25  # times as often from which on Local's clients are said to train more often
NOBODY = {"better": 0.0, "worse": 0.0}

Key = TypeVar("Key", bound=Hashable)  # of a comparison in a table


def is_local(name: str) -> bool:
    """Whether a method of a comparison is Local: 'local', or Local with another budget, as 'local@epochs=1'."""
    return name.partition("@")[0] == LOCAL


def compared_with(methods: Sequence[Method], tuned: Collection[str] = ()) -> dict[str, str]:
    """Return for each method the Local that its clients are compared with: the one with their own budget of steps at
    their rate or, if there is none, plain Local. Nothing is compared where there is no Local.

    A method that was tuned is compared with the Local that was tuned too, at the rate that was found for it.
    """
    locals = {method.name: method for method in methods if is_local(method.name)}
    found: dict[str, str] = {}
    for method in methods:
        if method.name in locals:
            continue
        budget = alone(method).train
        met = [name for name, local in locals.items() if met_by_tuned(method, local, tuned)]
        same = met or [name for name, local in locals.items() if local.train == budget]
        if same or LOCAL in locals:
            found[method.name] = min(same, key=len) if same else LOCAL
    return found


def met_by_tuned(method: Method, local: Method, tuned: Collection[str]) -> bool:
    """Whether a method and Local were both tuned and differ in nothing but the rate that each was given by it."""
    both = method.name in tuned and local.name in tuned
    return both and without_rate(alone(method).train) == without_rate(local.train)


def without_rate(train: Train) -> Train:
    """Return what a client does, at one and the same rate."""
    return replace(train, eta=1.0)  # type: ignore[type-var]


def gain(theirs: Run, other: Run) -> np.ndarray:
    """Return how much better each client's last score is than in another run: what it reaches alone, if that is Local.

    Each is of the kind that its method is judged by. It is a difference of the metric that decides, and positive is
    better. A client whose loss is infinite gains or loses as much as the most extreme of the others.

    It is nan for clients known to be irrelevant: anything beats their own labels, so their gain would flatter every
    method.
    """  # (n,)
    metric = theirs.metric
    with np.errstate(invalid="ignore"):  # infinite minus infinite
        gained: np.ndarray = METRICS[metric].gain(theirs.last(metric)[theirs.judged], other.last(metric)[other.judged])
    most = np.abs(gained[np.isfinite(gained)]).max(initial=0.0) or 1.0  # where all are infinite, only the sign counts
    gained = np.clip(gained, -most, most)
    irrelevant = theirs.about_clients.get("irrelevant")
    return gained if irrelevant is None else np.where(irrelevant, np.nan, gained)


def verdict(gains: np.ndarray, seeds: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how many clients are better and worse off than alone, and whether the mean gain is clear.

    `gains` has a row for each run and a column for each client; `seeds` are those of the rows, by default all
    different. `runs.difference` says how the mean is tested.
    """
    return verdicts({"": gains}, {"": range(len(gains)) if seeds is None else seeds})[""]


def verdicts(gains: Mapping[Key, np.ndarray], seeds: Mapping[Key, Sequence[int]]) -> dict[Key, dict[str, Any]]:
    """Return the verdicts on all comparisons of a table, corrected together, so that some false one is among them in at
    most 5 % of tables.

    Each has the shares of clients 'better' and 'worse' off, the mean 'gain' with its 95 % interval from 'low' to
    'high', 'p', 'p_holm' (corrected), and how many 'seeds' and 'clients' it is over.
    """
    found = {key: difference(values, blocks=list(seeds[key])) for key, values in gains.items()}
    corrected = holm([one.p for one in found.values()])
    return {
        key: shares(gains[key]) | numbers(one) | {"p_holm": p, "verdict": called(one, p)}
        for (key, one), p in zip(found.items(), corrected, strict=True)
    }


def shares(gains: np.ndarray) -> dict[str, float]:
    """Return which share of clients, counted seed by seed, is better and worse off."""
    known = gains[~np.isnan(gains)]
    return {"better": float((known > 0).mean()), "worse": float((known < 0).mean())} if len(known) else NOBODY


def numbers(found: Difference) -> dict[str, Any]:
    """Return a difference as summary.json has it."""
    words = {"mean": "gain", "blocks": "seeds"}
    return {words.get(name, name): value for name, value in found.as_json().items()}


def called(found: Difference, p: float) -> str:
    """Return the verdict in words. Of one seed it says only that: what another seed would give, nobody knows."""
    enough = found.blocks > 1 or found.clients >= ENOUGH
    if p >= LEVEL or not enough:
        return UNCLEAR
    return (BETTER if found.mean > 0 else WORSE) + (IN_THIS_SEED if found.blocks == 1 else "")


def side(verdict: str) -> str:
    """Return a verdict without whether it is of one seed only: 'better', 'worse' or 'no clear difference'."""
    return verdict.removesuffix(IN_THIS_SEED)


def led(leader: Mapping[str, Any]) -> str:
    """Return a sentence on the method with the best mean: whether it is clearly the best. Empty where it is not known,
    as in a comparison of an older version."""
    if not leader:
        return ""
    first, over, level = leader["method"], ", ".join(leader["over"]), ", ".join(leader["level"])
    if leader["best"]:
        return f"{first} is clearly better than every other method (all pairs, corrected after Holm)."
    if leader["seeds"] == 1:
        return f"{first} has the best mean; one seed cannot separate methods from the luck of a run."
    return f"{first} has the best mean, and is not separated from {level}" + (
        f"; it is clearly better than {over} (all pairs, corrected after Holm)." if over else "."
    )


def unequal_participation(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence on the methods whose clients train more rarely than those of Local, where no matched Local
    tells what that does. `found` are the verdicts against Local."""
    rare: dict[str, list[str]] = {}
    for name, one in found.items():
        often = one["local_trained"] / one["trained"] if one.get("trained") else 0.0
        if often >= MORE_OFTEN and "matched" not in one and name != MATCHED:
            rare.setdefault(f"{often:.1f}", []).append(name)
    return [
        f"Local's clients trained {often} times as often as those of {', '.join(names)}: part of the difference from "
        f"training alone may be that. Add {MATCHED} to the methods, after {names[0]}: a Local that trains as rarely."
        for often, names in rare.items()
    ]


def mixed(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each method whose mean gain is clear, and most of whose clients go the other way."""
    other = {BETTER: WORSE, WORSE: BETTER}
    return [
        f"{name} is {side(one['verdict'])} in the mean, though {100 * one[way]:.0f} % of its clients are {way} off."
        for name, one in found.items()
        if (way := other.get(side(one["verdict"]))) is not None and one[way] > 0.5
    ]


def uneven(methods: Sequence[Method], tuned: Collection[str] = ()) -> list[str]:
    """Return a sentence for each method whose clients train otherwise than those of the Local it is compared with: its
    gain is not only its own. Rates that were found by tuning may differ."""
    by_name = {method.name: method for method in methods}
    efforts = {method.name: effort(method) for method in methods}
    return [
        f"{name} trains {efforts[name]} a round, Local {efforts[local]}; set train.* alike before comparing the two."
        for name, local in compared_with(methods, tuned).items()
        if efforts[name] != efforts[local] and not met_by_tuned(by_name[name], by_name[local], tuned)
    ]


def effort(method: Method) -> str:
    """Return what a client does in a round, as Local would have to do it."""
    train = alone(method).train
    how = f"{train.epochs} epoch(s)" if train.epochs else f"{train.steps} steps"
    extra = [f"{name} {value:g}" for name in ("momentum", "weight_decay") if (value := train.values()[name])]
    return ", ".join([f"{how} of batch {train.batch} at rate {train.eta:g}", *extra])
