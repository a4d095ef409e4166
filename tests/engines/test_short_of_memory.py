"""A chunk that does not fit into memory is trained in halves, once; then the run ends with a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import fedkin as fk
from fedkin.core import tree
from fedkin.engines import Stacked, team
from fedkin.engines.crew import possible
from fedkin.messages import Reply, Sent
from fedkin.models import build

SIZES = (16, 8, 24, 8, 24, 16, 16, 8)
IDS = torch.arange(8)
PART = fk.train.SGD(steps=3, batch=8)
ERRORS = [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 1 bytes")]


needs_helpers = pytest.mark.skipif(not possible(), reason="helpers are forked, which needs Linux")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers are asked from the second round on, however short the rounds are."""
    monkeypatch.setattr(team, "PATIENCE", 0.0)
    monkeypatch.setattr(team, "WORTH", 0.0)
    monkeypatch.setattr(team, "AGAIN", 1)


class Short(Stacked):
    """An engine for whose chunks there is no memory where `fails` says so."""

    error: Exception = MemoryError()
    most = 8  # clients at once that fit

    def trained_chunk(self, part: Any, sent: Any, chunk: Any, *rest: Any) -> Any:
        if self.fails(len(chunk)):
            raise self.error
        return super().trained_chunk(part, sent, chunk, *rest)

    def fails(self, clients: int) -> bool:
        return clients > self.most


class InHelpers(Short):
    """An engine for which there is no memory in helpers only."""

    parent = 0

    def fails(self, clients: int) -> bool:
        return os.getpid() != self.parent


def made(kind: type[Stacked], **settings: Any) -> Stacked:
    gen = torch.Generator().manual_seed(0)
    samples = {
        str(i): (torch.randn(size, 17, generator=gen), torch.randint(0, 5, (size,), generator=gen))
        for i, size in enumerate(SIZES)
    }
    data, module = fk.from_clients(samples, test=0.0), build("dnn:9", (17,), 5, 0)
    return kind(data, module, PART, 0, chunk=8, **settings)


def played(engine: Stacked, rounds: int = 3) -> list[Reply]:
    sent = Sent(IDS, shared={"model": engine.network.model})
    return [engine.train(PART, sent, IDS, round) for round in range(1, rounds + 1)]


def same(one: list[Reply], other: list[Reply]) -> None:
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a.ids, b.ids)
        torch.testing.assert_close(tree.flat(a.upload), tree.flat(b.upload))


@pytest.mark.parametrize("error", ERRORS, ids=["memory", "torch"])
def test_half_as_many_clients_are_trained_at_once(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Short, "most", 4)
    monkeypatch.setattr(Short, "error", error)
    engine = made(Short)
    same(played(engine), played(made(Stacked)))
    assert engine.team.chunk == 4


def test_if_that_is_too_many_still_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Short, "most", 3)
    with pytest.raises(fk.BadInput, match=r"^There is not enough memory to train 4 clients at once; choose a smaller"):
        played(made(Short))


def test_another_error_is_no_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Short, "most", 4)
    monkeypatch.setattr(Short, "error", RuntimeError("no way"))
    with pytest.raises(RuntimeError, match="no way"):
        played(made(Short))


@needs_helpers
def test_of_helpers_the_run_goes_on_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InHelpers, "parent", os.getpid())
    expected = played(made(Stacked))
    engine = made(InHelpers, cores=2)
    with pytest.warns(UserWarning, match="A helper process was killed or out of memory"):
        same(played(engine), expected)
    assert engine.team.cores == 1


@needs_helpers
def test_of_the_share_of_this_process_beside_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, engine = played(made(Stacked)), made(Short, cores=2)
    engine.team.chunk = 4  # two chunks, one for each process
    found = played(engine, 1)
    engine.train(PART, Sent(IDS, shared={"model": engine.network.model}), IDS, 2)
    assert engine.team.crew is not None
    monkeypatch.setattr(Short, "most", 2)  # here; a helper has what was there when it was forked
    same([*found, *played(engine)[1:]], expected)
    assert engine.team.chunk == 2
    engine.close()


def test_the_command_says_so_and_the_run_can_go_on(fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["run", "fedavg", "--data", "digits", "--clients", "6", "--rounds", "4", "--chunk", "6", "--threads", "1"]
    assert fedkin(*words, "--out", "whole").code == 0
    before = Stacked.trained_chunk

    def short(self: Stacked, part: Any, sent: Any, chunk: Any, mine: Any, round: int, *rest: Any) -> Any:
        if round == 3 and len(chunk) > 2:
            raise MemoryError
        return before(self, part, sent, chunk, mine, round, *rest)

    monkeypatch.setattr(Stacked, "trained_chunk", short)
    outcome = fedkin(*words, "--out", "here")
    assert outcome.code == 2
    assert "There is not enough memory to train 3 clients at once; choose a smaller --chunk" in outcome.err
    assert "Traceback" not in outcome.err
    assert fedkin("run", "here", "--resume", "--chunk", "2").code == 0
    one, two = (fk.load_run(tmp_path / name / "fedavg" / "seed-0").summary for name in ("here", "whole"))
    assert one["accuracy"] == two["accuracy"]
