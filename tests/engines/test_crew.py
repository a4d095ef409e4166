"""Cores change how long training takes and nothing else: what helpers train is what one process would, bit for bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import fedkin as fk
from fedkin.core import tree
from fedkin.engines import Simulation, Stacked, team
from fedkin.engines.crew import Crew, possible
from fedkin.messages import Reply, Sent
from fedkin.models import build

pytestmark = pytest.mark.skipif(not possible(), reason="helpers are forked, which needs Linux")

RAGGED = (31, 7, 20, 3, 26, 11, 18)  # clients differ in steps, and batches are not full
EVEN = (32, 8, 24, 8, 24, 16, 16)  # all batches of eight are full, so that chunks may be cut


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers are asked from the second round on, however short the rounds are."""
    monkeypatch.setattr(team, "PATIENCE", 0.0)
    monkeypatch.setattr(team, "WORTH", 0.0)
    monkeypatch.setattr(team, "AGAIN", 1)


@pytest.fixture
def engines() -> Iterator[Any]:
    made: list[Simulation] = []

    def build_engine(
        module: nn.Module, shape: tuple[int, ...], part: fk.Train, sizes: tuple[int, ...] = EVEN, **settings: Any
    ) -> Stacked:
        gen = torch.Generator().manual_seed(0)
        samples = {
            str(i): (torch.randn(size, *shape, generator=gen), torch.randint(0, 5, (size,), generator=gen))
            for i, size in enumerate(sizes)
        }
        made.append(Stacked(fk.from_clients(samples, test=0.0), module, part, 0, **settings))
        return made[-1]  # type: ignore[return-value]

    yield build_engine
    for engine in made:
        engine.close()


def rounds(engine: Stacked, part: fk.Train, number: int = 3) -> list[Reply]:
    """Each client is sent a model of its own in odd rounds, and some are sent nothing in even ones."""
    ids = torch.arange(7)
    replies = []
    for round in range(1, number + 1):
        own = tree.mapped(lambda v: torch.stack([v + 0.01 * i for i in ids]), engine.network.model)
        some = ids if round % 2 or not engine.slots.first else ids[::2].clone()
        replies.append(engine.train(part, Sent(some, own={"model": tree.rows(own, some)}), ids, round))
    return replies


