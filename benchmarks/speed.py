"""How much faster the stacked engine is than a bare PyTorch loop on the same work, measured in one run.

    OMP_NUM_THREADS=1 python benchmarks/speed.py [--rows] [--parts] [--round] [--runs] [--only PATTERN]
                                                 [--repeats 5] [--cores 2] [--json FILE]

--rows (the default): microseconds of a step of one client, for plain SGD. The loop (loops.py) is what one would write
without a framework: one client after another on one thread. The engine trains the same clients on one core and on all
cores, whose helpers are at work before anything is timed. `limit` is a lower bound on one core: the multiply-adds of a
step, there and back, at the speed of a large product of matrices in the same minute, by the faster of PyTorch's two
libraries; `share` is what part of the time on one core that would be. `products`: the step's own products for all
clients of a chunk and its convolutions by oneDNN, and nothing else. All of them take turns of a quarter of a second,
and the least time of each counts, because other load only adds time.
--parts: the same for other parts, each against a loop of its own. One step of Moreau is K = 5 gradients. To reach: 70 %
of the ratio that plain SGD has in the same run.
--round: what a whole round costs beyond its training (rounds.py). --runs: seconds of a run of FedMCSA and of PFedRe's
relevance step (relevance.py). --json appends one line to a history file, from which `make speed` makes docs/speed.md.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import relevance
import rounds
import torch
from products import multiply_adds, products
from timing import SIDE, append, circumstances, large_products, least, own_cache, seconds
from workloads import PATIENCE, ROWS, Row, Stack, loop

import fedkin as fk
from fedkin.parts import Train
from fedkin.presets import fedmcsa

SHARE = 0.7  # of plain SGD's ratio, for other parts
Found = dict[str, Any]
PARTS: dict[str, Callable[..., Train]] = {
    "Prox": fk.train.Prox,
    "Moreau": fk.train.Moreau,
    "Scaffold": fk.train.Scaffold,
    "Ditto": fk.train.TwoStreams,
    "APFL": fk.train.APFL,
}
PARTS_ROWS = ("DNN 784-100-10, 20 clients", "MLR 60-10, 100 clients")
RELEVANCE = "DNN 784-100-10, 20 clients"


def against_loop(row: Row, part: Train, cores: int, repeats: int) -> Found:
    """Measure a part on the work of a row: the loop, the engine on one core and on all, and a product of matrices."""
    with Stack(row, part, 1) as one, Stack(row, part, cores) as all_cores:
        begun = perf_counter()
        while not all_cores.hired and perf_counter() - begun < PATIENCE:
            all_cores.train()
        many = min(one.engine.chunk, row.clients)
        sides = {"loop": loop(row, part), "one": one.train, "all": all_cores.train, **large_products()}
        took = least(sides | {"products": products(row, many)}, repeats)
        hired = all_cores.hired
    if not hired:
        print(f"{row.name}: no helpers were hired, so that its time on all cores is that of one.", flush=True)
    found = {f"{side}_us": 1e6 * took[side] / row.steps_in_all for side in ("loop", "one", "all")}
    return found | {
        "one_ratio": took["loop"] / took["one"],
        "all_ratio": took["loop"] / took["all"],
        "all_over_one": took["one"] / took["all"],
        "multiply_adds_a_second": {way: SIDE**3 / took[way] for way in large_products()},
        "cores": cores,
        "hired": hired,
        "chunk": many,
        "products_us": 1e6 * took["products"] / many / row.steps,
    }


def rows(given: argparse.Namespace) -> Found:
    """Measure plain SGD on every row."""
    found: Found = {}
    print(f"{'microseconds a step of one client':46}{TITLES}", flush=True)
    for row in (row for row in ROWS if re.search(given.only, row.name)):
        one = against_loop(row, row.sgd(), given.cores, given.repeats)
        work = multiply_adds(row)
        limit = 1e6 * work / max(one["multiply_adds_a_second"].values())
        bound = {"multiply_adds": work, "limit_us": limit, "share_of_limit": limit / one["one_us"]}
        found[row.name] = one | bound | {"one_wanted": row.one, "all_wanted": row.two}
        show(row.name, found[row.name])
    return found


def parts(given: argparse.Namespace) -> Found:
    """Measure other parts, and plain SGD beside them, on two of the rows."""
    found: Found = {}
    print(f"{'microseconds a step of one client':46}{TITLES}", flush=True)
    for row in (row for row in ROWS if row.name in PARTS_ROWS and re.search(given.only, row.name)):
        plain = against_loop(row, row.sgd(), given.cores, given.repeats)
        show(f"SGD, {row.name}", plain)
        for name, made in PARTS.items():
            one = against_loop(row, made(batch=row.batch, steps=row.steps), given.cores, given.repeats)
            wanted = {f"{side}_wanted": SHARE * plain[f"{side}_ratio"] for side in ("one", "all")}
            found[f"{name}, {row.name}"] = one | wanted
            show(f"{name}, {row.name}", found[f"{name}, {row.name}"])
    return found


def whole_rounds(given: argparse.Namespace) -> Found:
    """Measure whole rounds against their training."""
    chosen = {name: work for name, work in rounds.work().items() if re.search(given.only, name)}
    rounds.show_titles()
    found = {}
    for name, work in chosen.items():
        found[name] = rounds.measured(*work, rounds=100)
        rounds.show(name, found[name])
    return found


def fedmcsa_run() -> None:
    """Play FedMCSA on its synthetic data, 800 rounds, as its table 2 does, and record it."""
    method, _ = fedmcsa.methods("Syn MLR")["FedMCSA"]
    with tempfile.TemporaryDirectory() as folder:
        fk.run(fedmcsa.experiment(method, "Syn MLR", 800), Path(folder) / "run", warn=lambda _: None)


def runs(given: argparse.Namespace) -> Found:
    """Measure what takes seconds: a whole run, and the relevance step."""
    spec, clients = relevance.WORK[RELEVANCE]
    work: dict[str, tuple[Callable[[], float], float]] = {
        "FedMCSA, synthetic, MLR, 800 rounds": (lambda: least_of(fedmcsa_run, min(3, given.repeats)), 18.0),
        f"PFedRe's relevance step, {RELEVANCE}, 10 dummies, 50 steps": (
            lambda: relevance.against(spec, clients, given.repeats)["closed"],
            0.5,
        ),
    }
    found = {}
    for name, (measure, wanted) in work.items():
        if re.search(given.only, name):
            found[name] = {"seconds": measure(), "wanted": wanted}
            print(f"{name:74}{found[name]['seconds']:8.2f} s, wanted below {wanted} s", flush=True)
    return found


def least_of(work: Callable[[], Any], repeats: int) -> float:
    """Return the least seconds of several turns."""
    return min(seconds(work) for _ in range(repeats))


TITLES = "{:>8}{:>9}{:>15}{:>9}{:>15}{:>8}{:>8}{:>6}{:>9}".format(
    "loop", "one core", "ratio/wanted", "all", "ratio/wanted", "all/one", "limit", "share", "products"
)


def show(name: str, row: Found) -> None:
    """Print a row as the columns of TITLES."""

    def ratio(side: str) -> str:
        wanted = f"/{row[f'{side}_wanted']:.1f}" if f"{side}_wanted" in row else ""
        return f"{row[f'{side}_ratio']:.2f}{wanted}"

    end = f"{row['limit_us']:8.1f}{row['share_of_limit']:6.0%}" if "limit_us" in row else ""
    end += f"{row['products_us']:9.1f}" if end else ""
    start = f"{name:46}{row['loop_us']:8.0f}{row['one_us']:9.1f}{ratio('one'):>15}"
    print(f"{start}{row['all_us']:9.1f}{ratio('all'):>15}{row['all_over_one']:8.2f}{end}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = {"rows": rows, "parts": parts, "round": whole_rounds, "runs": runs}
    for name in what:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--only", default="", help="rows whose name has this, a regular expression")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", default=None, help="append the results to this file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    begun = circumstances()
    chosen = [name for name in what if getattr(given, name)] or ["rows"]
    with own_cache():
        append(given.json, begun, {name: what[name](given) for name in chosen})


if __name__ == "__main__":
    main()
