"""What every part must satisfy in a round: it keeps shapes, changes none of its inputs, leaves the global generators
alone, knows clients by what they send, and survives replies that are lost or broken."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
import pytest
import torch
from registry import AROUND, KINDS, METHODS, around, short, within
from small import composed, network, seen_round
from torch import Tensor

from fedkin import evaluate
from fedkin import round as rounds
from fedkin.collaborate import Mean
from fedkin.core import tree
from fedkin.core.rng import generator
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.messages import Reply, Sent, Task
from fedkin.parts import Collaborate, Keep, Method, Select, Train
from fedkin.select import Uniform
from fedkin.train import SGD

SIZES = (1, 8, 4, 11, 7, 3, 10, 6, 2)
N = len(SIZES)
VERBS = {
    Select: ("init", "__call__", "observe", "share", "log", "marks"),
    Train: ("slots", "prepare", "meet", "begin", "step", "end", "personal_model", "rate", "reach", "descents"),
    Keep: ("init", "__call__", "log", "marks"),
    Collaborate: ("init", "send", "receive", "model", "log"),
}


@pytest.fixture
def opened(federate: Any, start: Any) -> Any:
    def build(kind: type[Simulation], method: Method) -> tuple[Simulation, Task, rounds.State]:
        begun: tuple[Simulation, Task, rounds.State] = start(
            kind, method, federate(SIZES), network(), dtype=torch.float64, chunk=4
        )
        return begun

    return build


def held(value: Any) -> Any:
    """A copy of every tensor in a structure; generators and functions are left out, they may be used."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: held(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [held(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: held(getattr(value, field.name)) for field in fields(value)}
    return None


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one.nan_to_num(), other.nan_to_num()) and one.dtype == other.dtype
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return one == other


def generators() -> list[Any]:
    _, state, place, *_ = np.random.get_state()
    return [torch.get_rng_state(), torch.from_numpy(np.array(state, dtype=np.int64)), place, random.getstate()]


def guarded(f: Any, calls: list[str]) -> Any:
    """`f`, which must leave its arguments and the global generators alone."""

    @wraps(f)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        before, lots = held([list(arguments), named]), generators()
        result = f(self, *arguments, **named)
        where = f"{type(self).__name__}.{f.__name__}"
        assert same(before, held([list(arguments), named])), f"{where} changes what it is given"
        assert same(lots, generators()), f"{where} uses a global generator"
        calls.append(f.__name__)
        return result

    return call


