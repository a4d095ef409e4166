"""Numbers as targets: the squared error is what is descended and scored, on every engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small import seeded, tiny
from torch import nn

import fedkin as fk
from fedkin import metrics
from fedkin import round as rounds
from fedkin.core import losses, tree
from fedkin.data.federation import Federation, Index
from fedkin.engines import Plain, Stacked
from fedkin.engines.network import Network, StackedObjective
from fedkin.train import SGD

SIZES = (9, 14, 12, 17)


def numbers(noise: float = 0.1, scale: tuple[float, ...] | None = None, seed: int = 0) -> Federation:
    """Four clients with a linear target, the same for all."""
    draw = np.random.default_rng(seed)
    total = sum(SIZES) + 4 * 6
    x = draw.normal(size=(total, 3))
    y = x @ [1.0, -2.0, 0.5] + 0.3 + noise * draw.normal(size=total)
    lists = np.split(draw.permutation(total), np.cumsum([*SIZES, 6, 6, 6]))
    return Federation(
        "numbers",
        torch.from_numpy(x).float(),
        torch.from_numpy(y).float(),
        1,
        Index.of(lists[:4]),
        Index.of(lists[4:]),
        task="regress",
        target_scale=None if scale is None else torch.tensor(scale),
    )


def linear() -> nn.Module:
    return seeded(lambda: nn.Linear(3, 1))


def test_the_fused_gradient_is_that_of_autograd() -> None:
    """With and without weights, in a network of two layers."""
    module = seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
    network = Network(module, torch.zeros(3, dtype=torch.float64), 5, torch.float64, 1)
    assert network.fused is not None
    gen = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=gen, dtype=torch.float64)  # noqa: E731
    stacked = {name: draw(2, *value.shape) for name, value in network.model.items()}
    batch = {"x": draw(2, 5, 3), "y": draw(2, 5)}
    for some in (batch, batch | {"weight": torch.rand(2, 5, generator=gen, dtype=torch.float64)}):
        found = network.fused.grad(stacked, some)
        for i in range(2):
            one = network.grad(tree.row(stacked, i), tree.row(some, i))
            torch.testing.assert_close(tree.row(found, i), one, rtol=1e-10, atol=1e-12)
        network.fused, layers = None, network.fused
        by_autograd = StackedObjective(network).grad(stacked, some)
        torch.testing.assert_close(found, by_autograd, rtol=1e-10, atol=1e-12)
        network.fused = layers


def test_the_loss_is_the_mean_squared_error() -> None:
    out, y = torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 5.0])
    assert losses.each(out, y).tolist() == [1.0, 4.0]
    assert float(losses.mean(losses.each(out, y), {"weight": torch.tensor([1.0, 3.0])})) == (1 + 3 * 4) / 4


def test_linear_regression_alone_reaches_least_squares() -> None:
    """Full batches at a small rate lead every client to the solution in closed form of its own samples."""
    fed = numbers(noise=0.5)
    method = replace(fk.methods.local(), train=SGD(eta=0.1, steps=400, batch=64))
    asked = fk.Experiment(method, fed, linear(), rounds=3, evaluate_every=3, dtype="float64", threads=1)
    for engine in ("stacked", "plain"):
        found = fk.run(replace(asked, engine=engine)).models["personal"]
        for client in range(4):
            rows = fed.train[client]
            design = np.column_stack([fed.x[rows].double(), np.ones(len(rows))])
            best = np.linalg.lstsq(design, fed.y[rows].double().numpy(), rcond=None)[0]
            got = [*found["weight"][client, 0].tolist(), float(found["bias"][client, 0])]
            np.testing.assert_allclose(got, best, atol=1e-5)


@pytest.mark.parametrize("name", ["fedavg", "fedmcsa", "apfl", "ditto", "scaffold", "perfedavg", "pfedme", "adafl"])
def test_engines_agree(name: str, start: Any) -> None:
    method = tiny(fk.methods.named(name)) if name != "adafl" else fk.methods.named(name)
    if name == "apfl":
        method = replace(method, train=replace(method.train, mix="output"))  # type: ignore[type-var]
    models = []
    for kind in (Stacked, Plain):
        engine, task, state = start(kind, method, numbers(), linear(), dtype=torch.float64)
        for _ in range(3):
            state, _ = rounds.play(method, task, engine, state)
        models.append(tree.flat({"collaborate": state.collaborate, "private": engine.private()}))
    torch.testing.assert_close(*models, rtol=1e-9, atol=1e-10)


def test_scores_are_r2_and_rmse_in_the_targets_own_unit() -> None:
    scale = (1.0, 10.0, 3.0, 0.5)
    fed = numbers(scale=scale)
    run = fk.run(fk.Experiment(fk.methods.fedavg(count=2), fed, linear(), rounds=2, evaluate_every=1, threads=1))
    found = run.predictions
    assert found is not None
    assert found["post"].shape == (24, 1)
    for kind in ("post", "global"):
        for i in range(4):
            mine = found["client"] == i
            out, y = found[kind][mine], found["y"][mine]
            rmse = scale[i] * float(np.sqrt(np.mean((out[:, 0] - y) ** 2)))
            assert run.last("rmse")[kind][i] == pytest.approx(rmse, rel=1e-5)
            assert run.last("r2")[kind][i] == pytest.approx(metrics.value("r2", out, y), rel=1e-5)
    line = run.lines[-1]
    assert "accuracy" not in line
    assert line["metrics"]["r2"]["post"]["macro"] == pytest.approx(run.last()["post"].mean())
    assert line["loss"]["post"] == pytest.approx(np.mean((found["post"][:, 0] - found["y"]) ** 2), rel=1e-5)
    assert (run.metric, run.task, run.accuracies) == ("r2", "regress", {})


@pytest.mark.parametrize("name", ["pfedre", "fedmix", "sfedavg"])
def test_what_needs_classes_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(fk.BadInput, match=r"needs classes, and the targets here are numbers; choose another\."):
        fk.run(fk.Experiment(fk.methods.named(name), numbers(), linear(), rounds=1))


def test_wrong_wishes_are_refused() -> None:
    fed, method = numbers(), fk.methods.fedavg(count=2)
    with pytest.raises(fk.BadInput, match="numbers, which have no accuracy; use --metric r2, rmse"):
        fk.run(fk.Experiment(method, fed, linear(), metric="accuracy"))
    with pytest.raises(fk.BadInput, match="no classes to weigh"):
        fk.run(fk.Experiment(method, fed, linear(), class_weights="balanced"))
    with pytest.raises(fk.BadInput, match=r'task="regress"'):
        fk.run(fk.Experiment(method, replace(fed, task="classify"), linear()))
