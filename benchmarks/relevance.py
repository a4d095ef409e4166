"""How well, and how fast, irrelevant clients are found.

    python benchmarks/relevance.py [flip] [odd_even] [speed] [inversion] [--seeds 0,1,2] [--jobs 2] [--json]

flip: MNIST, 50 clients with at most 300 training images, all labels of the irrelevant clients flipped, MLR, eta 0.1,
one epoch of batch 32, one dummy a class, 50 steps of Adam at 0.1, 20 rounds; the AUC of the scores in round 20 and in
the mean of all rounds, precision and recall in round 20, test accuracy. odd_even: MNIST, six clients with the odd
digits and four with even digits and random labels, MLR, eta 0.1, one epoch of batch 32, 50 rounds, all clients; test
accuracy, mean of the last ten rounds. A seed is that of the data and of the run; rows are means over seeds. Both need
the images (see docs/data.md). speed: the relevance step of 500 clients, and all its distances against a loop of
scipy's. inversion: the relevance step by the slopes in closed form against differentiating twice, 50 steps, one dummy a
class, alternately; the least time of each counts, because other load only adds time. `--json` is for it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch

import fedkin as fk
from fedkin.core import tree
from fedkin.engines.network import Network
from fedkin.keep import Alignment, Everyone, Krum, MultiKrum, Oracle, Relevance, UpdateDistance
from fedkin.keep.inversion import balanced, inverted
from fedkin.keep.relevance import wasserstein
from fedkin.parts import Keep
from fedkin.select import Uniform
from fedkin.train import SGD

FILTERS: dict[str, Keep] = {
    "everyone": Everyone(),
    "oracle": Oracle(),
    "relevance": Relevance(),
    "relevance, literal": Relevance(literal=True, normalise=False),
    "relevance, as it is": Relevance(normalise=False),
    "updates, l1": UpdateDistance("l1"),
    "updates, cosine": UpdateDistance("cosine"),
    "alignment": Alignment(),
    "krum": Krum(0.4),
    "multikrum": MultiKrum(0.4),
}


@dataclass(frozen=True)
class Row:
    """A filter in front of FedAvg on some data."""

    scenario: str
    partition: str | None
    keep: str
    rounds: int = 20
    every: int = 20

    @property
    def name(self) -> str:
        return f"{self.partition or ''} {self.scenario}: {self.keep}".strip()

    def measured(self, seed: int) -> dict[str, float]:
        torch.set_num_threads(1)
        odd = self.scenario == "odd_even"
        few: dict[str, Any] = {} if odd else {"partition": self.partition, "clients": 50, "samples": 300}
        data = fk.Data("mnist", holdout="official", irrelevant=self.scenario, seed=seed, **few)
        train = SGD(eta=0.1, steps=None, epochs=1, batch=32)
        method = replace(fk.methods.fedavg(), select=Uniform(fraction=1.0), train=train, keep=FILTERS[self.keep])
        experiment = fk.Experiment(
            method, data, "mlr", self.rounds, seed, evaluate_every=self.every, threads=1, score=("test",)
        )
        result = fk.run(experiment, warn=lambda _: None)
        found = {"test": result.summary["accuracy"]["test"]["micro"]["last10"]}
        filters = [line["filter"] for line in result.lines if "filter" in line]
        if filters:
            found |= {name: value for name, value in filters[-1].items() if value is not None}
            if filters[-1]["auc"] is not None:
                found["mean auc"] = float(np.mean([value["auc"] for value in filters]))
        return found


def flips() -> list[Row]:
    return [
        Row(f"flip:{share}", partition, keep)
        for partition in ("iid", "dirichlet:0.5", "dirichlet:0.1")
        for share in (0.2, 0.4)
        for keep in FILTERS
    ]


def odd_even() -> list[Row]:
    return [Row("odd_even", None, keep, rounds=50, every=1) for keep in FILTERS]


def tabulated(rows: list[Row], seeds: list[int], jobs: int) -> None:
    columns = ("auc", "mean auc", "precision", "recall", "test")
    print(f"{'mean over seeds ' + str(seeds):52}" + "".join(f"{column:>11}" for column in columns), flush=True)
    found: dict[Row, list[dict[str, float]]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {pool.submit(row.measured, seed): row for row in rows for seed in seeds}
        for done in as_completed(waiting):
            row = waiting[done]
            found.setdefault(row, []).append(done.result())
            if len(found[row]) < len(seeds):
                continue
            cells = []
            for column in columns:
                values = [each[column] for each in found[row] if column in each]
                cells.append(f"{np.mean(values):11.3f}" if len(values) == len(seeds) else f"{'-':>11}")
            print(f"{row.name:52}" + "".join(cells), flush=True)


def timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def speed(threads: int) -> None:
    """MLR on 28x28 images, 10 classes, one dummy a class, 50 steps, and all distances."""
    from scipy.stats import wasserstein_distance

    torch.set_num_threads(threads)
    module = fk.models.build("mlr", (1, 28, 28), 10, 0)
    network = Network(module, torch.zeros(1, 28, 28), 32, classes=10)
    gen = torch.Generator().manual_seed(0)
    start, y = torch.randn(10, 1, 28, 28, generator=gen), balanced(10, 1)
    few = 50

    def work(m: int) -> torch.Tensor:
        target = {k: 0.1 * torch.randn(m, *v.shape, generator=gen) for k, v in network.model.items()}
        sent = tree.repeated(network.model, m)
        dummies = inverted(network.logits, sent, target, start, y, 50, 0.1, layers=network.layers)
        return (dummies - start).reshape(m, 10, 1, 784)

    work(few)  # warm
    changed: list[torch.Tensor] = []
    step = timed(lambda: changed.append(work(500)))
    distances = timed(lambda: wasserstein(changed[0]))
    some = timed(lambda: wasserstein(changed[0][:few]))
    rows = changed[0][:few].double().numpy()
    pairs, measured = few * (few - 1) // 2, 5

    def loop() -> None:
        for other in range(1, 1 + measured):
            for label in range(10):
                for feature in range(784):
                    wasserstein_distance(rows[0, label, :, feature], rows[other, label, :, feature])

    scipy = timed(loop) / measured * pairs
    print(f"500 clients, {threads} thread(s): inversion {step:.1f} s, distances {distances:.1f} s")
    print(f"{few} clients: distances {some:.3f} s, scipy's {scipy:.0f} s (from {measured} of {pairs} pairs): ", end="")
    print(f"{scipy / some:,.0f}x")


WORK = {  # the clients' network and their number
    "MLR 784-10, 20 clients": ("mlr", 20),
    "DNN 784-100-10, 20 clients": ("dnn:100", 20),
    "MLP 784-200-200-10, 20 clients": ("mlp:200,200", 20),
    "CNN 1x28x28, 10 clients": ("cnn", 10),
    "LeNet 1x28x28, 10 clients": ("lenet", 10),
}


def against(spec: str, m: int, repeats: int) -> dict[str, float]:
    """Seconds of the relevance step of m clients that were sent one model, by both ways to the slope of J."""
    network = Network(fk.models.build(spec, (1, 28, 28), 10, 0), torch.zeros(1, 28, 28), 32, classes=10)
    gen = torch.Generator().manual_seed(0)
    start, y = torch.randn(10, 1, 28, 28, generator=gen), balanced(10, 1)
    sent = tree.repeated(network.model, m)
    target = {k: 0.1 * torch.randn(m, *v.shape, generator=gen) for k, v in network.model.items()}

    def step(closed: bool) -> None:
        layers = network.layers if closed else None
        dummies = inverted(network.logits, sent, target, start, y, 50, 0.1, layers=layers)
        wasserstein((dummies - start).reshape(m, 10, 1, -1))

    for closed in (True, False):
        step(closed)  # warm
    rounds = [[timed(lambda closed=closed: step(closed)) for closed in (True, False)] for _ in range(repeats)]
    new, old = (min(times) for times in zip(*rounds, strict=True))
    return {"closed": new, "twice": old, "ratio": old / new}


def inversion(threads: int, repeats: int, as_json: bool) -> None:
    torch.set_num_threads(threads)
    found = {}
    for name, (spec, m) in WORK.items():
        found[name] = against(spec, m, repeats)
        if not as_json:
            said = "{closed:7.3f} s in closed form, {twice:7.3f} s by differentiating twice: {ratio:.1f}x"
            print(f"{name:32}" + said.format(**found[name]), flush=True)
    if as_json:
        print(json.dumps(found, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ["odd_even", "flip", "speed", "inversion"]
    parser.add_argument("what", nargs="*", choices=[*every, "all"], default="all")
    parser.add_argument("--only", default="", help="rows whose name has this, a regular expression")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--threads", type=int, default=1, help="of speed and inversion")
    parser.add_argument("--repeats", type=int, default=5, help="of inversion")
    parser.add_argument("--json", action="store_true", help="inversion's numbers as JSON")
    given = parser.parse_args()
    wanted = every if "all" in given.what else given.what
    seeds = [int(word) for word in given.seeds.split(",")]
    for what, rows in (("odd_even", odd_even()), ("flip", flips())):
        chosen = [row for row in rows if re.search(given.only, row.name)]
        if what in wanted and chosen:
            tabulated(chosen, seeds, given.jobs)
    if "speed" in wanted:
        speed(given.threads)
    if "inversion" in wanted:
        inversion(given.threads, given.repeats, given.json)


if __name__ == "__main__":
    main()
