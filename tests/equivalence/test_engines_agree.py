"""The randomness promise: over three rounds selections, batch plans and kept masks are identical on every engine and
chunk size, and each weight tensor agrees to 1e-5 in norm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedkin import round as rounds
from fedkin.collaborate import Mean, Nothing
from fedkin.core import tree
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.engines.layers import supported_layers
from fedkin.keep import Everyone
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep, Method
from fedkin.select import Uniform
from fedkin.train import SGD, Prox

ROUNDS = 3


@dataclass(frozen=True)
class Nearer(Keep):
    """Drops the largest update and, by lot, one more; remembers every mask."""

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        update = tree.update(tree.repeated(task.model, len(reply.ids)), reply.upload["model"])
        norms = tree.vector(update).double().norm(dim=1)
        kept = torch.ones(len(reply.ids), dtype=torch.float64)
        kept[norms.argmax()] = 0.0
        kept[torch.randint(len(reply.ids), (), generator=gen)] = 0.0
        return kept, slot | {f"kept {round}": kept}


@dataclass(frozen=True)
class Rested(SGD):
    """SGD whose last model the client keeps, so that it may train in rounds in which it is sent nothing."""

    def slots(self, model: dict[str, Tensor], own: bool) -> dict[str, dict[str, Tensor]]:
        return {"model": model}


@dataclass(frozen=True)
class MeanForTheSelected(Mean):
    """Everyone has a model; the selected start from the mean of what was uploaded."""

    own = True


STEPS = SGD(eta=0.05, steps=5, batch=8, momentum=0.9)
EPOCHS = Prox(eta=0.03, steps=None, epochs=2, batch=8, momentum=0.5, weight_decay=0.01, lam=0.5, rate_decay=0.9)
METHODS = {
    "fedavg": Method("fedavg", Uniform(count=5), STEPS, Nearer(), Mean()),
    "fedprox": Method("fedprox", Uniform(fraction=0.6), EPOCHS, Nearer(), Mean()),
    "fedprox, all": Method("fedprox", Uniform(fraction=1.0), replace(EPOCHS, steps=4, epochs=None), Nearer(), Mean()),
    "fedavg, cyclic": Method("fedavg", Uniform(count=5), replace(STEPS, sampler="cyclic"), Nearer(), Mean()),
    "cyclic epochs": Method("fedavg", Uniform(count=5), replace(EPOCHS, sampler="cyclic"), Nearer(), Mean()),
    "local": Method("local", Uniform(count=6), replace(EPOCHS, lam=0.0), Everyone(), Nothing()),
    "everyone trains": Method(
        "two", Uniform(count=3), Rested(0.05, None, 1, 8), Nearer(), MeanForTheSelected(), trains="everyone"
    ),
    "everyone receives": Method(
        "all", Uniform(count=3), EPOCHS, Nearer(), Mean(), trains="everyone", receives="everyone"
    ),
}
SIZES = (1, 3, 40, 9, 8, 7, 25, 17, 2)


def mlp(inputs: int = 6, classes: int = 3) -> nn.Module:
    return fixed(lambda: nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, classes)))


def fixed(build: Any) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return build()


@dataclass
class Seen:
    selected: list[list[int]]
    plans: list[dict[int, list[list[int]]]]  # round -> client -> batches
    keep: Slot
    server: dict[str, Tensor]
    clients: dict[str, Tensor]
    replied: list[int]


def played(
    engine: Simulation, task: Task, state: rounds.State, method: Method, number: int = ROUNDS, evaluates: bool = False
) -> Seen:
    selected, plans, replied = [], [], []
    for t in range(1, number + 1):
        state, log = rounds.play(method, task, engine, state, evaluates)
        if evaluates:
            rounds.scores(method, task, engine, state, log.received)
        assert not log.dropped
        selected.append(log.selected.tolist())
        replied.append(log.replied)
        ids = torch.arange(task.n) if method.trains == "everyone" else log.selected
        plans.append(planned(engine, method, t, ids))
    clients = {name: value.clone() for name, value in tree.flat(engine.slots.values).items()}
    return Seen(selected, plans, state.keep, tree.flat(state.collaborate), clients, replied)


def planned(engine: Simulation, method: Method, t: int, ids: Tensor) -> dict[int, list[list[int]]]:
    """The rows each client uses, in the chunks in which this engine runs them."""
    found = {}
    for chosen in engine.chunks(method.train, ids):
        work = engine.passed(method.train, t, chosen)
        for i, client in enumerate(chosen.tolist()):
            counts = work.count[:, i].tolist()
            found[client] = [work.rows[k, i, :c].tolist() for k, c in enumerate(counts) if c]
            assert len(found[client]) == work.steps[i]
    return found


def agree(one: Seen, other: Seen) -> None:
    assert one.selected == other.selected
    assert one.replied == other.replied
    assert one.plans == other.plans
    assert set(one.keep) == set(other.keep)
    for name, kept in one.keep.items():
        assert torch.equal(kept, other.keep[name])
    close(one.server, other.server)
    close(one.clients, other.clients)


def close(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert set(one) == set(other)
    for name, value in one.items():
        assert value.dtype == other[name].dtype
        assert (value - other[name]).norm() <= 1e-5 * value.norm(), name


@pytest.mark.parametrize("name", METHODS)
def test_stacked_in_any_chunks_is_plain(federate: Any, start: Any, name: str) -> None:
    method, federation = METHODS[name], federate(SIZES, shape=(6,))
    plain = played(*start(Plain, method, federation, mlp()), method)
    moved = [value for key, value in (plain.server | plain.clients).items() if "centre" not in key]
    assert moved
    assert all((value - value.flatten()[0]).abs().max() > 0 for value in moved)
    for chunk in (1, 2, 3, 7, 100):
        agree(plain, played(*start(Stacked, method, federation, mlp(), chunk=chunk), method))
    agree(plain, played(*start(Plain, method, federation, mlp(), chunk=4), method))


@pytest.mark.parametrize("engine", [Plain, Stacked])
def test_mapped_slots_are_slots(federate: Any, start: Any, engine: type[Simulation]) -> None:
    method, federation = METHODS["everyone trains"], federate(SIZES, shape=(6,))
    memory = start(engine, method, federation, mlp())
    mapped = start(engine, method, federation, mlp(), budget=0)
    assert mapped[0].slots.mapped
    assert not memory[0].slots.mapped
    one, other = played(*memory, method), played(*mapped, method)
    identical(one, other)


@pytest.mark.parametrize("train", ["steps", "epochs"])
def test_one_and_twenty_five_thousand_samples_together(federate: Any, start: Any, train: str) -> None:
    prox = Prox(eta=0.05, steps=12, batch=20, momentum=0.9, lam=0.1)
    if train == "epochs":
        prox = Prox(eta=0.05, steps=None, epochs=1, batch=500, momentum=0.9, lam=0.1)
    method = Method("fedprox", Uniform(count=4), prox, Nearer(), Mean())
    federation = federate((1, 3, 250, 25_000, 60), shape=(4,))
    plain = played(*start(Plain, method, federation, mlp(4)), method)
    assert any(3 in ids for ids in plain.selected)
    assert any(0 in ids for ids in plain.selected)
    for chunk in (2, 5):
        agree(plain, played(*start(Stacked, method, federation, mlp(4), chunk=chunk), method))


# networks


class Residual(nn.Module):
    """Not a sequence, so it goes through vmap."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.norm = nn.GroupNorm(2, 8)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        h = h + self.drop(torch.tanh(self.second(h)))
        return self.last(self.norm(h))