def guard(method: Method, patch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    for part in (method.select, method.train, method.keep, method.collaborate):
        base = next(base for base in VERBS if isinstance(part, base))
        for verb in VERBS[base]:
            f = getattr(type(part), verb)
            if f is not Train.personal_model:  # a round asks whether a part has its own
                patch.setattr(type(part), verb, guarded(f, calls))
    return calls


def test_every_part_is_in_a_method_that_is_tried() -> None:
    tried = {part.label() for method in AROUND.values() for part in within(method)}
    assert {label for label in KINDS if around(label) is not None} <= tried


@pytest.mark.parametrize("name", AROUND)
def test_a_part_changes_nothing_it_is_given(name: str, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    method = AROUND[name]
    calls = guard(method, monkeypatch)
    engine, task, state = opened(Plain, method)
    for _ in range(2):
        state, _, _ = seen_round(method, task, engine, state)
    wanted = {"init", "__call__", "send", "slots", "begin", "step", "end"}
    assert wanted <= set(calls)


def test_the_guard_sees_a_change_and_a_global_draw(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail."""
    method = composed(SGD(steps=2, batch=4))

    def careless(self: Any, slot: Any, task: Any, sent: Any, reply: Reply, kept: Tensor) -> Any:
        kept.mul_(0.5)
        return slot

    def lucky(self: Any, slot: Any, task: Task, round: int, gen: torch.Generator) -> Any:
        return torch.randperm(task.n)[:3].sort().values, slot

    for kind, verb, f, sentence in ((Mean, "receive", careless, "changes"), (Uniform, "__call__", lucky, "global")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, verb, f)
            guard(method, patch)
            engine, task, state = opened(Plain, method)
            with pytest.raises(AssertionError, match=sentence), torch.random.fork_rng(devices=[]):
                rounds.play(method, task, engine, state)


def fits(stack: dict[str, Tensor], like: dict[str, Tensor], rows: int | None) -> None:
    assert list(stack) == list(like)
    for name, value in stack.items():
        assert value.shape == (like[name].shape if rows is None else (rows, *like[name].shape))
        assert value.dtype == like[name].dtype
        assert value.isfinite().all()


def sent_of(model: dict[str, Tensor], some: dict[str, Tensor], method: Method) -> dict[str, Tensor]:
    """The whole model, or where only some layers are sent, these, which are fewer."""
    if method.collaborate.gives.whole_model:
        return model
    assert 0 < len(some) < len(model)
    return {name: value for name, value in model.items() if name in some}


def finite(state: rounds.State, engine: Simulation) -> None:
    everything = {"collaborate": state.collaborate, "clients": engine.slots.values}
    for name, value in tree.flat(everything).items():
        assert not value.isnan().any(), name


@pytest.mark.parametrize("name", AROUND)
def test_shapes(name: str, opened: Any) -> None:
    method = AROUND[name]
    engine, task, state = opened(Stacked, method)
    slots = {name: value.shape for name, value in tree.flat(engine.slots.values).items()}
    several = method.train.predicts_itself  # a personal model of several networks
    for t in (1, 2):
        ids, sel = method.select(state.select, task, t, generator(0, "select", t))
        again, _ = method.select(state.select, task, t, generator(0, "select", t))
        assert torch.equal(ids, again)
        assert ids.dtype == torch.int64
        assert ids.tolist() == sorted(set(ids.tolist()))
        assert ids.min() >= 0
        assert ids.max() < N
        assert 0 < method.select.share(task) <= 1
        everyone = torch.arange(N)
        receivers = everyone if method.receives == "everyone" else ids
        current = engine.current(receivers, method.train.shared) if method.collaborate.needs.current else None
        sent, col = method.collaborate.send(state.collaborate, task, receivers, current)
        assert torch.isin(sent.ids, receivers).all()
        for message, rows in ((sent.shared, None), (sent.own, len(sent.ids))):
            if "model" in message:
                fits(message["model"], sent_of(task.model, message["model"], method), rows)
        trainers = everyone if method.trains == "everyone" else ids
        reply = engine.train(method.train, sent, trainers, t, ids, method.select.needs.reports)
        fits(reply.upload["model"], sent_of(task.model, reply.upload["model"], method), len(ids))
        assert reply.ids.tolist() == ids.tolist()
        assert {"size", "steps", "rate", *method.select.needs.reports} <= set(reply.report)
        assert all(value.shape == (len(ids),) for value in reply.report.values())
        kept, kp = method.keep(state.keep, task, sent, reply, t, generator(0, "keep", t))
        assert kept.shape == (len(ids),)
        assert ((kept >= 0) & (kept <= 1)).all()
        if method.collaborate.gives.replies:
            col = method.collaborate.receive(col, task, sent, reply, kept)
        after = method.collaborate.model(col)
        if after is not None:
            fits(after, task.model, None)
        sel = method.select.observe(sel, task, sent, reply, kept, after, generator(0, "observe", t))
        state = rounds.State(t, sel, kp, col)
        for part, slot in ((method.select, sel), (method.keep, kp), (method.collaborate, col)):
            flat = tree.flat(slot)  # tensors only, so that a checkpoint holds it
            assert same(held(tree.flat(tree.nested(flat))), held(flat))
            assert all(isinstance(value, int | float) for value in part.log(slot).values())
        assert {name: value.shape for name, value in tree.flat(engine.slots.values).items()} == slots
        finite(state, engine)
        personal = evaluate.personal_models(method, task, engine, state, everyone)
        fits(personal, {name: value[0] for name, value in personal.items()} if several else task.model, N)


@pytest.mark.parametrize("name", AROUND)
def test_permuted_clients_give_permuted_results(name: str, opened: Any) -> None:
    """keep and collaborate know clients by what they send, not by their number."""
    method = AROUND[name]
    engine, task, state = opened(Stacked, method)
    everyone = torch.arange(N)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    truth = None if task.irrelevant is None else task.irrelevant[order]
    shaken = replace(task, sizes=task.sizes[order], irrelevant=truth)
    noise = {
        name: value + 0.1 * torch.randn(N, *value.shape, generator=torch.Generator().manual_seed(4), dtype=value.dtype)
        for name, value in task.model.items()
    }
    before = noise if method.collaborate.needs.current else None
    moved = tree.rows(noise, order) if before is not None else None
    slot, other = state.collaborate, method.collaborate.init(shaken)
    for t in (1, 2):
        sent, slot = method.collaborate.send(slot, task, everyone, before)
        found, other = method.collaborate.send(other, shaken, everyone, moved)
        matches(found.shared, sent.shared)
        if sent.own:
            matches(found.own, tree.each(lambda model: tree.rows(model, order), sent.own))
        reply = engine.train(method.train, sent, everyone, t)
        report = {name: value[order] for name, value in reply.report.items()}
        upload = tree.each(lambda model: tree.rows(model, order), reply.upload)
        permuted = Reply(everyone, upload, report)
        kept, _ = method.keep(method.keep.init(task, generator(0, "keep")), task, sent, reply, t, generator(0, "k"))
        first = method.keep.init(shaken, generator(0, "keep"))
        counted, _ = method.keep(first, shaken, found, permuted, t, generator(0, "k"))
        torch.testing.assert_close(counted, kept[order])
        weight = kept * torch.linspace(0.2, 1.0, N, dtype=torch.float64) * (everyone != 5)
        slot = method.collaborate.receive(slot, task, sent, reply, weight)
        other = method.collaborate.receive(other, shaken, found, permuted, weight[order])
        one, two = method.collaborate.model(slot), method.collaborate.model(other)
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            matches({"model": two}, {"model": one})


def matches(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-10)


class Unreliable(Stacked):
    """Loses every second reply in round 1, all in round 2, and in round 3 the first upload is not a number."""

    def train(self, part: Train, sent: Sent, ids: Tensor, round: int, *rest: Any, **more: Any) -> Reply:
        reply = super().train(part, sent, ids, round, *rest, **more)
        if more.get("keep") is False or not len(reply.ids):
            return reply
        if round < 3:
            return reply.only((torch.arange(len(reply.ids)) % 2 == 0) & (round == 1))
        for model in reply.upload.values():
            for value in model.values():
                value[0] = torch.nan
        return reply


@pytest.mark.parametrize("name", METHODS)
def test_a_method_survives_bad_rounds(name: str, opened: Any) -> None:
    method = short(METHODS[name]())
    engine, task, state = opened(Unreliable, method)
    for t in (1, 2, 3, 4):
        before = method.collaborate.model(state.collaborate)
        state, log, _ = seen_round(method, task, engine, state)
        finite(state, engine)
        after = method.collaborate.model(state.collaborate)
        if t == 2:
            assert log.replied == 0
            if not method.collaborate.needs.current:  # what is mixed before training does not wait for replies
                assert same(before, after)
        if t == 3 and method.collaborate.gives.replies:
            broken = log.selected if method.train.pools else log.selected[:1]  # one model of all is broken for all
            assert log.dropped == broken.tolist()
        if t in (1, 3) and log.replied and after is not None and before is not None:
            assert not same(before, after)
