"""The work that is measured: models, clients and batches, the same for a bare loop and for fedkin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from loops import LOOPS, Kept
from torch import Tensor, nn

import fedkin as fk
from fedkin.core import tree
from fedkin.engines import Stacked
from fedkin.messages import Sent
from fedkin.models import build
from fedkin.parts import Train

SAMPLES = 200  # a client
PATIENCE = 5.0  # seconds after which a crew that is not hired will not be
TOKENS = 90  # characters of Shakespeare's plays


@dataclass(frozen=True)
class Row:
    """A kind of work, and how many times as fast as a bare loop it is to be on one core and on two."""

    name: str
    model: str
    shape: tuple[int, ...]
    clients: int
    batch: int
    one: float
    two: float
    momentum: float = 0.0
    steps: int = 20

    @property
    def text(self) -> bool:
        return self.model == "lstm"

    @cached_property
    def federation(self) -> fk.Federation:
        return federation(self.shape, self.clients, TOKENS if self.text else None, test=0.0)

    @cached_property
    def module(self) -> nn.Module:
        """The network as fedkin trains it."""
        if self.model == "two convolutions":
            return two_convolutions()
        classes, vocabulary = (TOKENS, TOKENS) if self.text else (10, None)
        return build(self.model, self.shape, classes, 0, vocabulary)

    @cached_property
    def plain(self) -> nn.Module:
        """The network as the loop trains it: the same, but for the LSTM, which is PyTorch's own."""
        return Characters() if self.text else self.module

    def sgd(self) -> Train:
        return fk.train.SGD(batch=self.batch, steps=self.steps, momentum=self.momentum)

    @property
    def steps_in_all(self) -> int:
        return self.clients * self.steps


ROWS = (
    Row("MLR 60-10, 100 clients", "mlr", (60,), 100, 20, 50, 80),
    Row("DNN 60-20-10, 100 clients", "dnn:20", (60,), 100, 20, 45, 80),
    Row("DNN 784-100-10, 20 clients", "dnn:100", (1, 28, 28), 20, 20, 5, 9.5),
    Row("MLP 784-200-200-10 with momentum, 50 clients", "mlp:200,200", (1, 28, 28), 50, 10, 3.5, 6.5, momentum=0.5),
    Row("small CNN 1x28x28, 10 clients", "cnn", (1, 28, 28), 10, 10, 2.5, 4.5),
    Row("LeNet 3x32x32, 10 clients", "lenet", (3, 32, 32), 10, 10, 2, 3.6),
    Row("two-conv CNN 3x32x32, 10 clients", "two convolutions", (3, 32, 32), 10, 10, 1.3, 2.4),
    Row("LSTM, 80 characters, 20 clients", "lstm", (80,), 20, 10, 2, 3.6, steps=5),
)


def two_convolutions() -> nn.Module:
    """The convolutional network that is usual in federated papers: 32 and 64 channels, 512 units."""
    body = [nn.Conv2d(3, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(1600, 512), nn.ReLU(), nn.Linear(512, 10))


class Characters(nn.Module):
    """LEAF's network for the next character, of PyTorch's own layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(TOKENS, 8), nn.LSTM(8, 256, 2, batch_first=True)
        self.head = nn.Linear(256, TOKENS)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.lstm(self.embedding(x))[0][:, -1])
        return found


def federation(
    shape: tuple[int, ...], clients: int, vocabulary: int | None = None, test: float = 0.25, samples: int = SAMPLES
) -> fk.Federation:
    """Return clients with random samples: numbers, or tokens of a vocabulary."""
    gen = torch.Generator().manual_seed(0)

    def drawn() -> tuple[Tensor, Tensor]:
        if vocabulary is None:
            return torch.randn(samples, *shape, generator=gen), torch.randint(0, 10, (samples,), generator=gen)
        x, y = torch.randint(1, vocabulary, (samples, *shape), generator=gen), torch.arange(samples) % vocabulary
        return x, y

    return fk.from_clients({str(i): drawn() for i in range(clients)}, test=test, vocabulary=vocabulary)


def loop(row: Row, part: Train) -> Callable[[], None]:
    """Return what trains all clients of a row one after another, without a framework."""
    gen = torch.Generator().manual_seed(1)
    data = [(row.federation.x[rows], row.federation.y[rows]) for rows in row.federation.train.lists()]
    kept: list[Kept] = [{} for _ in data]
    client, plain = LOOPS[type(part).__name__], row.plain  # built before anything is timed

    def train() -> None:
        for (x, y), mine in zip(data, kept, strict=True):

            def draw(x: Tensor = x, y: Tensor = y) -> tuple[Tensor, Tensor]:
                rows = torch.randperm(len(x), generator=gen)[: row.batch]
                return x[rows], y[rows]

            client(plain, part, draw, mine)

    return train


class Stack:
    """The stacked engine at the work of a row. Used in a `with` block, it lets its helpers go at the end."""

    def __init__(self, row: Row, part: Train, cores: int):
        self.part, self.round = part, 0
        self.engine = Stacked(row.federation, row.module, part, 0, cores=cores)
        model = self.engine.network.model
        shared = {"model": model} | ({"control": tree.zeros(model)} if isinstance(part, fk.train.Scaffold) else {})
        self.sent = Sent(torch.arange(row.clients), shared=shared)

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, *error: Any) -> None:
        self.engine.close()

    def train(self) -> None:
        """Train all clients once, on all cores however slow they were before, since that is what is measured."""
        self.round += 1
        self.engine.team.paces.pop("helpers", None)
        self.engine.train(self.part, self.sent, self.sent.ids, self.round)

    @property
    def hired(self) -> bool:
        """Whether every core works that is to work."""
        return self.engine.team.cores == 1 or self.engine.team.crew is not None
