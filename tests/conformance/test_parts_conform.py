"""What every part and every named method must satisfy. Parts and methods are found in their registries, so that a new
one is tested here from the day it is registered. A part that no named method uses is put in the simplest method."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
import pytest
import torch
from small import seen_round
from torch import Tensor, nn

from fedkin import BadInput, evaluate
from fedkin import round as rounds
from fedkin.collaborate import Mean
from fedkin.core import tree
from fedkin.core.rng import generator
from fedkin.engines import ENGINES, Plain, Simulation, Stacked
from fedkin.keep import Everyone
from fedkin.messages import Reply, Sent, Task
from fedkin.methods import METHODS
from fedkin.parts import Collaborate, Keep, Method, Part, Select, Train
from fedkin.runs.part_json import from_json, to_json
from fedkin.select import Uniform
from fedkin.train import SGD

N = 23  # clients; the methods' own default is to select 20
BASES = {"Select": Select, "Train": Train, "Keep": Keep, "Collaborate": Collaborate}
VERBS = {
    Select: ("init", "__call__", "observe", "share", "log", "marks"),
    Train: ("slots", "prepare", "begin", "step", "end", "personal_model", "rate", "reach", "descents"),
    Keep: ("init", "__call__", "log", "marks"),
    Collaborate: ("init", "send", "receive", "model", "log"),
}
KINDS = sorted(
    label for label, kind in Part.known.items() if ":" not in label and is_dataclass(kind) and kind is not Method
)


def within(part: Part) -> Iterator[Part]:
    """The part and every part in its fields."""
    yield part
    for value in part.values().values():
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, Part):
                yield from within(item)


def example(label: str) -> Part:
    """The part as a named method has it, else with its defaults."""
    kind = Part.known[label]
    for make in METHODS.values():
        for part in within(make()):
            if type(part) is kind:
                return part
    return kind()


def short(method: Method) -> Method:
    """The method with little work a round, of which some clients have a short batch."""
    values = method.train.values()
    little = {"steps": 2, "epochs": None, "batch": 4}
    changes = {name: value for name, value in little.items() if name in values}
    return replace(method, train=replace(method.train, **changes))  # type: ignore[type-var]


def around(label: str) -> Method:
    """A method that uses the part."""
    kind = Part.known[label]
    for make in METHODS.values():
        if any(type(part) is kind for part in within(make())):
            return short(make())
    parts: dict[str, Any] = {"select": Uniform(count=20), "train": SGD(), "keep": Everyone(), "collaborate": Mean()}
    field = next((name.lower() for name, base in BASES.items() if issubclass(kind, base)), None)
    if field is None:
        pytest.skip(f"{label} is part of a part, and no named method uses it")
    return short(Method("composed", **(parts | {field: example(label)})))


def network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).double()


@pytest.fixture
def begin(federate: Any, start: Any) -> Any:
    def build(kind: type[Simulation], method: Method, **options: Any) -> tuple[Simulation, Task, rounds.State]:
        sizes = [1 + (7 * i) % 11 for i in range(N)]
        federation = federate(sizes, 2, (5,), 3)
        engine, task, _ = start(kind, method, federation, network(), dtype=torch.float64, **options)
        rows = federation.test.rows[:8]
        task = replace(task, validation={"x": engine.batching.x[rows], "y": engine.batching.y[rows]})
        return engine, task, rounds.begin(method, task)

    return build


# as dataclasses and as JSON


@pytest.mark.parametrize("label", KINDS)
def test_a_part_is_frozen(label: str) -> None:
    part = example(label)
    for field in fields(part):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(part, field.name, getattr(part, field.name))
    with pytest.raises(FrozenInstanceError):
        part.anything = 1  # type: ignore[attr-defined]
    assert hash(part) == hash(copy.deepcopy(part))


@pytest.mark.parametrize("label", KINDS)
def test_a_part_is_its_json(label: str) -> None:
    part = example(label)
    text = json.dumps(to_json(part), allow_nan=False)
    again = from_json(json.loads(text))
    assert type(again) is type(part)
    assert again == part
    assert json.loads(text)["is"] == label


@pytest.mark.parametrize("label", KINDS)
def test_an_unknown_field_is_refused_with_the_nearest(label: str) -> None:
    value = to_json(example(label))
    names = [name for name in value if name != "is"]
    for name in names or ["anything"]:
        wrong = {key: inner for key, inner in value.items() if key != name} | {name + "z": 1}
        nearest = f"did you mean .*{name}" if names else "no field of"
        with pytest.raises(BadInput, match=nearest) as caught:
            from_json(wrong)
        assert f"'{name}z'" in str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_its_json(name: str) -> None:
    method = METHODS[name]()
    assert from_json(json.loads(json.dumps(to_json(method), allow_nan=False))) == method
    with pytest.raises(BadInput, match=r"did you mean .*collaborate"):
        from_json(to_json(method) | {"collaborat": None})


@pytest.mark.parametrize("label", [*BASES, "Nobody", "uniform"])
def test_what_is_no_part_is_refused(label: str) -> None:
    with pytest.raises(BadInput, match="no part called"):
        from_json({"is": label})


@pytest.mark.parametrize("label", [5, None, ["Uniform"], ":", "nowhere.at_all:Part", "json:dumps"])
def test_what_is_no_name_of_a_part_is_refused(label: Any) -> None:
    with pytest.raises(BadInput):
        from_json({"is": label})


# in a round


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


def generators() -> Any:
    state = np.random.get_state()
    return [torch.get_rng_state(), torch.from_numpy(np.array(state[1], dtype=np.int64)), state[2], random.getstate()]


def guarded(f: Any, calls: list[str]) -> Any:
    """`f`, which must leave its arguments and the global generators alone."""

    @wraps(f)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        before, lots = held([list(arguments), named]), generators()
        result = f(self, *arguments, **named)
        where = f"{type(self).__name__}.{f.__name__}"
        assert same(before, held([list(arguments), named])), f"{where} changes what it is given"
        assert all(same(a, b) for a, b in zip(lots, generators(), strict=True)), f"{where} uses a global generator"
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


@pytest.mark.parametrize("label", KINDS)
def test_a_part_changes_nothing_it_is_given(label: str, begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    method = around(label)
    calls = guard(method, monkeypatch)
    engine, task, state = begin(Plain, method)
    for _ in range(2):
        state, log, _ = seen_round(method, task, engine, state)
    wanted = {"init", "__call__", "send", "slots", "begin", "step", "end"}
    assert wanted <= set(calls)


def test_the_guard_sees_a_change_and_a_global_draw(begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail."""
    method = around("Mean")

    def careless(self: Any, slot: Any, task: Any, sent: Any, reply: Reply, kept: Tensor) -> Any:
        kept.mul_(0.5)
        return slot

    def lucky(self: Any, slot: Any, task: Task, round: int, gen: torch.Generator) -> Any:
        return torch.randperm(task.n)[:3].sort().values, slot

    for kind, verb, f, sentence in ((Mean, "receive", careless, "changes"), (Uniform, "__call__", lucky, "global")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, verb, f)
            guard(method, patch)
            engine, task, state = begin(Plain, method)
            with pytest.raises(AssertionError, match=sentence), torch.random.fork_rng(devices=[]):
                rounds.play(method, task, engine, state)


