"""About how long a preset takes on this machine: the arithmetic of its runs, over a rate that is measured here."""

from __future__ import annotations

import math
import time
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedkin import models
from fedkin.data import Data, from_clients
from fedkin.data.catalogue import CATALOGUE
from fedkin.keep import Relevance
from fedkin.methods.fedavg import fedavg
from fedkin.parts import Train
from fedkin.presets.preset import Preset
from fedkin.runs.experiment import Experiment
from fedkin.runs.session import run

SAMPLES = {  # in all
    "heart_flamby": 740,
    "synthetic": 205_795,
    "digits": 1_797,
    "mnist": 70_000,
    "fashion_mnist": 70_000,
    "emnist": 131_600,
    "cifar10": 60_000,
    "cifar100": 60_000,
    "shakespeare": 3_873_267,
    "sentiment140": 90_110,
}
SHAPES = {
    "synthetic": (60,),
    "heart_flamby": (13,),
    "digits": (1, 8, 8),
    "cifar10": (3, 32, 32),
    "cifar100": (3, 32, 32),
    "heart": (20,),
}
ROLES = 980  # of Shakespeare's plays
GRADIENTS = {"TwoStreams": 2, "APFL": 3, "MAML": 2, "FedMix": 3}  # in a step; one in the others
AROUND, LOADING = 0.005, 1.0  # seconds of a round and of a run besides: selection, mixing, records; data


def seconds(preset: Preset) -> float:
    """About how many seconds of one core a preset takes here."""
    return sum(of_run(experiment) for _, experiment in preset.experiments())


def of_run(experiment: Experiment) -> float:
    """About how many seconds a run takes: training, what is scored, what a filter inverts, and what is around it."""
    data, method, rounds = experiment.data, experiment.method, experiment.rounds
    assert isinstance(data, Data)
    n, size = clients(data)
    train = method.train
    steps = train.steps or (train.epochs or 1) * math.ceil(size / train.batch)
    task: Any = SimpleNamespace(n=n, rounds=rounds)
    trained = n if method.trains == "everyone" else n * method.select.share(task)
    scored = rounds / (experiment.evaluate_every or 10)
    kinds = experiment.score or ("post", "global")
    tuned = scored * n if method.finetunes and "post" in kinds else 0.0  # clients that train to be scored
    forward, fast = forward_pass(str(experiment.model), data.dataset), rate(str(experiment.model))
    step = max(3 * forward * min(train.batch, size) / fast, least_step()) * gradients(train)
    tests = 10_000 if data.holdout == "official" else data.test * size / (1 - data.test) * n
    training = (rounds * trained + tuned) * steps * step
    scoring = 2 * scored * len(kinds) * max(tests * forward / fast, n * least_step())
    return LOADING + rounds * AROUND + training + scoring + inverted(experiment, trained, forward / fast)


def inverted(experiment: Experiment, replies: float, sample: float) -> float:
    """The seconds in which a filter inverts updates; `sample` is a forward pass of one sample."""
    keep, data = experiment.method.keep, experiment.data
    if not isinstance(keep, Relevance):
        return 0.0
    assert isinstance(data, Data)
    dummies = CATALOGUE[data.dataset].classes * keep.samples
    return experiment.rounds * replies * keep.iterations * max(9 * dummies * sample, least_step())


def gradients(train: Train) -> int:
    """How many gradients a step takes."""
    return int(getattr(train, "K", 1)) * GRADIENTS.get(type(train).__name__, 1)


def clients(data: Data) -> tuple[int, float]:
    """About how many clients there are, and how many training samples each has."""
    usual = {"heart": 4, "heart_flamby": 4, "shakespeare": ROLES, "sentiment140": 1_503}
    n = 10 if str(data.irrelevant).startswith("odd_even") else data.clients or usual.get(data.dataset, 100)
    whole = SAMPLES.get(data.dataset, 1_000) * (1 - data.test)
    natural = whole / usual.get(data.dataset, n)
    return n, max(1.0, min(natural, data.samples or natural))


@cache
def least_step() -> float:
    """The seconds of a step of the smallest network, which is not arithmetic but all that is around it."""
    steps, n = 20, 50
    return spent("mlr", (60,), n, steps) / (n * steps)


@cache
def forward_pass(model: str, dataset: str) -> float:
    """The floating-point operations of one sample's forward pass."""
    text = dataset in ("shakespeare", "sentiment140")
    shape, classes = (80,) if text else SHAPES.get(dataset, (1, 28, 28)), 10
    module = models.build(model, shape, classes, 0, 90 if text else None).to("meta")
    sample = torch.zeros((1, *shape), dtype=torch.long if text else torch.float32, device="meta")
    with FlopCounterMode(display=False) as counter:
        module(sample)
    return float(counter.get_total_flops()) or 2.0 * sum(value.numel() for value in module.parameters())


@cache
def rate(model: str) -> float:
    """The operations a second of training like this model's: dense networks, or networks that convolve or recur."""
    dense = model.partition(":")[0] in ("mlr", "dnn", "mlp")
    return measured("dnn:100", (784,)) if dense else measured("lenet", (3, 32, 32))


@cache
def measured(model: str, shape: tuple[int, ...]) -> float:
    """Measure the operations a second of training such a network."""
    n, steps = 10, 5
    forward = forward_pass(model, "cifar10" if len(shape) == 3 else "mnist")
    return n * steps * 20 * 3 * forward / spent(model, shape, n, steps)


def spent(model: str, shape: tuple[int, ...], n: int, steps: int) -> float:
    """Measure the seconds of a round in which n clients take so many steps with batches of 20.

    It is the difference between runs of one round and of five, after a first run in which all is slow.
    """
    draw = torch.Generator().manual_seed(0)
    samples = {str(i): (torch.randn(40, *shape, generator=draw), torch.arange(40) % 10) for i in range(n)}
    data, method, taken = from_clients(samples), fedavg(count=n, steps=steps), []
    for rounds in (1, 1, 5, 1, 5):
        one = Experiment(method, data, model, rounds, evaluate_every=rounds, score=("global",), threads=1)
        start = time.process_time()  # other processes do not count
        run(one, warn=lambda _: None)
        taken.append(time.process_time() - start)
    difference = min(taken[2], taken[4]) - min(taken[1], taken[3])
    return difference / 4 if difference > 0 else taken[4] / 5
