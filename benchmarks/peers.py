"""How long a whole round of FedAvg takes in fedkin and in other frameworks: the same network, samples and steps.

    python benchmarks/peers.py [--turns 3] [--rounds 30] [--python OTHER] [--pfllib DIR] [--fl-bench DIR]
                               [--only PATTERN] [--json FILE]

20 clients, each of which goes once through its 400 samples in batches of 20 (20 steps), DNN 784-100-10. Each framework
plays rounds in a process of its own with one thread (peer_rounds.py); the processes take turns, and the least round of
each counts, without its start and without evaluation. `loss` is the mean training loss after the last round: it says
that all did the same work. pfl-research goes through samples in a fixed order, the others shuffle. To reach: fedkin on
one core 4 times, and on two cores 8 times as fast as pfl-research in one process.

The other frameworks may be installed in an environment of their own, whose interpreter is given by --python. One that
is not at hand is left out, and it is said what to install.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timing import append, circumstances, own_cache

ROUNDS = Path(__file__).with_name("peer_rounds.py")
WANTED = {"fedkin, one core": 4.0, "fedkin, two cores": 8.0}
BASE = "pfl-research"


@dataclass(frozen=True)
class Side:
    """One row: a framework on so many cores, the module that says whether it is there, and how to get it."""

    name: str
    peer: str
    cores: int
    module: str = "torch"
    install: str = ""
    processes: bool = False  # whether torchrun starts a process a core
    option: str = ""  # the option that gives the folder of its sources


PFL, FLOWER = "pip install torch==2.13.0, then pfl", "pip install 'flwr[simulation]==1.41.0'"
SIDES = (
    Side("bare PyTorch loop", "bare loop", 1),
    Side("fedkin, one core", "fedkin", 1, "fedkin"),
    Side("fedkin, two cores", "fedkin", 2, "fedkin"),
    Side("pfl-research", "pfl-research", 1, "pfl", PFL),
    Side("pfl-research, two processes", "pfl-research", 2, "pfl", PFL, processes=True),
    Side("Flower's simulation, one core", "Flower", 1, "flwr, ray", FLOWER),
    Side("Flower's simulation, two cores", "Flower", 2, "flwr, ray", FLOWER),
    Side(
        "PFLlib", "PFLlib", 1, "h5py, sklearn, matplotlib", "pip install h5py scikit-learn matplotlib", option="pfllib"
    ),
    Side(
        "FL-bench",
        "FL-bench",
        1,
        "hydra, ray, torchvision",
        "pip install hydra-core ray torchvision",
        option="fl_bench",
    ),
)


def missing(side: Side, given: argparse.Namespace) -> str | None:
    """Return why a framework cannot be played here, and what to do about it; None if it can."""
    if side.option and not getattr(given, side.option):
        return f"give the folder of its sources by --{side.option.replace('_', '-')}"
    try:
        asked = [interpreter(side, given), "-W", "ignore", "-c", f"import {side.module}"]
        done = subprocess.run(asked, capture_output=True, text=True)
    except OSError as error:
        return f"its interpreter does not start: {error}"
    said = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"{said[-1] if said else 'it cannot be imported'}; {side.install}"


def interpreter(side: Side, given: argparse.Namespace) -> str:
    """Return the interpreter in which a framework is installed."""
    return sys.executable if side.peer in ("fedkin", "bare loop") else given.python


def played(side: Side, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Play rounds in a process of their own, and return what it says; nothing where it fails."""
    start = [interpreter(side, given)]
    if side.processes:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={side.cores}"]
    folder = [str(Path(getattr(given, side.option)).resolve())] if side.option else []
    command = [*start, str(ROUNDS), side.peer, str(given.rounds), str(side.cores), *folder]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        print(f"{side.name} failed in this turn:\n{done.stderr[-2000:]}", flush=True)
        return []
    return [json.loads(done.stdout.splitlines()[-1])]


def concluded(turns: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the least seconds of a round and the loss of each side, and how fedkin compares with each."""
    found = {
        name: {**some[-1], "seconds": min(min(turn["seconds"]) for turn in some)}  # with its loss and version
        for name, some in turns.items()
        if some
    }
    for name, row in found.items():
        for ours, wanted in WANTED.items():
            if ours in found and not name.startswith("fedkin"):
                row[ours] = row["seconds"] / found[ours]["seconds"]
                row |= {f"{ours}, wanted": wanted} if name == BASE else {}
    return found


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(f"{'':32}{'s a round':>10}{'loss':>8}" + "".join(f"{ours:>20}" for ours in WANTED))
    for name, row in found.items():
        cells = []
        for ours in WANTED:
            wanted = f" (wanted {row[f'{ours}, wanted']:.0f})" if f"{ours}, wanted" in row else ""
            cells.append(f"{row[ours]:.1f}x{wanted}" if ours in row else "")
        print(f"{name:32}{row['seconds']:10.4f}{row['loss']:8.3f}" + "".join(f"{cell:>20}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=30, help="in each turn; fedkin's helpers come after a few")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the other frameworks")
    parser.add_argument("--pfllib", default=None, help="a clone of TsingZ0/PFLlib")
    parser.add_argument("--fl-bench", default=None, help="a clone of KarhouTam/FL-bench")
    parser.add_argument("--only", default="", help="rows whose name has this, a regular expression")
    parser.add_argument("--json", default=None, help="append the results to this file")
    given = parser.parse_args()
    begun, sides = circumstances(), []
    for side in (side for side in SIDES if re.search(given.only, side.name)):
        reason = missing(side, given)
        if reason is None:
            sides.append(side)
        else:
            print(f"{side.name} is left out: {reason}.", flush=True)
    turns: dict[str, list[dict[str, Any]]] = {side.name: [] for side in sides}
    with own_cache():
        for side in sides * given.turns:
            turns[side.name] += played(side, given)
    found = concluded(turns)
    show(found)
    append(given.json, begun, {"peers": found})


if __name__ == "__main__":
    main()