def fits(stack: dict[str, Tensor], like: dict[str, Tensor], rows: int | None) -> None:
    assert list(stack) == list(like)
    for name, value in stack.items():
        assert value.shape == (like[name].shape if rows is None else (rows, *like[name].shape))
        assert value.dtype == like[name].dtype
        assert value.isfinite().all()


def finite(state: rounds.State, engine: Simulation) -> None:
    everything = {"collaborate": state.collaborate, "clients": engine.slots.values}
    for name, value in tree.flat(everything).items():
        assert not value.isnan().any(), name


@pytest.mark.parametrize("label", KINDS)
@pytest.mark.parametrize("kind", ENGINES)
def test_shapes(label: str, kind: str, begin: Any) -> None:
    method = around(label)
    engine, task, state = begin(ENGINES[kind], method)
    slots = {name: value.shape for name, value in tree.flat(engine.slots.values).items()}
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
        current = engine.current(receivers, method.train.shared) if method.needs.current else None
        sent, col = method.collaborate.send(state.collaborate, task, receivers, current)
        assert torch.isin(sent.ids, receivers).all()
        for message, rows in ((sent.shared, None), (sent.own, len(sent.ids))):
            if "model" in message:
                fits(message["model"], task.model, rows)
        trainers = everyone if method.trains == "everyone" else ids
        reply = engine.train(method.train, sent, trainers, t, ids, method.needs.reports)
        fits(reply.upload["model"], task.model, len(ids))
        assert reply.ids.tolist() == ids.tolist()
        assert {"size", "steps", "rate", *method.needs.reports} <= set(reply.report)
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
        fits(evaluate.personal_models(method, task, engine, state, everyone), task.model, N)


