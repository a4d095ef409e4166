"""How much faster the stacked engine is than a bare PyTorch loop on the same work, measured in one run.

The loop is what one would write without a framework: one client after another, each with a copy of the model,
`torch.optim.SGD`, batches by index. Both sides train the same clients from the same model on the same number of
batches, alternately, with the same threads; the least time of each side counts, because other load only adds time.

    OMP_NUM_THREADS=1 python benchmarks/speed.py [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse
import copy
import json
import os
from time import perf_counter

import torch
import torch.nn.functional as F
from torch import nn

import fedkin as fk
from fedkin.engines import Stacked
from fedkin.messages import Sent
from fedkin.models import build

# name: (model, shape of a sample, clients, batch, steps, momentum, the ratio to reach)
WORK = {
    "MLR 60-10, 100 clients": ("mlr", (60,), 100, 20, 20, 0.0, 20.0),
    "DNN 60-20-10, 100 clients": ("dnn:20", (60,), 100, 20, 20, 0.0, 20.0),
    "DNN 784-100-10, 20 clients": ("dnn:100", (1, 28, 28), 20, 20, 20, 0.0, 2.5),
    "MLP 784-200-200-10, 10 clients": ("mlp:200,200", (1, 28, 28), 10, 10, 20, 0.0, 2.0),
    "the same MLP with momentum": ("mlp:200,200", (1, 28, 28), 10, 10, 20, 0.5, 2.0),
    "CNN 1x28x28, 10 clients": ("cnn", (1, 28, 28), 10, 10, 20, 0.0, 1.0),
    "LeNet 3x32x32, 10 clients": ("lenet", (3, 32, 32), 10, 10, 20, 0.0, 1.0),
    "two-conv CNN 3x32x32, 10 clients": ("benchmarks", (3, 32, 32), 10, 10, 20, 0.0, 1.0),
}
SAMPLES = 200  # a client


def two_convolutions() -> nn.Module:
    """The convolutional network that is usual in federated papers: 32 and 64 channels, 512 units."""
    body = [nn.Conv2d(3, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(1600, 512), nn.ReLU(), nn.Linear(512, 10))


def federation(shape: tuple[int, ...], clients: int) -> fk.Federation:
    gen = torch.Generator().manual_seed(0)
    samples = {
        str(i): (torch.randn(SAMPLES, *shape, generator=gen), torch.randint(0, 10, (SAMPLES,), generator=gen))
        for i in range(clients)
    }
    return fk.from_clients(samples, test=0.0)


def loop(module: nn.Module, fed: fk.Federation, batch: int, steps: int, momentum: float) -> float:
    """Seconds for one model after another."""
    gen = torch.Generator().manual_seed(1)
    data = [(fed.x[rows], fed.y[rows]) for rows in fed.train.lists()]
    start = perf_counter()
    for x, y in data:
        model = copy.deepcopy(module)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.02, momentum=momentum)
        for _ in range(steps):
            rows = torch.randperm(len(x), generator=gen)[:batch]
            optimiser.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()
    return perf_counter() - start


def measured(name: str, repeats: int) -> dict[str, float]:
    spec, shape, clients, batch, steps, momentum, wanted = WORK[name]
    fed = federation(shape, clients)
    module = two_convolutions() if spec == "benchmarks" else build(spec, shape, 10, 0)
    part = fk.train.SGD(batch=batch, steps=steps, momentum=momentum)
    engine = Stacked(fed, module, part, 0)
    sent = Sent(torch.arange(clients), shared={"model": engine.network.model})
    ours, theirs = [], []
    for turn in range(repeats + 1):
        start = perf_counter()
        engine.train(part, sent, sent.ids, turn + 1)
        ours.append(perf_counter() - start)
        theirs.append(loop(module, fed, batch, steps, momentum))
    per_step = 1e6 / clients / steps
    stacked, plain = min(ours[1:]) * per_step, min(theirs[1:]) * per_step
    return {"loop_us": plain, "stacked_us": stacked, "ratio": plain / stacked, "wanted": wanted, "chunk": engine.chunk}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    found = {}
    if not arguments.json:
        print(f"microseconds a client-step, {torch.get_num_threads()} thread(s), least of {arguments.repeats}")
        print(f"{'work':34} {'loop':>9} {'stacked':>9} {'ratio':>7} {'wanted':>7} {'chunk':>6}")
    for name in WORK:
        row = found[name] = measured(name, arguments.repeats)
        if not arguments.json:
            numbers = f"{row['loop_us']:9.0f} {row['stacked_us']:9.1f} {row['ratio']:6.1f}x {row['wanted']:6.1f}x"
            print(f"{name:34} {numbers} {row['chunk']:6.0f}", flush=True)
    if arguments.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
