"""Why FLamby's hospitals score less alone than ours: its own procedures on heart_flamby, in plain PyTorch.

    python benchmarks/flamby_heart.py

Prints the accuracy of the four hospitals and its mean over FLamby's five seeds, beside what FLamby published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

from fedkin.data import Data, load

SEEDS = range(42, 47)
Hospital = tuple[Tensor, Tensor, Tensor, Tensor]  # x and y to train, x and y to test


def hospitals() -> list[Hospital]:
    federation = load(Data("heart_flamby"))
    x, y = federation.x, federation.y.float()
    parts = zip(federation.train.lists(), federation.test.lists(), strict=True)
    return [(x[train], y[train], x[test], y[test]) for train, test in parts]


def batches(x: Tensor, y: Tensor) -> DataLoader[tuple[Tensor, ...]]:
    return DataLoader(TensorDataset(x, y[:, None]), batch_size=4, shuffle=True)


def endless(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, ...]]:
    loader = batches(x, y)
    while True:
        yield from loader


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return 100 * float(((model(x)[:, 0] > 0).float() == y).float().mean())


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    binary_cross_entropy_with_logits(model(x), y).backward()
    optimizer.step()


def started(seed: int) -> nn.Module:
    """The model of this seed; the draws of batches begin with the same seed, as in FLamby."""
    torch.manual_seed(seed)
    model = nn.Linear(13, 1)
    torch.manual_seed(seed)
    return model


def alone_by_adam(seed: int) -> list[float]:
    """FLamby's own: Adam at 0.001, 50 epochs of batch 4, each hospital from the same start."""
    found = []
    for x, y, test_x, test_y in hospitals():
        model = started(seed)
        loader, optimizer = batches(x, y), torch.optim.Adam(model.parameters(), 0.001)
        for _ in range(50):
            for batch in loader:
                step(model, optimizer, *batch)
        found.append(accuracy(model, test_x, test_y))
    return found


def alone_by_sgd(seed: int, rate: float = 0.02) -> list[float]:
    """As ours: 1,500 steps of SGD; 0.02 with one output is 0.01 with two."""
    found = []
    for x, y, test_x, test_y in hospitals():
        model = started(seed)
        stream, optimizer = endless(x, y), torch.optim.SGD(model.parameters(), rate)
        for _ in range(1500):
            step(model, optimizer, *next(stream))
        found.append(accuracy(model, test_x, test_y))
    return found


def fedavg(seed: int, rate: float = 0.001) -> list[float]:
    """FLamby's FedAvg: SGD, 15 rounds of 100 updates, the mean by size."""
    parts = hospitals()
    common = started(seed)
    streams = [endless(x, y) for x, y, _, _ in parts]
    sizes = torch.tensor([float(len(y)) for _, y, _, _ in parts])
    for _ in range(15):
        states = []
        for stream in streams:
            model = nn.Linear(13, 1)
            model.load_state_dict(common.state_dict())
            optimizer = torch.optim.SGD(model.parameters(), rate)
            for _ in range(100):
                step(model, optimizer, *next(stream))
            states.append(model.state_dict())
        share = sizes / sizes.sum()
        mean = {k: sum(s * state[k] for s, state in zip(share, states, strict=True)) for k in states[0]}
        common.load_state_dict(mean)
    return [accuracy(common, x, y) for _, _, x, y in parts]


def main() -> None:
    published = {"alone, Adam": (74.62, 74.61, 72.50, 70.22), "FedAvg, SGD 0.001": (73.08, 71.91, 65.00, 64.00)}
    procedures: dict[str, Callable[[int], list[float]]] = {
        "alone, Adam": alone_by_adam,
        "alone, SGD 0.02": alone_by_sgd,
        "FedAvg, SGD 0.001": fedavg,
        "FedAvg, SGD 0.02": lambda seed: fedavg(seed, 0.02),
    }
    for name, procedure in procedures.items():
        found = np.array([procedure(seed) for seed in SEEDS])
        words = " ".join(f"{value:5.1f}" for value in (*found.mean(0), found.mean()))
        paper = published.get(name)
        print(f"{name:20} {words}   " + (f"published {' '.join(map(str, paper))}" if paper else ""))


if __name__ == "__main__":
    main()
