"""Time and memory of one mixture: 200 clients of a million parameters by component attention, and the other parts.

    python benchmarks/mixing.py [--clients 200] [--parameters 1000000]

Memory is the largest resident size above what the process held with the stacked models alone, as a multiple of them;
each part runs in a process of its own. To reach: under 10 s, and less than 3x in all, the stacked models included.
"""

from __future__ import annotations

import argparse
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter

import torch

from fedkin.collaborate import ComponentAttention, HeuristicMessagePassing, MessagePassing, SimilarityThreshold

PARTS = [ComponentAttention(), SimilarityThreshold(), MessagePassing(), HeuristicMessagePassing()]


def stacked(clients: int, parameters: int) -> dict[str, torch.Tensor]:
    """Two layers with about so many parameters together."""
    gen = torch.Generator().manual_seed(0)
    wide = (parameters - 1010) // 1001
    shapes = {"1.weight": (1000, wide), "1.bias": (1000,), "3.weight": (1, 1000), "3.bias": (10,)}
    return {name: torch.randn(clients, *shape, generator=gen) for name, shape in shapes.items()}


def measured(number: int, clients: int, parameters: int) -> tuple[float, float]:
    """Seconds, and the peak memory as a multiple of the stacked models."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    models = stacked(clients, parameters)
    size = sum(value.nbytes for value in models.values())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = perf_counter()
    PARTS[number].mix(models, torch.ones(clients))
    seconds = perf_counter() - start
    return seconds, 1 + (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before) / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--parameters", type=int, default=1_000_000)
    given = parser.parse_args()
    print(f"{'part':26} {'seconds':>8} {'memory':>8}")
    for number, part in enumerate(PARTS):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            seconds, memory = pool.submit(measured, number, given.clients, given.parameters).result()
        print(f"{type(part).__name__:26} {seconds:8.2f} {memory:7.2f}x", flush=True)


if __name__ == "__main__":
    main()
