"""One round: who receives, trains and uploads, what is counted, and what happens to replies that do not come."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from small import NUMBERS, SIZES, composed, equal, network
from torch import Tensor

import fedkin as fk
from fedkin import round as rounds
from fedkin.collaborate import Control, Mean, MeanBefore, Nothing
from fedkin.core import tree
from fedkin.core.tree import Message, Model
from fedkin.engines import Simulation, Stacked
from fedkin.keep.oracle import Oracle
from fedkin.keep.relevance import UpdateDistance
from fedkin.messages import Reply, Sent, Slot, Task, Work
from fedkin.parts import Collaborate, Method, Train
from fedkin.select import Active, Uniform
from fedkin.train import SGD, Prox, Scaffold

WORK: dict[str, Any] = {"eta": 0.1, "steps": None, "epochs": 2, "batch": 4}
EVERYONE = list(range(6))
ALL = Uniform(count=6)


# who does what, and what it costs


def everyone(**parts: Any) -> dict[str, Any]:
    return {"trains": "everyone", "select": Uniform(count=2)} | parts


CASES: dict[str, tuple[Method, int, int, tuple[float, float]]] = {  # who receives, who trains; models up and down
    "the selected": (composed(SGD(**WORK)), 4, 4, (4, 4)),
    "two models each way": (composed(Scaffold(**WORK), collaborate=Control()), 4, 4, (8, 8)),
    "everyone trains": (composed(Prox(**WORK), collaborate=MeanBefore(), **everyone()), 2, 6, (2, 2)),
    "everyone receives": (composed(SGD(**WORK), receives="everyone", **everyone()), 6, 6, (2, 6)),
    "nothing is exchanged": (composed(SGD(**WORK), collaborate=Nothing()), 0, 4, (0, 0)),
}


@pytest.mark.parametrize("case", CASES)
def test_who_receives_trains_and_uploads(begin: Any, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    method, receivers, trainers, traffic = CASES[case]
    seen: list[tuple[list[int], list[int], list[int]]] = []
    train = Stacked.train

    def listening(self: Any, part: Train, sent: Sent, ids: Tensor, *rest: Any, **more: Any) -> Reply:
        reply = train(self, part, sent, ids, *rest, **more)
        seen.append((sent.ids.tolist(), ids.tolist(), reply.ids.tolist()))
        return reply

    monkeypatch.setattr(Stacked, "train", listening)
    run = begin(method)
    for _ in range(2):
        log = run.round()
        selected = log.selected.tolist()
        who = {len(selected): selected, 6: EVERYONE, 0: []}
        uploads = selected if method.collaborate.gives.replies else []
        assert seen.pop() == (who[receivers], who[trainers], uploads)
        assert log.replied == len(uploads)
        assert (log.traffic.uploads, log.traffic.downloads) == traffic
        assert (log.traffic.bytes_up, log.traffic.bytes_down) == tuple(8 * NUMBERS * count for count in traffic)


def test_everyone_trains_and_the_selected_count(begin: Any) -> None:
    run = begin(composed(SGD(**WORK), receives="everyone", **everyone()))
    for t in (1, 2):
        before = run.model
        log = run.round()
        equal(run.model, run.mean(before, t, log.selected.tolist()))


@dataclass(frozen=True)
class Counting(SGD):
    """Counts its rounds in a single number, which it keeps and sends."""

    def slots(self, model: Model, own: bool) -> Message:
        return {"count": {"value": next(iter(model.values())).new_zeros(())}}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        count = {"count": {"value": mine["count"]["value"] + 1}}
        return count, {"model": carry["model"]} | count


@dataclass(frozen=True)
class Counted(Mean):
    """Remembers the last number of each client, and sends it its own."""

    def init(self, task: Task) -> Slot:
        return {"model": task.model, "counts": torch.zeros(task.n, dtype=torch.float64)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, {"model": slot["model"]}, {"count": {"value": slot["counts"][ids]}}), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        counts = slot["counts"].index_copy(0, reply.ids, reply.upload["count"]["value"])
        return super().receive(slot, task, sent, reply, kept) | {"counts": counts}


def test_private_slots_persist_and_single_numbers_travel(begin: Any) -> None:
    run = begin(composed(Counting(**WORK), collaborate=Counted()))
    times = torch.zeros(6, dtype=torch.float64)
    for _ in range(3):
        log = run.round()
        times[log.selected] += 1
        assert torch.equal(run.engine.slots.values["count"]["value"], times)
        assert torch.equal(run.state.collaborate["counts"], times)
        assert log.traffic.uploads == log.traffic.downloads == pytest.approx(4 * (NUMBERS + 1) / NUMBERS)


@dataclass(frozen=True)
class Shows(Prox):
    """Shows another model than the one it is judged by: twice its own."""

    shared: ClassVar[str] = "shown"

    def slots(self, model: Model, own: bool) -> Message:
        return super().slots(model, own) | {"shown": tree.mapped(lambda value: 2 * value, model)}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        kept, upload = super().end(carry, sent, mine, work)
        return kept | {"shown": tree.mapped(lambda value: 2 * value, carry["model"])}, upload


@pytest.mark.parametrize("who", ["selected", "everyone"])
@pytest.mark.parametrize("part", [SGD, Shows])
def test_what_clients_show_is_mixed_before_they_train(begin: Any, part: type[SGD], who: str) -> None:
    run = begin(composed(part(**WORK), collaborate=MeanBefore(), trains=who))
    for t in (1, 2):
        before = tree.mapped(torch.clone, run.engine.slots.values[part.shared])
        log, seen = run.seen_round()
        ids, held = log.selected, tree.mapped(torch.clone, before)
        mean = tree.weighted(tree.rows(before, ids), run.task.sizes[ids].double())
        for name, value in mean.items():
            held[name][ids] = value
        equal(seen.received, held)
        found = seen.scores
        assert set(found) == {"recv", "post", "global"}
        direct = run.engine.score(held, torch.arange(6), "test")
        torch.testing.assert_close(found["recv"].loss, direct.loss)
        if part is SGD:
            trainers = EVERYONE if who == "everyone" else ids.tolist()
            trained = [tree.row(held, i) for i in EVERYONE]
            trained = [run.trained(model, t, i) if i in trainers else model for i, model in enumerate(trained)]
            equal(run.engine.slots.values["model"], tree.stacked(trained))


# whose update counts


@pytest.mark.parametrize("weights", ["size", "uniform"])
def test_only_the_kept_count(begin: Any, weights: Any) -> None:
    """The oracle keeps all but client 3."""
    run = begin(composed(SGD(**WORK), select=ALL, keep=Oracle(), collaborate=Mean(weights)))
    before = run.model
    log = run.round()
    assert (log.counted, log.replied) == (5.0, 6)
    assert log.weights.tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    kept = [i for i in EVERYONE if i != 3]
    equal(run.model, run.mean(before, 1, kept, None if weights == "size" else [1.0] * 5))


def test_nobody_kept_leaves_the_model(begin: Any, federate: Any) -> None:
    federation = replace(federate(SIZES), irrelevant=torch.ones(6, dtype=torch.bool))
    run = begin(composed(SGD(**WORK), select=ALL, keep=Oracle()), federation=federation)
    before = run.model
    log = run.round()
    assert (log.counted, log.replied) == (0.0, 6)
    equal(run.model, before)


# replies that do not come


def losing(lost: Callable[[int, int], bool]) -> type[Simulation]:
    """An engine on which the reply of client i in round t is lost if `lost(t, i)`."""

    class Losing(Stacked):
        def train(self, part: Train, sent: Sent, ids: Tensor, round: int, *rest: Any, **more: Any) -> Reply:
            reply = super().train(part, sent, ids, round, *rest, **more)
            return reply.only(torch.tensor([not lost(round, i) for i in reply.ids.tolist()], dtype=torch.bool))

    return Losing


def test_fewer_replies_than_selected(begin: Any) -> None:
    run = begin(composed(SGD(**WORK), select=ALL), losing(lambda t, i: i in (0, 3)))
    before = run.model
    log = run.round()
    assert (len(log.selected), log.replied, log.counted, log.dropped) == (6, 4, 4.0, [])
    assert log.weights.isnan().tolist() == [True, False, False, True, False, False]
    assert (log.traffic.uploads, log.traffic.downloads) == (4.0, 6.0)
    equal(run.model, run.mean(before, 1, [1, 2, 4, 5]))


def test_no_reply_is_a_skipped_round(begin: Any) -> None:
    method = composed(SGD(**WORK), select=Active(fraction=0.5), keep=UpdateDistance())
    run = begin(method, losing(lambda t, i: t == 2))
    run.round()
    before = run.state
    log = run.round()
    assert (log.replied, log.counted, log.dropped, log.traffic.uploads) == (0, 0.0, [], 0.0)
    assert run.state.round == 2
    for name in ("select", "keep", "collaborate"):
        one, other = tree.flat(getattr(before, name)), tree.flat(getattr(run.state, name))
        assert set(one) == set(other)
        assert all(torch.equal(value.nan_to_num(), other[key].nan_to_num()) for key, value in one.items())
    log = run.round()
    assert log.replied == 3
    assert run.state.keep["judged"].sum() == 6
    assert not torch.equal(run.model["0.weight"], before.collaborate["model"]["0.weight"])


@dataclass(frozen=True)
class Broken(SGD):
    """Clients with `size` samples upload something that is not a number, and would keep it."""

    size: int = 7
    what: str = "nan"

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        kept, upload = super().end(carry, sent, mine, work)
        bad = torch.where(work.size == self.size, float(self.what), 0.0)
        spoiled = {name: tree.mapped(lambda value: value + bad, model) for name, model in upload.items()}
        return {name: spoiled[name] for name in kept}, spoiled


@pytest.mark.parametrize("what", ["nan", "inf"])
def test_a_client_that_uploads_nonsense_is_dropped(begin: Any, what: str) -> None:
    run = begin(composed(Broken(**WORK, what=what), select=ALL))
    before, others = run.model, [0, 1, 3, 4, 5]
    log = run.round()
    assert (log.dropped, log.replied, log.counted) == ([2], 5, 5.0)
    equal(run.model, run.mean(before, 1, others))
    result = fk.run(fk.Experiment(run.method, run.engine.federation, network(), 2, evaluate_every=1))
    assert [line["dropped"] for line in result.lines] == [[2]] * 2
    assert result.summary["dropped"] == 2
    assert all(value.isfinite().all() for value in result.models["global"].values())
    assert result.summary["accuracy"]["global"]["macro"]["last"] is not None


def test_all_upload_nonsense(begin: Any) -> None:
    run = begin(composed(Broken(**WORK, size=4), select=ALL), sizes=(4, 4, 4))
    before = run.model
    log = run.round()
    assert (log.dropped, log.replied, log.counted) == ([0, 1, 2], 0, 0.0)
    equal(run.model, before)


@pytest.mark.parametrize("collaborate", [MeanBefore(), Nothing()])
def test_a_broken_client_keeps_what_it_had_and_breaks_nobody(begin: Any, collaborate: Collaborate) -> None:
    """Where nothing is exchanged it is dropped too, because its training is what broke."""
    run = begin(composed(Broken(**WORK), select=ALL, collaborate=collaborate))
    first = tree.row(run.engine.slots.values["model"], 2)
    for _ in range(2):
        log = run.round()
        assert log.dropped == [2]
        assert log.replied == (5 if collaborate.gives.replies else 0)
    equal(tree.row(run.engine.slots.values["model"], 2), first)
    assert tree.finite(run.engine.slots.values["model"]).all()


def test_messages_of_a_round_do_not_live_through_the_next(begin: Any) -> None:
    run = begin(composed(SGD(**WORK)))
    uploads: list[Any] = []

    class Watching:
        def sent(self, state: Any, sent: Any) -> None:
            assert not any(upload() is not None for upload in uploads)

        def played(self, state: Any, log: Any) -> None:
            uploads.append(weakref.ref(log.reply))

    rounds.loop(run.method, run.task, run.engine, run.state, Watching())
    assert len(uploads) == run.task.rounds
