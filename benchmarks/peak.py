"""How good the estimate of a run's memory is: expected before it, and measured by the run and by the system.

    python benchmarks/peak.py [fedavg ...] [--large] [--json file]

Every case is played in a process of its own, two rounds that are scored, recorded in a folder. --large adds the case of
9.2 million parameters at 50 clients, which takes about ten gigabytes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fedkin as fk
from fedkin.select import Uniform

SAMPLES, CLASSES = 40, 10
METHODS = ("local", "fedavg", "scaffold", "fedmcsa", "fedacs", "pfedme", "ditto", "perfedavg", "pfedre_aligned", "krum")
SIZES = (("dnn:10000", 20, 20, 1), ("dnn:10000", 60, 10, 1), ("dnn:40000", 20, 20, 2), ("mlp:1000,1000", 40, 20, 1))
IMAGES = tuple((method, "cnn", 20, 10, 1) for method in ("fedavg", "fedmcsa", "ditto"))
LARGE = (("fedmcsa", "mlp:4000,2000,400", 50, 50, 1),)
Case = tuple[str, str, int, int, int]  # method, model, clients, clients of a round, threads


def federation(clients: int, images: bool) -> fk.Federation:
    """Return clients with a few random samples each."""
    rng = np.random.default_rng(0)
    shape = (SAMPLES, 1, 28, 28) if images else (SAMPLES, 64)
    return fk.from_clients({f"{i}": (rng.normal(size=shape), np.arange(SAMPLES) % CLASSES) for i in range(clients)})


def played(case: Case) -> dict[str, Any]:
    """Play a case in this process."""
    name, model, clients, selected, threads = case
    method = fk.methods.METHODS[name]()
    method = replace(method, train=replace(method.train, steps=5, epochs=None, batch=10))  # type: ignore[call-arg]
    if isinstance(method.select, Uniform):
        method = replace(method, select=Uniform(count=selected))
    data = federation(clients, images=model == "cnn")
    experiment = fk.Experiment(method, data, model, rounds=2, evaluate_every=1, threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        run = fk.run(experiment, Path(folder) / "run", warn=lambda sentence: None)
    return {"parameters": run.experiment["resolved"]["parameters"], **run.summary["memory"]}


def measured(case: Case) -> dict[str, Any]:
    """Play a case in a process of its own, and return what was expected, what it measured, and what the system saw."""
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    found = json.loads(said)
    names = ("method", "model", "clients", "selected", "threads")
    ratio = round(found["estimated"] / found["measured"], 3)
    return dict(zip(names, case, strict=True)) | found | {"system": usage.ru_maxrss * 1024, "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=METHODS)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--case", type=json.loads)
    args = parser.parse_args()
    if args.case:
        print(json.dumps(played(tuple(args.case))))
        return
    cases = [(method, *size) for size in SIZES for method in args.methods]
    rows = []
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text("")
    for case in [*cases, *IMAGES, *(LARGE if args.large else ())]:
        rows.append(measured(case))
        row = rows[-1]
        sizes = " ".join(f"{row[name] / 1e6:8,.0f}" for name in ("estimated", "measured", "system"))
        about = f"{row['method']:15} {row['model']:18} {row['clients']:3} {row['selected']:3}"
        print(f"{about} {sizes} {row['ratio']:6.2f}", flush=True)
        if args.json:
            with args.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
    ratios = sorted(row["ratio"] for row in rows)
    print(f"expected / measured: {ratios[0]:.2f} to {ratios[-1]:.2f}, median {ratios[len(ratios) // 2]:.2f}")


if __name__ == "__main__":
    main()
