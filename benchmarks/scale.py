"""How the seconds of a FedAvg round grow with the clients of the round, with the model, and with the cores.

    OMP_NUM_THREADS=1 python benchmarks/scale.py [clients] [model] [cores] [--repeats 3] [--json FILE]

A round is one of `fk.run` with a folder, of 20 steps a client with batches of 20, measured from the end of one record
to the end of the next. clients: all of them take part, DNN 784-100-10, one core. model: DNN 784-h-10, 20 clients, one
core; its size is its number of parameters. cores: DNN 784-100-10, 100 clients. All sizes take turns, and the least
round of each counts, because other load only adds time. `exponent` is the p of seconds ~ size^p, by least squares on
logarithms: 1 means that twice the work takes twice the time, and -1 that twice the cores take half of it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from rounds import Clock
from timing import append, circumstances, exponent, own_cache
from workloads import federation

import fedkin as fk

SAMPLES = 60  # a client, of which a quarter is not trained on
SHORT, LONG = 4, 1.0  # rounds of a first run; seconds of the rounds of a later one, and helpers come after 0.3
KINDS = ("clients", "model", "cores")
CLIENTS = (10, 30, 100, 300, 1000)
HIDDEN = (10, 30, 100, 300, 1000)


@dataclass(frozen=True)
class Size:
    """One size of the work, and the number that says how large it is."""

    size: int
    clients: int
    hidden: int = 100
    cores: int = 1

    def rounds(self, count: int) -> list[float]:
        """Return the seconds of so many rounds but for the first, which warms up, and the last, which is scored."""
        method = fk.methods.fedavg(count=self.clients)
        experiment = fk.Experiment(
            method,
            clients_of(self.clients),
            f"dnn:{self.hidden}",
            rounds=count + 2,
            evaluate_every=count + 2,
            threads=self.cores,
        )
        clock = Clock()
        with tempfile.TemporaryDirectory() as place:
            options: dict[str, Any] = {"checkpoint_seconds": 1e9, "warn": lambda _: None}
            fk.run(experiment, Path(place) / "run", callbacks=[clock], **options)
        return [b - a for a, b in pairwise(clock.at)][:-1]


@cache
def clients_of(number: int) -> fk.Federation:
    """Return so many clients with 28 x 28 pixels."""
    return federation((1, 28, 28), number, samples=SAMPLES)


def sizes(cores: int) -> dict[str, list[Size]]:
    """Return the sizes of each kind."""
    return {
        "clients": [Size(clients, clients) for clients in CLIENTS],
        "model": [Size(784 * hidden + hidden + 10 * hidden + 10, 20, hidden) for hidden in HIDDEN],
        "cores": [Size(many, 100, cores=many) for many in range(1, cores + 1)],
    }


def measured(chosen: list[Size], repeats: int) -> dict[str, Any]:
    """Return the least seconds of a round of each size, and the exponent."""
    first = {one: min(one.rounds(SHORT)) for one in chosen}
    turns = [{one: min(one.rounds(SHORT + int(LONG / first[one]))) for one in chosen} for _ in range(repeats)]
    found = {str(one.size): min(turn[one] for turn in turns) for one in chosen}
    fitted = exponent([one.size for one in chosen], list(found.values())) if len(chosen) > 1 else None
    return {"seconds": found, "exponent": fitted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="the most cores")
    parser.add_argument("--json", default=None, help="append the results to this file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    begun, found = circumstances(), {}
    for name in KINDS if "all" in given.what else given.what:
        with own_cache():
            found[name] = measured(sizes(given.cores)[name], given.repeats)
        took = ", ".join(f"{int(size):,}: {one:.4f}" for size, one in found[name]["seconds"].items())
        fitted = found[name]["exponent"]
        print(f"seconds of a round by {name}: {took}" + (f"; exponent {fitted:.2f}" if fitted is not None else ""))
    append(given.json, begun, {"scale": found})


if __name__ == "__main__":
    main()