def same(one: list[Reply], other: list[Reply]) -> bool:
    return all(
        torch.equal(a.ids, b.ids) and all(torch.equal(a.upload["model"][k], v) for k, v in b.upload["model"].items())
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("spec", ["mlr", "dnn:9", "cnn", "lenet"])
@pytest.mark.parametrize(("own", "sizes", "chunk"), [(False, EVEN, 7), (True, EVEN, 3), (True, RAGGED, 2)])
def test_helpers_train_what_one_process_would(
    engines: Any, spec: str, own: bool, sizes: tuple[int, ...], chunk: int
) -> None:
    shape = (17,) if spec in ("mlr", "dnn:9") else (1, 28, 28)
    part = fk.train.Prox(epochs=2, steps=None, batch=8, momentum=0.5, lam=0.1)
    settings = {"module": build(spec, shape, 5, 0), "shape": shape, "part": part, "own": own, "sizes": sizes}
    settings["chunk"] = chunk
    alone, helped = engines(**settings), engines(**settings, cores=3)
    assert same(rounds(alone, part), rounds(helped, part))
    assert helped.team.crew is not None
    assert alone.team.crew is None
    left, right = alone.slots.read(torch.arange(7)), helped.slots.read(torch.arange(7))
    assert all(torch.equal(left[slot][k], right[slot][k]) for slot in left for k in left[slot])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_helpers_train_an_lstm_as_one_process_would(engines: Any, dtype: torch.dtype) -> None:
    """Samples are texts of five tokens, embedded already. In float32 clients come one by one, in float64 together."""
    part = fk.train.SGD(steps=3, batch=8, momentum=0.5)
    settings = {"module": build("lstm:6,2,3", (5,), 5, 0, 9), "shape": (5, 3), "part": part, "dtype": dtype}
    alone, helped = engines(**settings, chunk=7), engines(**settings, chunk=7, cores=3)
    assert same(rounds(alone, part), rounds(helped, part))
    assert helped.team.crew is not None


def test_what_a_helper_gave_is_not_overwritten_by_its_next_job(engines: Any) -> None:
    part = fk.train.SGD(steps=3, batch=8)
    settings = {"module": build("dnn:9", (17,), 5, 0), "shape": (17,), "part": part, "chunk": 1}
    alone, helped = engines(**settings), engines(**settings, cores=2)
    helped.team.most = 2  # so that a helper has several jobs in a round
    assert same(rounds(alone, part), rounds(helped, part))
    assert helped.team.crew is not None


def test_replies_of_one_helper_alone_are_not_overwritten_by_its_next_job(engines: Any) -> None:
    part = fk.train.SGD(steps=3, batch=8)
    helped = engines(module=build("dnn:9", (17,), 5, 0), shape=(17,), part=part, cores=2)
    rounds(helped, part, 2)
    asked = helped.team.divided(helped.batching.steps(part, torch.arange(7)), torch.arange(7), True)
    shares = helped.team.taken(asked)
    theirs = torch.cat(shares[1]).sort().values  # what the helper trains
    sent = Sent(torch.arange(7), shared={"model": helped.network.model})
    first = helped.train(part, sent, torch.arange(7), 3, uploads=theirs)
    before = tree.mapped(torch.clone, first.upload["model"])
    helped.train(part, sent, torch.arange(7), 4, uploads=theirs)
    assert torch.equal(first.ids, theirs)
    assert all(torch.equal(value, first.upload["model"][name]) for name, value in before.items())


def test_helpers_that_make_rounds_slower_are_left_out_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where other work leaves no core free."""
    for name, value in {"PATIENCE": 0.3, "WORTH": 0.002, "AGAIN": 3}.items():
        monkeypatch.setattr(team, name, value)
    one = team.Team(None, 10, 2, 0, True)  # type: ignore[arg-type]
    assert not one.helps(100), "nothing is known yet"
    one.seconds, one.paces = 1.0, {"alone": 1e-3}
    assert one.helps(100)
    one.paces["helpers"] = 0.6e-3
    assert one.helps(100)
    one.paces["helpers"] = 2e-3
    assert [one.helps(100) for _ in range(3)] == [False, False, True]
    one.costs = torch.ones(5, dtype=torch.int64).numpy()
    one.timed("helpers", team.perf_counter() - 2.0, [[torch.arange(5)]])
    assert one.paces["helpers"] == pytest.approx(0.4, rel=0.1), "only the new try counts"
    assert [one.helps(100) for _ in range(2)] == [False, False]


def test_a_killed_helper_is_done_without(engines: Any) -> None:
    part = fk.train.SGD(steps=3, batch=8)
    settings = {"module": build("dnn:9", (17,), 5, 0), "shape": (17,), "part": part}
    alone, helped = engines(**settings), engines(**settings, cores=2)
    expected = rounds(alone, part)
    rounds(helped, part, 2)
    os.kill(helped.team.crew.helpers[0].pid, signal.SIGKILL)
    with pytest.warns(UserWarning, match="helper process was killed"):
        found = rounds(helped, part)
    assert same(expected, found)
    assert helped.team.cores == 1


def test_an_error_in_a_helper_is_raised_in_the_run() -> None:
    def work(job: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(f"no {job['about']}")

    crew = Crew(1, work)
    try:
        crew.helpers[0].give({"about": "way", "x": {"a": torch.ones(3)}})
        with pytest.raises(ValueError, match="no way"):
            crew.helpers[0].take()
    finally:
        crew.close()


def test_helpers_end_with_their_run(engines: Any) -> None:
    part = fk.train.SGD(steps=3, batch=8)
    helped = engines(build("mlr", (17,), 5, 0), (17,), part, cores=2)
    rounds(helped, part)
    pid = helped.team.crew.helpers[0].pid
    helped.team.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