def sequence_with_dropout() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.Dropout(0.2), nn.ReLU(), nn.Sequential(nn.Linear(16, 8), nn.Dropout(0.5)), nn.Linear(8, 3)
    )


def convolutions() -> nn.Module:
    """Grouped (1 -> 8, 8 -> 16), one by one (16 -> 6), and in groups of their own."""
    body = [nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.Tanh()]
    body += [nn.Conv2d(16, 6, 2, dilation=2), nn.Conv2d(6, 4, 1, groups=2), nn.AvgPool2d(3), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(4, 3))


def dropped_convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(8 * 8 * 8, 3))


def partly_frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    module[0].weight.requires_grad_(False)
    return module


def tied() -> nn.Module:
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(6, 3))


VECTOR, IMAGE = (6,), (1, 12, 12)
NETWORKS: dict[str, tuple[Any, tuple[int, ...], bool]] = {  # build, shape of a sample, whether layers.py knows it
    "residual": (Residual, VECTOR, False),
    "residual with dropout": (lambda: Residual(0.4), VECTOR, False),
    "dropout": (sequence_with_dropout, VECTOR, True),
    "convolutions": (convolutions, IMAGE, True),
    "convolutions with dropout": (dropped_convolutions, IMAGE, True),
    "partly frozen": (partly_frozen, VECTOR, False),
    "tied": (tied, VECTOR, False),
    "no bias": (lambda: nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 3)), VECTOR, False),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(federate: Any, start: Any, name: str) -> None:
    build, shape, direct = NETWORKS[name]
    method = Method("fedprox", Uniform(count=5), replace(EPOCHS, eta=0.05, epochs=1), Nearer(), Mean())
    federation = federate((1, 3, 20, 9, 8, 17, 2), shape=shape)
    plain = played(*start(Plain, method, federation, fixed(build)), method)
    for chunk in (1, 3, 7):
        engine, task, state = start(Stacked, method, federation, fixed(build), chunk=chunk)
        assert (supported_layers(engine.network.module, set(engine.network.model)) is not None) == direct
        agree(plain, played(engine, task, state, method))


