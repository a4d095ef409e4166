"""What follows from the runs of a comparison: each method against Local, and every method against every other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from fedkin.comparison.result import Runs, gains_over
from fedkin.methods.local import alone
from fedkin.parts import Method
from fedkin.runs.difference import mean_of_known
from fedkin.runs.run import Run
from fedkin.runs.verdict import BETTER, MATCHED, MORE_OFTEN, compared_with, shares, verdicts

NEAR = 0.1  # how far a matched Local may be from training as often as a method, as a share


def against_local(runs: Runs, methods: Sequence[Method], tuned: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the verdict on each method against the Local it is compared with and, under 'matched', against the Local
    that trains as rarely as the method, where there is one. All are corrected together.

    'trained' is the share of rounds in which a client of the method trained, 'local_trained' that of Local.
    """
    named = {method.name: method for method in methods}
    local = {name: other for name, other in compared_with(methods, tuned).items() if judged(runs, name, other)}
    matched = {name: MATCHED for name in local if is_matched(runs, named, name) and judged(runs, name, MATCHED)}
    asked = [*local.items(), *matched.items()]
    found = verdicts_on(runs, asked)
    return {
        name: found[name, other]
        | by_data_seed(gains_over(runs, name, other))
        | {"against": other, "trained": trained(runs, name), "local_trained": trained(runs, other)}
        | ({"matched": found[name, MATCHED] | {"against": MATCHED}} if name in matched else {})
        for name, other in local.items()
    }


def pairs(runs: Runs) -> list[dict[str, Any]]:
    """Return each method against each other one, the better one of a pair first; all pairs are corrected together."""
    asked = [pair for pair in combinations(runs, 2) if judged(runs, *pair)]
    return [in_order(*pair, one) for pair, one in verdicts_on(runs, asked).items()]


def verdicts_on(runs: Runs, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the verdicts on pairs of methods, corrected together.

    Each seed is a block, and each client a column. Of several seeds of the data each is a block: its clients are other
    ones, so a run is one number there, their mean gain, and what clients differ by is in what the blocks differ by.
    """
    gains = {pair: gains_over(runs, *pair) for pair in asked}
    if all(len(blocks) == 1 for blocks in gains.values()):
        of_one = {pair: next(iter(blocks.values())) for pair, blocks in gains.items()}
        return verdicts(of_one, {pair: seeds(runs, pair[0]) for pair in asked})
    means = {pair: np.concatenate([mean_of_known(each, 1) for each in some.values()]) for pair, some in gains.items()}
    blocks = {pair: [seed for seed, each in some.items() for _ in each] for pair, some in gains.items()}
    found = verdicts({pair: values[:, None] for pair, values in means.items()}, blocks)
    every = {pair: np.concatenate([each.ravel() for each in some.values()]) for pair, some in gains.items()}
    return {pair: one | shares(every[pair]) | {"clients": clients(gains[pair])} for pair, one in found.items()}


def clients(gains: Mapping[int, np.ndarray]) -> int:
    """Return how many clients have a gain, those of each seed of the data for themselves."""
    return sum(int((~np.isnan(each)).any(0).sum()) for each in gains.values())


def by_data_seed(gains: Mapping[int, np.ndarray]) -> dict[str, dict[int, float | None]]:
    """Return the mean gain of each seed of the data, where there are several."""
    if len(gains) == 1:
        return {}
    means = {seed: mean_of_known(each.reshape(1, -1), 1)[0] for seed, each in gains.items()}
    return {"by_data_seed": {seed: None if np.isnan(mean) else float(mean) for seed, mean in means.items()}}


def in_order(first: str, second: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return a pair with the method in front that is better in the mean, and its gain over the other one."""
    if found["gain"] >= 0:
        return {"method": first, "over": second} | found
    turned = {"gain": -found["gain"], "better": found["worse"], "worse": found["better"]}
    turned |= {"low": minus(found["high"]), "high": minus(found["low"])}
    return {"method": second, "over": first} | found | turned | {"verdict": found["verdict"].replace("worse", BETTER)}


def minus(value: float | None) -> float | None:
    return None if value is None else -value


def judged(runs: Runs, *names: str) -> bool:
    """Whether the clients of all these methods were scored by the kind that each is judged by."""
    return all(run.judged in run.last() for name in names for run in runs[name].values())


def seeds(runs: Runs, name: str) -> list[int]:
    """Return the seed of each run of a method."""
    return [key.seed for key in runs[name]]


def trained(runs: Runs, name: str) -> float:
    """Return in which share of the rounds a client of a method trained, mean over clients and runs."""
    return float(np.mean([share_trained(run) for run in runs[name].values()]))


def share_trained(run: Run) -> float:
    everyone = run.experiment["method"].get("trains") == "everyone"
    return 1.0 if everyone else float(run.participation["selected"].mean()) / max(1, len(run.lines))


def is_matched(runs: Runs, methods: Mapping[str, Method], name: str) -> bool:
    """Whether a matched Local is there that trains as a method's clients do, and as often, and Local more often."""
    if MATCHED not in methods or name == MATCHED:
        return False
    same = alone(methods[name]).train == alone(methods[MATCHED]).train
    share = trained(runs, name)
    return same and share * MORE_OFTEN < 1 and abs(trained(runs, MATCHED) / share - 1) <= NEAR


def leader(pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the method with the best mean ('method'), the methods it is clearly better than ('over'), those it is not
    separated from ('level'), whether it is the 'best' of all, and over how many 'seeds'. Empty where nothing was
    compared. Only what holds beyond one seed is clear.
    """
    names = list(dict.fromkeys(name for pair in pairs for name in (pair["method"], pair["over"])))
    wins = {name: {pair["over"]: pair["verdict"] for pair in pairs if pair["method"] == name} for name in names}
    first = max(names, key=lambda name: len(wins[name]), default=None)
    if first is None:
        return {}
    over = [name for name in names if wins[first].get(name) == BETTER]
    level = [name for name in names if name not in (first, *over)]
    return {"method": first, "over": over, "level": level, "best": not level, "seeds": pairs[0]["seeds"]}
