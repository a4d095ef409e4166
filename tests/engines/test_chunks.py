"""Clients in chunks: who trains beside whom does not matter, and finished clients are set aside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from small import SIZES, composed, equal

from fedkin import round as rounds
from fedkin.collaborate import Control, Nothing
from fedkin.core import batches, rng, tree
from fedkin.core.rows import Rows
from fedkin.core.tree import Batch, Message
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.engines.stacked import segments
from fedkin.messages import Objective
from fedkin.train import APFL, MAML, SGD, FedMix, Moreau, Prox, Scaffold, TwoStreams

WORK: dict[str, Any] = {"steps": None, "epochs": 2, "batch": 4}
PARTS = [SGD(**WORK), Prox(**WORK, momentum=0.5), MAML(**WORK, order="HF"), Moreau(**WORK), APFL(**WORK)]
PARTS += [TwoStreams(**WORK), FedMix(**WORK), Scaffold(**WORK)]


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ([5, 5, 2], [(0, 2, 3), (2, 5, 2)]),
        ([3], [(0, 3, 1)]),
        ([4, 4], [(0, 4, 2)]),
        ([7, 3, 1, 1], [(0, 1, 4), (1, 3, 2), (3, 7, 1)]),
    ],
)
def test_segments(steps: list[int], wanted: list[tuple[int, int, int]]) -> None:
    assert segments(steps) == wanted


def test_clients_with_the_most_steps_come_first(begin: Any) -> None:
    engine = begin(composed(SGD(**WORK))).engine
    chunks = engine.batching.chunks(SGD(**WORK), torch.arange(6), engine.chunk)
    assert [ids.tolist() for ids in chunks] == [[3, 4, 5, 2], [0, 1]]


def test_batches_are_keyed_by_seed_round_and_client(begin: Any, federate: Any) -> None:
    """The rows of a client are drawn from its own key, whoever is beside it; no two keys draw the same."""
    part = SGD(steps=4, batch=3)
    engine = begin(composed(part), federation=federate((30, 30, 30))).engine
    drawn = []
    for t in (1, 2):
        work = engine.batching.planned(part, t, torch.arange(3))
        for i in range(3):
            key = rng.keys(engine.seed, "batches", t, np.array([i]))
            plan = batches.planned(np.array([30]), key, t, 3, 4, None, "fresh", 1)
            own = engine.federation.train[i]
            assert torch.equal(work.rows[:, i], own[torch.from_numpy(plan.rows[0])])
            drawn.append(plan.rows[0].tolist())
    assert all(one != other for i, one in enumerate(drawn) for other in drawn[:i])


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_who_trains_beside_whom_does_not_matter(begin: Any, part: SGD) -> None:
    parts = {"collaborate": Control()} if isinstance(part, Scaffold) else {}
    run, everyone = begin(composed(part, **parts)), torch.arange(6)
    sent = run.sent(everyone)

    def trained(ids: Any, **options: Any) -> Any:
        return run.engine.train(part, sent, ids, 2, keep=False, **options)

    whole = trained(everyone)
    assert whole.ids.tolist() == everyone.tolist()
    assert whole.report["size"].tolist() == list(SIZES)
    alone = [trained(client[None]) for client in everyone]
    equal(
        tree.flat(whole.upload),
        {key: torch.cat([tree.flat(one.upload)[key] for one in alone]) for key in tree.flat(whole.upload)},
    )
    for other in (trained(everyone.flip(0)), trained(everyone[1:5]), trained(everyone, uploads=torch.tensor([1, 4]))):
        assert (other.ids.diff() > 0).all()
        equal(tree.flat(other.upload), tree.flat(whole.only(other.ids).upload))
        assert torch.equal(other.report["steps"], whole.report["steps"][other.ids])
    assert trained(everyone, uploads=torch.tensor([1, 4])).ids.tolist() == [1, 4]


@pytest.mark.parametrize("kind", [Plain, Stacked])
def test_slots_in_files_are_slots(begin: Any, kind: type[Simulation]) -> None:
    found = []
    for budget in (0, 2**20):
        run = begin(composed(Prox(**WORK), collaborate=Nothing(), trains="everyone"), kind, budget=budget)
        assert isinstance(run.engine.slots, Rows) == (budget == 0)
        run.round()
        run.round()
        found.append(tree.flat(run.engine.slots.read(torch.arange(6))))
    assert found[0].keys() == found[1].keys()
    assert all(torch.equal(value, found[1][key]) for key, value in found[0].items())


@dataclass(frozen=True)
class Failing(SGD):
    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        raise ValueError("no")


def test_a_failing_client_is_named(begin: Any, federate: Any) -> None:
    federation = replace(federate(SIZES), clients=tuple("abcdef"))
    run = begin(composed(Failing(**WORK)), Plain, federation=federation)
    with pytest.raises(RuntimeError, match=r"client [a-f], round 1, part Failing: ValueError: no"):
        rounds.play(run.method, run.task, run.engine, run.state)