@pytest.mark.parametrize("engine", [Plain, Stacked])
@pytest.mark.parametrize("name", ["dropout", "residual with dropout", "convolutions with dropout"])
def test_dropout_drops(
    federate: Any, start: Any, monkeypatch: pytest.MonkeyPatch, name: str, engine: type[Simulation]
) -> None:
    """It changes training, differs from step to step and client to client, and is off when models are judged."""
    build, shape, _ = NETWORKS[name]
    method = Method("fedavg", Uniform(count=4), SGD(eta=0.1, steps=2, batch=4), Everyone(), Mean())
    federation = federate((4, 4, 9, 9), shape=shape)
    running, task, state = start(engine, method, federation, fixed(build), chunk=4)
    work = running.passed(method.train, 1, torch.arange(4))
    masks = [tree.flat(running.batch(work, k, slice(None))) for k in range(2)]
    layers = [key for key in masks[0] if key.startswith("mask of ")]
    assert layers
    for layer in layers:
        mask, p = masks[0][layer], running.network.dropouts[layer.removeprefix("mask of ")]
        assert set(mask.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p)).item()}
        assert mask.ne(0).float().mean() == pytest.approx(1 - p, abs=0.2)
        assert not torch.equal(mask, masks[1][layer])
        assert not torch.equal(mask[0], mask[1])
    everyone = torch.arange(4)
    model = tree.repeated(running.network.model, 4)
    judged = running.evaluate(model, everyone, federation.test)
    assert torch.equal(judged.loss, running.evaluate(model, everyone, federation.test).loss)
    dropped = played(running, task, state, method, 1)
    monkeypatch.setattr(Simulation, "drawn_masks", lambda *_: {})
    whole = played(*start(engine, method, federation, fixed(build), chunk=4), method, 1)
    assert any(not torch.allclose(dropped.server[key], whole.server[key], atol=1e-4) for key in whole.server)


# seeds, methods, order


def identical(one: Seen, other: Seen) -> None:
    agree(one, other)
    for found, again in ((one.server, other.server), (one.clients, other.clients)):
        assert all(torch.equal(value, again[name]) for name, value in found.items())


@pytest.mark.parametrize("engine", [Plain, Stacked])
@pytest.mark.parametrize("name", ["fedavg", "fedprox", "everyone trains"])
def test_a_seed_is_a_run(federate: Any, start: Any, name: str, engine: type[Simulation]) -> None:
    method, federation = METHODS[name], federate(SIZES, shape=(6,))
    one = played(*start(engine, method, federation, mlp(), seed=4), method)
    torch.manual_seed(123)  # the global generator has no say
    identical(one, played(*start(engine, method, federation, mlp(), seed=4), method))
    other = played(*start(engine, method, federation, mlp(), seed=5), method)
    assert one.selected != other.selected
    assert one.plans != other.plans
    assert any(not torch.equal(value, other.server[key]) for key, value in one.server.items())


@pytest.mark.parametrize("engine", [Plain, Stacked])
@pytest.mark.parametrize("name", list(METHODS))
def test_looking_changes_nothing(federate: Any, start: Any, name: str, engine: type[Simulation]) -> None:
    method, federation = METHODS[name], federate(SIZES, shape=(6,))
    blind = played(*start(engine, method, federation, mlp()), method)
    identical(blind, played(*start(engine, method, federation, mlp()), method, evaluates=True))


def test_methods_with_one_seed_see_the_same_clients_and_batches(federate: Any, start: Any) -> None:
    federation = federate(SIZES, shape=(6,))
    fast = SGD(eta=0.5, steps=None, epochs=2, batch=8)
    trains = [fast, EPOCHS, replace(EPOCHS, eta=0.01, lam=3.0)]
    methods = [Method("one", Uniform(count=5), train, Everyone(), Mean()) for train in trains]
    methods.append(Method("local", Uniform(count=5), fast, Everyone(), Nothing()))
    found = [played(*start(Stacked, method, federation, mlp(), seed=2), method) for method in methods]
    for seen in found[1:]:
        assert seen.selected == found[0].selected
        assert seen.plans == found[0].plans


@pytest.mark.parametrize("engine", [Plain, Stacked])
def test_who_trains_beside_whom_does_not_matter(federate: Any, start: Any, engine: type[Simulation]) -> None:
    method, federation = METHODS["fedprox"], federate(SIZES, shape=(6,))
    running, task, state = start(engine, method, federation, mlp(), chunk=4)
    everyone = torch.arange(task.n)
    sent, _ = method.collaborate.send(state.collaborate, task, everyone, None)
    whole = running.train(method.train, sent, everyone, 2)
    backwards = running.train(method.train, sent, everyone.flip(0), 2)
    assert backwards.ids.tolist() == whole.ids.tolist() == everyone.tolist()
    assert whole.report["size"].tolist() == list(SIZES)
    close(tree.flat(whole.upload), tree.flat(backwards.upload))
    for client in everyone:
        alone = running.train(method.train, sent, client[None], 2)
        close(tree.flat(whole.only(everyone == client).upload), tree.flat(alone.upload))
    some = running.train(method.train, sent, everyone, 2, uploads=torch.tensor([1, 4]))
    assert some.ids.tolist() == [1, 4]
    close(tree.flat(some.upload), tree.flat(whole.only(torch.tensor([1, 4])).upload))
