"""Numbers that an independent calibration gave, beside ours: expected and measured, one row each.

    python benchmarks/calibration.py [--only fedmcsa] [--jobs 2] [--quick]

Synthetic rows: 100 clients, MLR, 20 selected, 20 steps of batch 20, eta 0.02, 800 rounds scored every 20, micro, best,
one seed. Fashion-MNIST rows: all 70,000 images, 100 clients, 50 training samples each, DNN-100, 5 epochs of batch 10,
eta 0.01, 60 rounds, macro, post, one seed; they need the images (see docs/data.md). `--quick` runs a tenth of the
rounds, to see that everything works; its numbers are not comparable.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from time import perf_counter

import torch

import fedkin as fk
from fedkin import methods
from fedkin.parts import Method
from fedkin.select import Uniform


@dataclass(frozen=True)
class Row:
    """One number: which run, and what of it."""

    name: str
    method: Method
    kind: str
    expected: float
    within: float
    average: str = "micro"
    rounds: int = 800
    data: tuple[fk.Data, ...] = (fk.Data(),)  # the mean over these
    model: str = "mlr"
    every: int = 20

    @property
    def run(self) -> tuple[object, ...]:
        return self.method, self.rounds, self.data, self.model, self.every


def synthetic() -> list[Row]:
    quarter = {"rounds": 300}
    return [
        Row("FedAvg, global", methods.fedavg(), "global", 0.778, 0.01),
        Row("FedAvg, after local training", methods.fedavg(), "post", 0.841, 0.01),
        Row("Local", methods.local(), "post", 0.942, 0.005),
        Row("Local, eta 0.1", methods.local(eta=0.1), "post", 0.962, 0.005),
        Row("FedMCSA, lambda 5", methods.fedmcsa(lam=5), "post", 0.836, 0.015),
        Row("FedMCSA, lambda 0.5", methods.fedmcsa(lam=0.5), "post", 0.931, 0.01),
        Row("FedMCSA, lambda 5, sigma 200", methods.fedmcsa(lam=5, sigma=200), "post", 0.899, 0.015),
        Row("FedAvg+MCSA", methods.fedavg_mcsa(), "post", 0.942, 0.005),
        Row("pFedMe, global", methods.pfedme(), "global", 0.765, 0.01),
        Row("pFedMe, theta", methods.pfedme(), "post", 0.83, 0.015),
        Row("pFedMe, w", methods.pfedme(), "post-w", 0.825, 0.015),
        Row("HeurFedAMP", methods.heurfedamp(), "post", 0.827, 0.015),
        Row("FedMCSA without MCSA, global", methods.fedmcsa_without_mcsa(), "global", 0.714, 0.015),
        Row("FedAvg+MCSA, sigma 1, T=300", methods.fedavg_mcsa(sigma=1), "post", 0.853, 0.01, **quarter),
        Row("FedAvg+MCSA, sigma 10, T=300", methods.fedavg_mcsa(sigma=10), "post", 0.857, 0.01, **quarter),
        Row("FedAvg+MCSA, sigma 30, T=300", methods.fedavg_mcsa(sigma=30), "post", 0.922, 0.01, **quarter),
    ]


def fashion() -> list[Row]:
    rows = []
    few = methods.fedacs(p=0.5)
    local = replace(methods.local(), train=few.train)
    fedavg = replace(methods.fedavg(), train=few.train, select=Uniform(fraction=1.0))
    for alpha, expected in {
        0.5: {"local": 0.772, "p=.5": 0.857, "p=.9": 0.83, "global": 0.823, "tuned": 0.866},
        0.1: {"local": 0.915, "p=.5": 0.937},
        10.0: {"local": 0.614, "p=.5": 0.770},
    }.items():
        # with few classes a client, much depends on the draw of the partition: alpha 0.1 is a mean over four of them
        seeds = range(4 if alpha < 0.5 else 1)
        data = tuple(fk.Data("fashion_mnist", f"dirichlet:{alpha}", clients=100, samples=50, seed=k) for k in seeds)
        place = {"average": "macro", "rounds": 60, "data": data, "model": "dnn:100", "every": 10, "within": 0.02}
        title = f"Fashion-MNIST, alpha {alpha:g}: "
        rows.append(Row(title + "Local", local, "post", expected["local"], **place))
        rows.append(Row(title + "FedACS p=0.5", few, "post", expected["p=.5"], **place))
        if "p=.9" in expected:
            rows.append(Row(title + "FedACS p=0.9", methods.fedacs(p=0.9), "post", expected["p=.9"], **place))
            rows.append(Row(title + "FedAvg, global", fedavg, "global", expected["global"], **place))
            rows.append(Row(title + "FedAvg, after local training", fedavg, "post", expected["tuned"], **place))
    return rows


def measured(row: Row, quick: bool) -> tuple[list[dict[str, dict[str, dict[str, float]]]], float]:
    """The accuracies of a run on each of its data, and its seconds."""
    torch.set_num_threads(1)
    rounds = max(row.every, row.rounds // 10) if quick else row.rounds
    start, found = perf_counter(), []
    for data in row.data:
        experiment = fk.Experiment(row.method, data, row.model, rounds, evaluate_every=row.every, threads=1)
        found.append(fk.run(experiment, warn=lambda _: None).summary["accuracy"])
    return found, perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rows = [row for row in [*synthetic(), *fashion()] if given.only.lower() in row.name.lower()]
    runs: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        runs.setdefault(row.run, []).append(row)
    print(f"{'':52} {'expected':>16} {'measured':>9} {'':5} {'seconds':>8}", flush=True)
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = {pool.submit(measured, same[0], given.quick): same for same in runs.values()}
        for done in as_completed(waiting):
            found, seconds = done.result()
            for row in waiting[done]:
                values = [accuracy[row.kind][row.average]["best"] for accuracy in found]
                value = sum(values) / len(values)
                verdict = "ok" if abs(value - row.expected) <= row.within else "OFF"
                wanted = f"{row.expected:.3f} +- {row.within:.3f}"
                each = " (" + ", ".join(f"{v:.3f}" for v in values) + ")" if len(values) > 1 else ""
                print(f"{row.name:52} {wanted:>16} {value:9.3f} {verdict:5} {seconds:8.0f}{each}", flush=True)


if __name__ == "__main__":
    main()
