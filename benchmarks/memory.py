"""How much memory runs with many clients take beyond their data, and how soon a large federation is ready.

    python benchmarks/memory.py [fedacs] [fedmcsa] [ditto] [start] [--clients 10000] [--rounds 10] [--memory 500MB]
                                [--score-clients 1000] [--json file]

fedacs, fedmcsa (trains="selected") and ditto: DNN 784-100-10, 100 clients a round, recorded with checkpoints, each in a
process of its own; resident memory is that process's minus that of one which holds the data only, at its end and at its
peak. start: MLR 60-10 with ten times as many clients; seconds of `fk.from_clients`, of reading the same as a table, and
until the first round of FedAvg is over.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

import fedkin as fk
from fedkin.data.federation import Federation, Index

SELECTED, TRAIN, TEST, SAMPLES = 100, 12, 4, 20_000


def methods(clients: int) -> dict[str, fk.Method]:
    """Return the methods that leave a model with every client, with 100 clients a round."""
    return {
        "fedacs": fk.methods.fedacs(fraction=min(1.0, SELECTED / clients), epochs=1),
        "fedmcsa": fk.methods.fedmcsa(count=min(SELECTED, clients), trains="selected", steps=5),
        "ditto": fk.methods.ditto(count=min(SELECTED, clients), steps=5),
    }


def images(clients: int) -> Federation:
    """Return clients with a few noisy images each, which they share with others: the store of samples stays small."""
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(0, 10, SAMPLES))
    x = torch.from_numpy(rng.normal(size=(10, 784)).astype(np.float32))[y]
    x += torch.from_numpy(rng.normal(size=x.shape).astype(np.float32))
    rows = torch.from_numpy(rng.integers(0, SAMPLES, (clients, TRAIN + TEST)))
    start = torch.arange(clients + 1)
    train = Index(rows[:, :TRAIN].reshape(-1), start * TRAIN)
    return Federation("images", x, y, 10, train, Index(rows[:, TRAIN:].reshape(-1), start * TEST))


class Seconds(fk.Callback):
    """Notes when each round was over."""

    def __init__(self) -> None:
        self.at = [perf_counter()]

    def begun(self, experiment: dict[str, Any]) -> None:
        self.at = [perf_counter()]

    def recorded(self, record: fk.Record) -> None:
        self.at.append(perf_counter())


def resident() -> dict[str, float]:
    """Return the resident memory of this process in megabytes: now, and at its peak."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {word: int(lines[name].split()[0]) * 1024 / 1e6 for word, name in (("now", "VmRSS"), ("peak", "VmHWM"))}


def played(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Play one method, or nothing, in this process, and return what memory and time it took."""
    federation = images(args.clients)
    if name == "data":
        return {"resident": resident()}
    method, timer = methods(args.clients)[name], Seconds()
    experiment = fk.Experiment(
        method,
        federation,
        "dnn:100",
        rounds=args.rounds,
        evaluate_every=args.rounds,
        threads=1,
        memory=args.memory,
        score_clients=args.score_clients,
    )
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        start = perf_counter()
        fk.run(experiment, Path(folder) / "run", callbacks=[timer], warn=lambda _: None, checkpoint_seconds=args.every)
        total = perf_counter() - start
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
    rounds = np.diff(timer.at)
    return {
        "resident": resident(),
        "round_s": float(np.median(rounds[:-1] if len(rounds) > 1 else rounds)),
        "last_round_s": float(rounds[-1]),
        "total_s": total,
        "stored_mb": stored,
    }


def started(clients: int) -> dict[str, Any]:
    """Return the seconds until a federation of so many clients is there, as arrays and as a table, and until its first
    round is over."""
    import pandas as pd

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(clients, 6, 60)).astype(np.float32), rng.integers(0, 10, (clients, 6))
    given = {f"c{i}": (x[i], y[i]) for i in range(clients)}
    start = perf_counter()
    federation = fk.from_clients(given)
    found = {"from_clients_s": perf_counter() - start}
    timer = Seconds()
    experiment = fk.Experiment(fk.methods.fedavg(count=SELECTED), federation, "mlr", rounds=2, score_clients=1000)
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        fk.run(experiment, Path(folder) / "run", callbacks=[timer], warn=lambda _: None)
        found |= {"first_round_s": timer.at[1] - start, "two_rounds_s": perf_counter() - start}
        frame = pd.DataFrame(x.reshape(-1, 60)[:, :6], columns=[f"f{i}" for i in range(6)])
        frame = frame.assign(client=np.repeat(list(given), 6), label=y.reshape(-1))
        frame.to_csv(Path(folder) / "table.csv", index=False)
        start = perf_counter()
        fk.data.load(fk.Data(f"{folder}/table.csv"))
        found["table_s"] = perf_counter() - start
    return found


def alone(name: str, args: list[str]) -> dict[str, Any]:
    """Do one thing in a fresh process."""
    command = [sys.executable, __file__, name, "--inside", *args]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["fedacs", "fedmcsa", "ditto", "start"])
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--memory", default=None)
    parser.add_argument("--score-clients", type=int, default=None)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between checkpoints")
    parser.add_argument("--folder", default=None, help="where runs are recorded meanwhile")
    parser.add_argument("--json", default=None, help="append the results to this file")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(started(args.clients) if args.what == ["start"] else played(args.what[0], args)))
        return
    passed = sys.argv[1:]
    options = passed[passed.index(first) :] if (first := next((w for w in passed if w.startswith("--")), "")) else []
    results: dict[str, Any] = {"clients": args.clients, "rounds": args.rounds, "memory": args.memory}
    names = [name for name in args.what if name != "start"]
    data = alone("data", options)["resident"] if names else {}
    print(f"{'':10}{'MB beyond the data':>20}{'at the peak':>14}{'s a round':>12}{'s in all':>11}{'MB on disk':>12}")
    for name in names:
        found = alone(name, options)
        beyond = {word: found["resident"][word] - data[word] for word in ("now", "peak")}
        results[name] = found | {"beyond_the_data": beyond}
        print(
            f"{name:10}{beyond['now']:20,.0f}{beyond['peak']:14,.0f}{found['round_s']:12.3f}{found['total_s']:11.1f}"
            f"{found['stored_mb']:12,.0f}",
            flush=True,
        )
    if "start" in args.what:
        results["start"] = alone("start", ["--clients", str(10 * args.clients)])
        said = ", ".join(f"{name.removesuffix('_s')} {value:.1f} s" for name, value in results["start"].items())
        print(f"{10 * args.clients:,} clients, MLR 60-10: {said}")
    if args.json:
        with open(args.json, "a") as file:
            file.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