@pytest.mark.parametrize("label", KINDS)
def test_permuted_clients_give_permuted_results(label: str, begin: Any) -> None:
    """keep and collaborate know clients by what they send, not by their number."""
    method = around(label)
    engine, task, state = begin(Plain, method)
    everyone = torch.arange(N)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    truth = None if task.irrelevant is None else task.irrelevant[order]
    shaken = replace(task, sizes=task.sizes[order], irrelevant=truth)
    noise = {
        name: value + 0.1 * torch.randn(N, *value.shape, generator=torch.Generator().manual_seed(4), dtype=value.dtype)
        for name, value in task.model.items()
    }
    before = noise if method.needs.current else None
    moved = tree.rows(noise, order) if before is not None else None
    slot, other = state.collaborate, method.collaborate.init(shaken)
    for t in (1, 2):
        sent, slot = method.collaborate.send(slot, task, everyone, before)
        found, other = method.collaborate.send(other, shaken, everyone, moved)
        matches(found.shared, sent.shared)
        if sent.own:
            matches(found.own, tree.each(lambda model: tree.rows(model, order), sent.own))
        reply = engine.train(method.train, sent, everyone, t, keep=False)
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


@pytest.mark.parametrize("label", KINDS)
def test_a_client_trains_for_itself(label: str, begin: Any) -> None:
    """What a client uploads does not depend on who trains beside it, nor on the engine."""
    method = around(label)
    uploads = []
    for kind, chunk in ((Plain, 1), (Stacked, 1), (Stacked, 10), (Stacked, 40)):
        engine, task, state = begin(kind, method, chunk=chunk)
        everyone = torch.arange(N)
        current = engine.current(everyone, method.train.shared) if method.needs.current else None
        sent, _ = method.collaborate.send(state.collaborate, task, everyone, current)
        reply = engine.train(method.train, sent, everyone, 1, keep=False)
        some = engine.train(method.train, sent, everyone[3:11], 1, keep=False)
        matches(some.upload, tree.each(lambda model: tree.rows(model, slice(3, 11)), reply.upload))
        uploads.append(reply.upload)
    for upload in uploads[1:]:
        matches(upload, uploads[0])


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_the_same_on_every_engine(name: str, begin: Any) -> None:
    method = short(METHODS[name]())
    found = []
    for kind, chunk in ((Plain, 1), (Stacked, 10), (Stacked, 3)):
        engine, task, state = begin(kind, method, chunk=chunk)
        logs = []
        for _ in range(3):
            state, log = rounds.play(method, task, engine, state)
            logs.append((log.selected.tolist(), log.replied, log.counted, log.traffic))
        found.append((logs, tree.flat({"server": state.collaborate, "clients": engine.slots.values})))
    assert found[0][0] == found[1][0] == found[2][0]
    for _, values in found[1:]:
        for key, value in found[0][1].items():
            assert (values[key] - value).norm() <= 1e-7 * value.norm(), key


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
def test_a_method_survives_bad_rounds(name: str, begin: Any) -> None:
    method = short(METHODS[name]())
    engine, task, state = begin(Unreliable, method)
    for t in (1, 2, 3, 4):
        before = method.collaborate.model(state.collaborate)
        state, log, _ = seen_round(method, task, engine, state)
        finite(state, engine)
        after = method.collaborate.model(state.collaborate)
        if t == 2:
            assert log.replied == 0
            if not method.needs.current:  # what is mixed before training does not wait for replies
                assert same(before, after)
        if t == 3 and method.collaborate.gives.replies:
            assert log.dropped == [int(log.selected[0])]
        if t in (1, 3) and after is not None and before is not None:
            assert not same(before, after)
