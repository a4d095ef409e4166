"""Filters of irrelevant clients against attacks: who is found, who is left out wrongly, and what the model is worth.

    python benchmarks/filters.py                     plays what is not yet played, a JSON line a run
    python benchmarks/filters.py --only 'mnist.*sign'  only runs whose name has this
    python benchmarks/filters.py --page              writes the tables of docs/papers/robust.md from these lines

A run's line is appended when it ends, so that a benchmark that is stopped goes on where it was. Runs are played in an
order in which the first ones already say something of every dataset and attack. FedAvg with each filter in front; the
federations are small, so that a run takes seconds. Seeds 0 and 100 to 104 were looked at while the filter and its
settings were chosen, so none of them is played here.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from filters_page import write_page
from filters_tried import ZScores

import fedkin as fk
from fedkin.data.federation import Federation
from fedkin.data.notation import ATTACKS, scenario_arguments
from fedkin.keep import Alignment, Everyone, MultiKrum, Oracle, Robust, UpdateDistance
from fedkin.parts import Keep
from fedkin.select import Uniform
from fedkin.train import SGD

LINES = Path(__file__).parent.parent / "docs" / "results" / "filters" / "lines.jsonl"

DATA = {  # the network, the clients and the learning rate
    "mnist": ("mlr", 50, 0.05),
    "fashion_mnist": ("dnn:30", 50, 0.05),
    "heart": ("mlr", 20, 0.05),
}
KINDS = {  # how a share of the clients is written as a scenario
    "flip": "flip:{}",
    "partial flip": "flip:{},0.5",
    "noise": "ood:{},noise",
    "permuted": "ood:{},permuted",
    "foreign": "ood:{},fashion_mnist",  # of Fashion-MNIST: mnist
    "scale -10": "scale:{},-10",
    "scale +10": "scale:{},10",
    "sign": "sign:{}",
    "alie": "alie:{}",
    "target": "target:{}",
}
FILTERS: dict[str, Keep] = {
    "everyone": Everyone(),
    "alignment, paper's rule": Alignment(),
    "alignment": Alignment(min_gap=3.0),
    "L1": UpdateDistance("l1", min_gap=None),
    "Multi-Krum": MultiKrum(f=0.4),  # as many as there can be here
    "z-scores": ZScores(),
    "robust": Robust(),
    "oracle": Oracle(),
}
USUAL = ("everyone", "alignment, paper's rule", "alignment", "L1", "robust", "oracle")
ROUNDS = {1.0: 10, 0.4: 20}  # so that every client is judged about as often


@dataclass(frozen=True)
class Game:
    """One run: a federation, who is irrelevant in it, how many take part, and a filter."""

    data: str
    alpha: float
    kind: str
    share: float
    part: float
    filter: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.data} {self.alpha} {self.kind} {self.share} {self.part} {self.filter} {self.seed}"


def games(seeds: list[int]) -> Iterator[Game]:
    """Every run once, in blocks, the most telling block first."""
    images, skew = ("fashion_mnist", "mnist"), (0.1, 0.5)
    clean = (*list(FILTERS)[:5], "robust")
    with_tried = (*USUAL, "z-scores")
    order = (
        crossed(("fashion_mnist",), (0.1,), KINDS, (0.3,), (1.0,), seeds, with_tried),
        crossed(("fashion_mnist",), (0.1,), ("scale -10", "scale +10"), (0.1,), (1.0,), seeds, with_tried),
        crossed(DATA, skew, ("none",), (0.0,), ROUNDS, seeds, clean),
        crossed(("mnist", "heart"), skew, KINDS, (0.3,), (1.0,), seeds, USUAL),
        crossed(("fashion_mnist",), (0.5,), KINDS, (0.3,), (1.0,), seeds, USUAL),
        crossed(images, (0.1,), KINDS, (0.3,), (0.4,), seeds, USUAL),
        crossed(("mnist", "heart"), skew, KINDS, (0.1, 0.4), (1.0,), seeds, USUAL),
        crossed(("fashion_mnist",), (0.1,), KINDS, (0.4, 0.1), (1.0,), seeds, USUAL),
        crossed(DATA, skew, KINDS, (0.1, 0.3, 0.4), ROUNDS, seeds, USUAL),
    )
    yield from dict.fromkeys(chain(*order))


def crossed(*choices: Iterable[Any]) -> Iterator[Game]:
    for data, alpha, kind, share, part, seed, name in product(*choices):
        if not (data == "heart" and kind == "foreign"):  # no other dataset has its columns
            yield Game(data, alpha, kind, share, part, name, seed)


@lru_cache(maxsize=6)
def clean(data: str, alpha: float, seed: int) -> Federation:
    held = "split" if data == "heart" else "official"
    partition = f"dirichlet:{alpha}"
    return fk.data.load(fk.Data(data, partition=partition, clients=DATA[data][1], samples=50, holdout=held, seed=seed))


@lru_cache(maxsize=1)
def federation(game: Game) -> Federation:
    """The federation of a game, whatever its filter is."""
    found = clean(game.data, game.alpha, game.seed)
    if game.kind == "none":
        return found
    spec = KINDS[game.kind].format(game.share)
    spec = spec.replace("fashion_mnist", "mnist") if game.data == "fashion_mnist" else spec
    kind, (share, *rest) = scenario_arguments(spec)
    made: Any = fk.data.scenarios
    if kind in ATTACKS:
        return made.attacked(found, kind, share, *rest, seed=game.seed)  # type: ignore[no-any-return]
    return getattr(made, kind)(found, share, *rest, seed=game.seed)  # type: ignore[no-any-return]


def played(game: Game) -> dict[str, Any]:
    """What a run has shown: of the last round AUC, precision, recall and test accuracy, and over all rounds the share
    of replies of relevant clients that did not count (false alarms) and of irrelevant ones (recall of all rounds)."""
    given, (network, _, eta) = federation(replace(game, filter="")), DATA[game.data]
    keep = FILTERS[game.filter]
    train = SGD(eta=eta, steps=None, epochs=5, batch=25)
    method = replace(fk.methods.fedavg(), keep=keep, train=train, select=Uniform(fraction=game.part))
    rounds = ROUNDS[game.part]
    experiment = fk.Experiment(method, given, network, rounds=rounds, seed=game.seed, evaluate_every=5, threads=1)
    began = time.perf_counter()
    run = fk.run(experiment, warn=lambda sentence: None)
    last = run.lines[-1]
    truth = np.zeros(given.n, dtype=bool) if given.irrelevant is None else given.irrelevant.numpy()
    out, replied = (np.asarray(run.participation[name]) for name in ("left_out", "replied"))
    score = "test" if "test" in last["accuracy"] else "global"
    accuracy = last["accuracy"][score]
    line = {**game.__dict__, "test": accuracy if isinstance(accuracy, float) else accuracy["macro"]}
    line["alarms"] = float(out[~truth].sum() / replied[~truth].sum())
    line["found"] = float(out[truth].sum() / replied[truth].sum()) if truth.any() else None
    line |= {name: last.get("filter", {}).get(name) for name in ("auc", "precision", "recall")}
    return line | {"seconds": round(time.perf_counter() - began, 2)}


def stored() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="runs whose name has this, a regular expression")
    parser.add_argument("--seeds", default="200,201,202")
    parser.add_argument("--page", action="store_true", help="write the tables of the page, and play nothing")
    given = parser.parse_args()
    if given.page:
        write_page(stored())
        return
    done = {Game(**{name: line[name] for name in Game.__dataclass_fields__}) for line in stored()}
    LINES.parent.mkdir(parents=True, exist_ok=True)
    for game in games([int(word) for word in given.seeds.split(",")]):
        if game in done or not re.search(given.only, game.name):
            continue
        try:
            line = played(game)
        except fk.BadInput as refused:  # too few clients have the class that is targeted
            line = {**game.__dict__, "refused": str(refused)}
        with LINES.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
