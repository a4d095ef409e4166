"""Methods that must coincide at special values of their hyper-parameters, on the same selections and batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

import fedkin as fk
from fedkin.collaborate import ComponentAttention, MeanBefore, SimilarityThreshold
from fedkin.core.tree import Batch, Message, Model
from fedkin.messages import Objective
from fedkin.select import Uniform
from fedkin.train import APFL, MAML, SGD, Prox, TwoStreams

DATA = fk.Data("digits", clients=6, server=100, seed=3)
WORK = {"steps": 5, "batch": 8}


def run(method: fk.Method, rounds: int = 4, every: int | None = None, engine: str = "stacked") -> fk.Result:
    data = replace(DATA, irrelevant="flip:0.2") if method.keep.needs.truth else DATA
    how = {"evaluate_every": every or rounds, "dtype": "float64", "engine": engine}
    return fk.run(fk.Experiment(method, data, "dnn:6", rounds, **how))


def assert_same(one: Model, other: Model) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-9, atol=1e-11)


def assert_differ(one: Model, other: Model) -> None:
    assert any(not torch.allclose(one[name], other[name], rtol=1e-4) for name in one)


FEDAVG = replace(fk.methods.fedavg(count=3), train=SGD(**WORK))
LOCAL = replace(fk.methods.local(), train=SGD(**WORK))


def test_fedprox_without_its_term_is_fedavg() -> None:
    plain = run(FEDAVG).models["global"]
    assert_same(run(replace(FEDAVG, train=Prox(lam=0.0, **WORK))).models["global"], plain)
    assert_differ(run(replace(FEDAVG, train=Prox(lam=5.0, **WORK))).models["global"], plain)


WORKS = {
    "steps": WORK,
    "epochs": {"steps": None, "epochs": 2, "batch": 8},
    "cyclic": {**WORK, "sampler": "cyclic"},
    "cyclic epochs": {"steps": None, "epochs": 1, "batch": 8, "sampler": "cyclic"},
}


@pytest.mark.parametrize("engine", ["stacked", "plain"])
@pytest.mark.parametrize("work", WORKS)
def test_the_common_models_of_ditto_and_apfl_are_fedavgs(work: str, engine: str) -> None:
    """To the bit for Ditto, whose step of w is FedAvg's; its personal models have batches of their own."""
    how = WORKS[work]
    plain = run(replace(FEDAVG, train=SGD(**how)), engine=engine).models["global"]
    personal = []
    for batches in ("own", "same"):
        ditto = run(replace(FEDAVG, train=TwoStreams(lam=3.0, batches=batches, **how)), engine=engine).models
        assert all(torch.equal(ditto["global"][name], value) for name, value in plain.items())
        personal.append(ditto["personal"])
    assert_differ(*personal)
    for mix in ("parameter", "output"):
        assert_same(run(replace(FEDAVG, train=APFL(mix=mix, **how)), engine=engine).models["global"], plain)


def test_dittos_common_model_is_fedavgs_with_dropout_too() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 10))
    plain, ditto = (
        fk.run(fk.Experiment(method, DATA, network, 3, dtype="float64", seed=1)).models["global"]
        for method in (FEDAVG, replace(FEDAVG, train=TwoStreams(**WORK)))
    )
    assert all(torch.equal(ditto[name], value) for name, value in plain.items())


def test_ditto_without_its_pull_is_local_when_all_are_selected() -> None:
    everyone = replace(FEDAVG, select=Uniform(fraction=1.0))
    alone = run(LOCAL).models["personal"]
    assert_same(run(replace(everyone, train=TwoStreams(lam=0.0, batches="same", **WORK))).models["personal"], alone)
    assert_differ(run(replace(everyone, train=TwoStreams(lam=5.0, batches="same", **WORK))).models["personal"], alone)


@dataclass(frozen=True)
class Second(SGD):
    """SGD on the second of each two batches: those Per-FedAvg takes its outer gradient on."""

    batches_per_step = 2

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        return super().step(carry, batches[1:], f, rate)


@pytest.mark.parametrize("work", WORKS)
def test_perfedavg_without_an_inner_step_is_fedavg_on_its_outer_batches(work: str) -> None:
    how = {"eta": 0.05, **WORKS[work]}
    plain = run(replace(FEDAVG, train=Second(**how))).models["global"]
    assert_same(run(replace(FEDAVG, train=MAML(alpha=0.0, **how))).models["global"], plain)
    assert_differ(run(replace(FEDAVG, train=MAML(alpha=0.5, **how))).models["global"], plain)


@dataclass(frozen=True)
class FirstOrder(MAML):
    """First order on the batches that the Hessian-free form draws."""

    batches_per_step = 3

    def hessian_times(self, v: Model, w: Model, batch: Batch, f: Objective) -> Model:
        return {name: torch.zeros_like(value) for name, value in v.items()}


def test_hessian_free_is_first_order_without_an_inner_step() -> None:
    order = {"order": "HF", "eta": 0.05, **WORK}
    same = run(replace(FEDAVG, train=MAML(alpha=0.0, **order))).models["global"]
    assert_same(run(replace(FEDAVG, train=FirstOrder(alpha=0.0, **order))).models["global"], same)
    far = run(replace(FEDAVG, train=MAML(alpha=0.5, **order))).models["global"]
    assert_differ(run(replace(FEDAVG, train=FirstOrder(alpha=0.5, **order))).models["global"], far)


def test_fedacs_at_the_top_quantile_is_local() -> None:
    fedacs = replace(LOCAL, collaborate=SimilarityThreshold(p=1.0), name="fedacs")
    assert_same(run(fedacs).models["personal"], run(LOCAL).models["personal"])


def test_attention_without_temperature_is_the_uniform_mean() -> None:
    method = fk.methods.fedavg_mcsa(sigma=0.0, count=3, steps=5)
    mean = replace(method, collaborate=MeanBefore(weights_by="uniform"))
    assert_same(run(method).models["personal"], run(mean).models["personal"])


def test_attention_of_endless_temperature_is_local() -> None:
    method = replace(fk.methods.fedavg_mcsa(count=3), train=SGD(**WORK), collaborate=ComponentAttention(sigma=1e9))
    # the first round's models are all the same and stay so; training alone from there on
    assert_same(run(method).models["personal"], run(LOCAL).models["personal"])


@pytest.mark.parametrize("name", [name for name in fk.methods.METHODS if name != "local_matched"])
def test_every_method_learns(name: str) -> None:
    lines = run(fk.methods.METHODS[name](), 9, every=4).lines
    first, *_, last = [line["accuracy"]["post"]["macro"] for line in lines if "accuracy" in line]
    assert last > first


def test_mixed_outputs_are_judged_together() -> None:
    output = replace(FEDAVG, train=APFL(mix="output", eta=0.3, **WORK), name="apfl")
    result = run(output, 6)
    assert set(result.models["personal"]) >= {"alpha", "own/1.weight", "common/1.weight"}
    assert result.summary["accuracy"]["post"]["macro"]["last"] > 0.5


def test_pfedmes_w_is_scored_beside_its_theta() -> None:
    result = run(replace(fk.methods.pfedme(count=3)), 4)
    theta, w = (result.summary["accuracy"][kind]["micro"]["last"] for kind in ("post", "post-w"))
    assert theta != w
