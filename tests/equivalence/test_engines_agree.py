"""The promise of the engines, for every method: over three rounds selections, batch plans and kept masks are identical
on every engine and chunk size, each tensor agrees in norm, and looking at the models changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from seen import Nearer, agree, identical, played
from small import seeded
from torch import Tensor, nn

import fedkin as fk
from fedkin.collaborate import ComponentAttention, Control, Mean, Nothing, SimilarityThreshold
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.keep import Everyone
from fedkin.keep.relevance import Relevance
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import APFL, MAML, SGD, FedMix, Moreau, Prox, Scaffold, TwoStreams

SIZES = (1, 3, 40, 9, 8, 7, 25, 17, 2)


def mlp(inputs: int = 6) -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, 3)))


# methods in float32, with momentum, decay, and a filter that draws lots


@dataclass(frozen=True)
class Rested(SGD):
    """SGD whose last model the client keeps, so that it may train in rounds in which it is sent nothing."""

    def slots(self, model: dict[str, Tensor], own: bool) -> dict[str, dict[str, Tensor]]:
        return {"model": model}


@dataclass(frozen=True)
class MeanForTheSelected(Mean):
    """Everyone has a model; the selected start from the mean of what was uploaded."""

    own = True


def composed(
    train: Any, collaborate: Any = None, select: Any = None, keep: Any = None, who: Any = "selected"
) -> Method:
    chosen = select or Uniform(count=5), train, keep or Nearer(), collaborate or Mean()
    return Method("tried", *chosen, trains=who, receives="selected" if chosen[3].gives.own_model else who)


STEPS = SGD(eta=0.05, steps=5, batch=8, momentum=0.9)
EPOCHS = Prox(eta=0.03, steps=None, epochs=2, batch=8, momentum=0.5, weight_decay=0.01, lam=0.5, rate_decay=0.9)
COMPOSED = {
    "steps": composed(STEPS),
    "epochs": composed(EPOCHS, select=Uniform(fraction=0.6)),
    "all": composed(replace(EPOCHS, steps=4, epochs=None), select=Uniform(fraction=1.0)),
    "cyclic": composed(replace(STEPS, sampler="cyclic")),
    "cyclic epochs": composed(replace(EPOCHS, sampler="cyclic")),
    "alone": composed(replace(EPOCHS, lam=0.0), Nothing(), Uniform(count=6), Everyone()),
    "everyone trains": composed(Rested(0.05, None, 1, 8), MeanForTheSelected(), Uniform(count=3), who="everyone"),
    "few neighbours by sketches": composed(Prox(0.05, 5, batch=8), ComponentAttention(9.0, sketch=8, neighbours=3)),
    "neighbours above a quantile": composed(Rested(0.05, 5, batch=8), SimilarityThreshold(0.3, sketch=8, neighbours=3)),
    "everyone receives": composed(EPOCHS, select=Uniform(count=3), who="everyone"),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_stacked_in_any_chunks_is_plain(federate: Any, start: Any, name: str) -> None:
    method, federation = COMPOSED[name], federate(SIZES, shape=(6,))
    plain = played(start(Plain, method, federation, mlp()), method)
    moved = [value for key, value in plain.tensors.items() if "kept" not in key and "centre" not in key]
    assert moved
    assert all((value - value.flatten()[0]).abs().max() > 0 for value in moved)
    for kind, chunk in ((Stacked, 1), (Stacked, 2), (Stacked, 7), (Stacked, 100), (Plain, 4)):
        agree(plain, played(start(kind, method, federation, mlp(), chunk=chunk), method))


# every named method, and the ways of a part that no named method takes, in float64


def short(method: Method) -> Method:
    """The method with few clients a round and little work, of which some have a short batch."""
    train = replace(method.train, steps=2, epochs=None, batch=4)  # type: ignore[call-arg]
    few = replace(method, train=train)
    if isinstance(few.keep, Relevance):
        few = replace(few, keep=replace(few.keep, iterations=3))
    return replace(few, select=Uniform(count=6)) if isinstance(few.select, Uniform) else few


LITTLE: dict[str, Any] = {"steps": None, "epochs": 2, "batch": 8}
PARTS = {
    "two streams, own batches": TwoStreams(eta_v=0.03, batches="own", momentum=0.5, **LITTLE),
    "two streams, cyclic": TwoStreams(batches="own", sampler="cyclic", **LITTLE),
    "two streams, restart": TwoStreams(restart=True, batches="same", **LITTLE),
    "moreau, epochs": Moreau(K=2, weight_decay=0.1, **LITTLE),
    "maml, epochs": MAML(**LITTLE),
    "maml, Hessian-free": MAML(order="HF", eta=0.05, **LITTLE),
    "apfl, outputs": APFL(eta=0.2, adapt="every", mix="output", penalty=0.1, **LITTLE),
    "apfl, epochs": APFL(eta=0.2, **LITTLE),
    "fedmix, groups of others": FedMix(eta=0.1, group=4, own=False, momentum=0.5, **LITTLE),
    "fedmix, naive": FedMix(eta=0.1, naive=True, **LITTLE),
}
EVERY = {name: short(make()) for name, make in fk.methods.METHODS.items()}
EVERY |= {name: composed(part) for name, part in PARTS.items()}
EVERY |= {"scaffold, momentum": composed(Scaffold(momentum=0.5, weight_decay=0.01, **LITTLE), Control())}


@pytest.mark.parametrize("name", EVERY)
def test_every_method_is_the_same_on_every_engine_and_looking_changes_nothing(
    federate: Any, start: Any, name: str
) -> None:
    method, federation = EVERY[name], federate(SIZES, shape=(6,))

    def on(kind: type[Simulation], chunk: int, evaluates: bool = False) -> Any:
        begun = start(kind, method, federation, mlp(), chunk=chunk, dtype=torch.float64)
        return played(begun, method, evaluates=evaluates)

    plain, chunks = on(Plain, 1), on(Stacked, 4)
    agree(plain, chunks, 1e-7)
    agree(plain, on(Stacked, 100), 1e-7)
    identical(chunks, on(Stacked, 4, evaluates=True))


@pytest.mark.parametrize("train", ["steps", "epochs"])
def test_one_and_twenty_five_thousand_samples_together(federate: Any, start: Any, train: str) -> None:
    prox = Prox(eta=0.05, steps=12, batch=20, momentum=0.9, lam=0.1)
    if train == "epochs":
        prox = Prox(eta=0.05, steps=None, epochs=1, batch=500, momentum=0.9, lam=0.1)
    method = composed(prox, select=Uniform(count=4))
    federation = federate((1, 3, 250, 25_000, 60), shape=(4,))
    plain = played(start(Plain, method, federation, mlp(4)), method)
    assert {0, 3} <= {client for ids in plain.selected for client in ids}
    for chunk in (2, 5):
        agree(plain, played(start(Stacked, method, federation, mlp(4), chunk=chunk), method))


# seeds


@pytest.mark.parametrize("engine", [Plain, Stacked])
def test_a_seed_is_a_run(federate: Any, start: Any, engine: type[Simulation]) -> None:
    method, federation = COMPOSED["everyone trains"], federate(SIZES, shape=(6,))
    one = played(start(engine, method, federation, mlp(), seed=4), method)
    torch.manual_seed(123)  # the global generator has no say
    identical(one, played(start(engine, method, federation, mlp(), seed=4), method))
    other = played(start(engine, method, federation, mlp(), seed=5), method)
    assert one.selected != other.selected
    assert one.plans != other.plans
    name = "collaborate/model/0.weight"
    assert not torch.equal(one.tensors[name], other.tensors[name])


def test_methods_with_one_seed_see_the_same_clients_and_batches(federate: Any, start: Any) -> None:
    federation = federate(SIZES, shape=(6,))
    fast = SGD(eta=0.5, steps=None, epochs=2, batch=8)
    methods = [composed(train) for train in (fast, EPOCHS, replace(EPOCHS, eta=0.01, lam=3.0))]
    methods.append(composed(fast, Nothing(), keep=Everyone()))
    found = [played(start(Stacked, method, federation, mlp(), seed=2), method) for method in methods]
    for seen in found[1:]:
        assert seen.selected == found[0].selected
        assert seen.plans == found[0].plans
