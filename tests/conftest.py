"""Small federations and engines for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedkin.data.federation import Federation, Index
from fedkin.engines import Simulation
from fedkin.messages import Task
from fedkin.parts import Method
from fedkin.round import State, begun

Federate = Callable[..., Federation]
Start = Callable[..., tuple[Simulation, Task, State]]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Tests run side by side, and their products are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def federate() -> Federate:
    """`federate((1, 3, 7), test=(2, 0, 4), shape=(5,), classes=3)`; clients' rows lie scattered over the samples."""

    def build(
        train: Sequence[int],
        test: Sequence[int] | int = 3,
        shape: tuple[int, ...] = (5,),
        classes: int = 3,
        seed: int = 0,
        common: int = 0,
        validation: int = 0,
    ) -> Federation:
        n = len(train)
        tests = [test] * n if isinstance(test, int) else list(test)
        sizes = [*train, *tests, *[validation] * n, common]
        draw = np.random.default_rng(seed)
        total = sum(sizes)
        x = draw.normal(size=(total, *shape))
        teacher = draw.normal(size=(int(np.prod(shape)), classes))
        y = (x.reshape(total, -1) @ teacher + draw.normal(size=(total, classes))).argmax(1)
        lists = np.split(draw.permutation(total), np.cumsum(sizes)[:-1])
        return Federation(
            name="small",
            x=torch.from_numpy(x).float(),
            y=torch.from_numpy(y),
            classes=classes,
            train=Index.of(lists[:n]),
            test=Index.of(lists[n : 2 * n]),
            validation=Index.of(lists[2 * n : 3 * n]) if validation else None,
            common=torch.from_numpy(lists[3 * n]) if common else None,
            irrelevant=torch.arange(n) % 4 == 3,
        )

    return build


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(Stacked, method, federation, module)`: an engine, the task and the server before round 1."""
    opened: list[Simulation] = []

    def build(
        kind: type[Simulation],
        method: Method,
        federation: Federation,
        module: nn.Module,
        *,
        seed: int = 0,
        rounds: int = 3,
        **options: Any,
    ) -> tuple[Simulation, Task, State]:
        engine = kind(federation, module, method.train, seed, own=method.collaborate.gives.own_model, **options)
        opened.append(engine)
        engine.prepare(method.train)
        told = federation.irrelevant if method.needs.truth else None
        task = replace(engine.task(rounds), validation={"x": engine.x[:8], "y": engine.y[:8]}, irrelevant=told)
        return engine, task, begun(method, task, seed)

    yield build
    for engine in opened:
        engine.close()


@pytest.fixture
def untouched() -> Iterator[None]:
    """The three global generators are as they were."""
    import random

    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    yield
    after = torch.get_rng_state(), np.random.get_state(), random.getstate()
    assert torch.equal(before[0], after[0])
    assert all(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    assert before[2] == after[2]
