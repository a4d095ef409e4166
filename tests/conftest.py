"""Small federations and engines for the tests."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from small import SIZES, Run, network
from torch import nn

from fedkin.command import cli
from fedkin.data.federation import Federation, Index
from fedkin.engines import Simulation, Stacked
from fedkin.engines.cluster.connection import QUIET, SETTINGS, load_ray, only_here, waiting_actors
from fedkin.engines.problem import task_of
from fedkin.messages import Task
from fedkin.parts import Method
from fedkin.round import State
from fedkin.round import begin as first_state

os.environ.update(SETTINGS)  # some tests import Ray before a run does

Federate = Callable[..., Federation]
Start = Callable[..., tuple[Simulation, Task, State]]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Tests run side by side, and their products are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """A shell that starts the tests in the background lets them ignore Ctrl-C, which commands they start would inherit:
    a test that ends one by it would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def ray_here() -> Iterator[Any]:
    """Ray on this machine, with cores for two actors and two runs, started once for all tests, which leave it running.

    Nobody is really given a core: Ray counts them.
    """
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    ray = load_ray()
    with only_here(ray):
        with unclosed_files():
            ray.init(num_cpus=4, object_store_memory=200_000_000, include_dashboard=False, **QUIET)
        assert ray.util.get_node_ip_address() == "127.0.0.1", "it listens to nobody else"
        with waiting_actors(ray):
            yield ray
        with unclosed_files():
            ray.shutdown()


@contextmanager
def unclosed_files() -> Iterator[None]:
    """Ray starts processes and does not close the files that it made for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


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
        told = federation.irrelevant if method.keep.needs.truth else None
        validation = {"x": engine.batching.x[:8], "y": engine.batching.y[:8]}
        task = task_of(federation, engine.network, rounds, seed)
        task = replace(task, validation=validation, irrelevant=told)
        return engine, task, first_state(method, task)

    yield build
    for engine in opened:
        engine.close()


@pytest.fixture
def begin(federate: Federate, start: Start) -> Callable[..., Run]:
    """`begin(method)`: a run of the method on the small network, in float64 and in chunks of four."""

    def build(
        method: Method,
        kind: type[Simulation] = Stacked,
        sizes: tuple[int, ...] = SIZES,
        module: nn.Module | None = None,
        federation: Federation | None = None,
        **options: Any,
    ) -> Run:
        chosen = {"dtype": torch.float64, "chunk": 4} | options
        return Run(method, *start(kind, method, federation or federate(sizes), module or network(), **chosen))

    return build


class Outcome(NamedTuple):
    """Of a command: its exit code, its standard output and its errors."""

    code: int
    out: str
    err: str


@pytest.fixture
def fedkin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """`fedkin("run", "fedavg")` calls the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fedkin", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def untouched() -> Iterator[None]:
    """The three global generators are as they were."""
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    yield
    after = torch.get_rng_state(), np.random.get_state(), random.getstate()
    assert torch.equal(before[0], after[0])
    assert all(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    assert before[2] == after[2]
