"""Small variants of the large networks learn, and the engines agree about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.collaborate import Mean
from fedkin.data.federation import Federation, Index
from fedkin.keep import Everyone
from fedkin.models import build
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import MAML, SGD

TOKENS, LENGTH, CLASSES = 6, 7, 3
TRAINS = {
    "one model": SGD(eta=0.05, steps=2, batch=5, momentum=0.5),
    "by vmap": MAML(alpha=0.01, eta=0.01, order="HF", steps=1, batch=5),
}


def method(train: SGD) -> Method:
    return Method("fedavg", Uniform(count=3), train, Everyone(), Mean())


def federation(spec: str) -> Federation:
    """Three clients with 12, 3 and 15 samples. Text: the class is that of the last token; sentences are padded on the
    left. Images: a pattern for each class, and noise."""
    gen = torch.Generator().manual_seed(0)
    if spec.startswith("lstm"):
        x = torch.randint(1, TOKENS, (60, LENGTH), generator=gen)
        y = x[:, -1] % CLASSES
        x = torch.where(torch.arange(LENGTH) < torch.randint(0, LENGTH - 1, (60, 1), generator=gen), 0, x)
        x = x.to(torch.uint8)
    else:
        y = torch.arange(60) % CLASSES
        x = torch.randn(CLASSES, 1, 12, 12, generator=gen)[y] + 0.2 * torch.randn(60, 1, 12, 12, generator=gen)
    rows = torch.arange(60).reshape(3, 20)
    return Federation(
        "small",
        x,
        y,
        CLASSES,
        Index.of([rows[0, :12], rows[1, :3], rows[2, :15]]),
        Index.of(list(rows[:, 15:])),
        vocabulary=TOKENS if spec.startswith("lstm") else None,
    )


def run(spec: str, train: SGD, fed: Federation, engine: str, chunk: int | None = None) -> Any:
    experiment = fk.Experiment(
        method(train), fed, spec, rounds=2, engine=engine, chunk=chunk, dtype="float64", threads=1
    )
    return fk.run(experiment)


def close(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert set(one) == set(other)
    for name, value in one.items():
        assert (value - other[name]).norm() <= 1e-5 * value.norm(), name


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("lstm:6,2,4", "one model"),
        ("lstm:6,2,4", "by vmap"),
        ("vgg11:2", "one model"),
        ("vgg11:2", "by vmap"),
        ("resnet50:2", "one model"),
    ],
)
def test_engines_agree(spec: str, name: str) -> None:
    fed, train = federation(spec), TRAINS[name]
    plain = run(spec, train, fed, "plain")
    first = build(spec, fed.shape, CLASSES, 0, fed.vocabulary).double()
    for key, value in first.named_parameters():
        assert (plain.models["global"][key] - value).norm() > 1e-6 * value.norm(), key
    for chunk in (1, 2):
        stacked = run(spec, train, fed, "stacked", chunk)
        for kind in plain.models:
            close(plain.models[kind], stacked.models[kind])


@pytest.mark.parametrize(("spec", "rate"), [("lstm:16,1,8", 0.5), ("vgg11:8", 0.005), ("resnet50:2", 0.01)])
def test_they_learn(spec: str, rate: float) -> None:
    fed = federation(spec)
    train = SGD(eta=rate, steps=10, batch=5)
    experiment = fk.Experiment(method(train), fed, spec, rounds=2, threads=1)
    found = fk.run(experiment)
    module = build(spec, fed.shape, CLASSES, 0, fed.vocabulary)
    rows = fed.train.rows

    def loss() -> float:
        with torch.no_grad():
            return float(torch.nn.functional.cross_entropy(module(fed.x[rows]), fed.y[rows]))

    before = loss()
    module.load_state_dict(found.models["global"])
    assert loss() < 0.8 * before


@pytest.mark.parametrize("spec", ["lstm:6,1,4", "vgg11:2"])
def test_updates_can_be_inverted(spec: str) -> None:
    """PFedRe keeps the same updates on both engines, not all of them; text is inverted at its embedding."""
    fed = federation(spec)
    chosen = fk.methods.pfedre(epochs=1, batch=5, iterations=3, eta=0.02)
    found = [
        fk.run(fk.Experiment(chosen, fed, spec, rounds=2, engine=engine, dtype="float64", threads=1))
        for engine in ("plain", "stacked")
    ]
    for kind in found[0].models:
        close(found[0].models[kind], found[1].models[kind])
    kept = [[line["kept"] for line in result.rounds] for result in found]
    assert kept[0] == kept[1]
    assert set(kept[0]) == {2.0}


def test_a_run_on_text_is_read_back(tmp_path: Path) -> None:
    fed = federation("lstm")
    experiment = fk.Experiment(method(TRAINS["one model"]), fed, "lstm:6,2,4", rounds=1)
    found = fk.run(experiment, tmp_path / "run")
    module = fk.load(tmp_path / "run").model()
    again: Any = build("lstm:6,2,4", (LENGTH,), CLASSES, 0, TOKENS)
    again.load_state_dict(found.models["global"])
    torch.testing.assert_close(module(fed.x), again(fed.x))
