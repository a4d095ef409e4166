"""How much a whole round costs beyond its training: selection, mixing, filter, record, all that a run does in a round.

Each row is a run with a folder, as `fk.run` plays it. A round is measured from the end of one record to the end of the
next, `train` is the time in `engine.train`, of which `steps` is what is neither planning nor gathering of batches, and
`record` is all of a round that is neither training nor the work of the server's parts. Medians over the rounds that
are not scored. To reach: a round of at most 1.25 times its training, and a record of less than a millisecond.

    OMP_NUM_THREADS=1 python benchmarks/rounds.py [--only mlr] [--rounds 100] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from workloads import federation

import fedkin as fk

FLAT, IMAGE = (60,), (1, 28, 28)
Work = tuple[fk.Method, tuple[int, ...], int, str]


def work() -> dict[str, Work]:
    """The method, the shape of a sample, the number of clients, and the model, by the name of the row."""
    return {
        "fedavg, MLR 60-10, 100 of 100": (fk.methods.fedavg(count=100), FLAT, 100, "mlr"),
        "fedavg, DNN 784-100-10, 20 of 20": (fk.methods.fedavg(count=20), IMAGE, 20, "dnn:100"),
        "fedmcsa, MLR 60-10, 20 of 100": (fk.methods.fedmcsa(), FLAT, 100, "mlr"),
        "fedmcsa, DNN 60-20-10, 20 of 100": (fk.methods.fedmcsa(), FLAT, 100, "dnn:20"),
        "adafl, MLR 60-10, of 100": (fk.methods.adafl(), FLAT, 100, "mlr"),
        "scaffold, MLR 60-10, of 100": (fk.methods.scaffold(), FLAT, 100, "mlr"),
    }


class Clock(fk.Callback):
    """Notes when each round was recorded, and the seconds of its parts. It is told after the recorder."""

    def __init__(self) -> None:
        self.at: list[float] = []
        self.parts: list[dict[str, float]] = []

    def recorded(self, record: fk.Record) -> None:
        self.at.append(perf_counter())
        self.parts.append(record.line["seconds"])


def measured(method: fk.Method, shape: tuple[int, ...], clients: int, model: str, rounds: int) -> dict[str, float]:
    experiment = fk.Experiment(method, federation(shape, clients), model, rounds, evaluate_every=rounds, threads=1)
    clock = Clock()
    with tempfile.TemporaryDirectory() as place:
        options = {"callbacks": [clock], "checkpoint_seconds": 1e9, "warn": lambda _: None}
        profile = fk.run(experiment, Path(place) / "run", profile=True, **options).profile
    assert profile is not None
    inner = range(1, rounds - 1)  # the first round warms up, the last one is scored
    whole = [clock.at[i] - clock.at[i - 1] for i in inner]
    train = [clock.parts[i]["train_s"] for i in inner]
    record = [took - sum(clock.parts[i].values()) for i, took in zip(inner, whole, strict=True)]
    steps = profile.seconds["training steps"]
    share = steps / (steps + profile.seconds["batches"])
    found = {"round_ms": 1000 * median(whole), "train_ms": 1000 * median(train), "record_ms": 1000 * median(record)}
    found["ratio"] = median(a / b for a, b in zip(whole, train, strict=True))
    return found | {"steps_ms": found["train_ms"] * share, "ratio_to_steps": found["ratio"] / share}


def show_titles() -> None:
    titles = " ".join(f"{word:>8}" for word in ("round", "train", "steps", "record"))
    print(f"{'milliseconds a round':34} {titles} {'ratio':>7} {'to steps':>9}")


def show(name: str, row: dict[str, float]) -> None:
    """Print a row under its titles."""
    times = " ".join(f"{row[f'{part}_ms']:8.2f}" for part in ("round", "train", "steps", "record"))
    print(f"{name:34} {times} {row['ratio']:6.2f}x {row['ratio_to_steps']:8.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name has this word")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows, found = work(), {}
    if not arguments.json:
        show_titles()
    for name in [name for name in rows if arguments.only.lower() in name.lower()]:
        found[name] = measured(*rows[name], rounds=arguments.rounds)
        if not arguments.json:
            show(name, found[name])
    if arguments.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
