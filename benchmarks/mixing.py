"""Time and memory of one mixture: 200 clients of a million parameters by component attention, and the other parts.

    python benchmarks/mixing.py [--clients 200] [--parameters 1000000]
    python benchmarks/mixing.py --many

Memory is the largest resident size above what the process held with the stacked models alone, as a multiple of them;
each part runs in a process of its own. To reach: under 10 s, and less than 3x in all, the stacked models included.

With --many it is one mixture of many clients of a small network, by FedACS's and FedMCSA's parts: of up to 5,000
clients exactly, of up to 20,000 with sketch=64 and neighbours=20. Memory is in GB there, and the exponent is that of m
in seconds = c m^e, fitted to the rows of a part. To reach: 20,000 clients in a few GB on one core.
"""

from __future__ import annotations

import argparse
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
import torch

from fedkin.collaborate import ComponentAttention, HeuristicMessagePassing, MessagePassing, SimilarityThreshold
from fedkin.collaborate.mixing import Mixing

PARTS = [ComponentAttention(), SimilarityThreshold(), MessagePassing(), HeuristicMessagePassing()]
NETWORKS = {"MLR 60-10": (60, 10), "DNN 60-20-10": (60, 20, 10)}
EXACT, SPARING = (1000, 2000, 5000), (5000, 10_000, 20_000)

Shapes = dict[str, tuple[int, ...]]


def of_size(parameters: int) -> Shapes:
    """Two layers with about so many parameters together."""
    wide = (parameters - 1010) // 1001
    return {"1.weight": (1000, wide), "1.bias": (1000,), "3.weight": (1, 1000), "3.bias": (10,)}


def of_layers(widths: tuple[int, ...]) -> Shapes:
    """Linear layers of these widths."""
    layers = enumerate(pairwise(widths))
    return {
        name: shape
        for i, (a, b) in layers
        for name, shape in ((f"{2 * i + 1}.weight", (b, a)), (f"{2 * i + 1}.bias", (b,)))
    }


def measured(part: Mixing, clients: int, shapes: Shapes) -> tuple[float, int, int]:
    """Seconds, the bytes of the stacked models, and the bytes at the peak beyond them.

    Clients have a common model and what they have learned, which is as long: cosines are about a half.
    """
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    gen = torch.Generator().manual_seed(0)
    models = {name: torch.randn(clients, *shape, generator=gen) for name, shape in shapes.items()}
    for value in models.values():
        value += torch.randn(value.shape[1:], generator=gen)
    size = sum(value.nbytes for value in models.values())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    part.mix(models, torch.ones(clients))
    seconds = perf_counter() - start
    return seconds, size, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def apart(*arguments: Any) -> tuple[float, int, int]:
    """What `measured` gives in a process of its own, whose peak is of nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, *arguments).result()


def many() -> None:
    """Print time, memory and the exponent of time for many clients of small networks."""
    print(f"{'network':14} {'part':22} {'':24} {'clients':>8} {'seconds':>8} {'GB':>6}")
    for network, widths in NETWORKS.items():
        for part in PARTS[:2]:
            for sparing, numbers in ((False, EXACT), (True, SPARING)):
                how = "sketch=64, neighbours=20" if sparing else "exact"
                asked: Mixing = replace(part, sketch=64, neighbours=20) if sparing else part  # type: ignore[type-var]
                times = []
                for m in numbers:
                    seconds, _, peak = apart(asked, m, of_layers(widths))
                    times.append(seconds)
                    print(
                        f"{network:14} {type(part).__name__:22} {how:24} {m:8,} {seconds:8.2f} {peak / 1e9:6.2f}",
                        flush=True,
                    )
                print(f"{'':62} exponent {np.polyfit(np.log(numbers), np.log(times), 1)[0]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--parameters", type=int, default=1_000_000)
    parser.add_argument("--many", action="store_true", help="many clients of small networks")
    given = parser.parse_args()
    if given.many:
        return many()
    print(f"{'part':26} {'seconds':>8} {'memory':>8}")
    for part in PARTS:
        seconds, size, peak = apart(part, given.clients, of_size(given.parameters))
        print(f"{type(part).__name__:26} {seconds:8.2f} {1 + peak / size:7.2f}x", flush=True)


if __name__ == "__main__":
    main()
