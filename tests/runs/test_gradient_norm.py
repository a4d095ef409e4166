"""The gradient that FedACS's theorem bounds, against loops; and a record of runs that diverge."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import fedkin as fk
from fedkin.collaborate import SimilarityThreshold
from fedkin.core import tree
from fedkin.engines import batching
from fedkin.runs import diagnostics
from fedkin.train import SGD

METHOD = replace(fk.methods.fedacs(p=0.4, alpha=0.5, gamma=1.0), train=SGD(eta=0.2, steps=1, batch=100, gamma=1.0))


def ran(federation: fk.Federation, method: fk.Method, rounds: int = 3, **more: Any) -> fk.Result:
    how = {"dtype": "float64", "evaluate_every": 1, "gradient_norm": True} | more
    return fk.run(fk.Experiment(method, federation, "mlr", rounds, **how))


def flat(model: dict[str, Tensor]) -> Tensor:
    return torch.cat([model[name].flatten() for name in ("1.weight", "1.bias")])


def slope(federation: fk.Federation, client: int, model: dict[str, Tensor], balanced: bool = False) -> Tensor:
    """The gradient of the client's mean training loss, by torch on all its samples at once."""
    rows = federation.train[client]
    leaves = {name: value.clone().requires_grad_() for name, value in model.items()}
    logits = federation.x[rows].flatten(1).double() @ leaves["1.weight"].mT + leaves["1.bias"]
    y = federation.y[rows]
    each = F.cross_entropy(logits, y, reduction="none")
    counts = torch.bincount(y, minlength=3).double()
    weight = 1.0 / counts[y] if balanced else torch.ones(len(y), dtype=torch.float64)
    ((each * weight).sum() / weight.sum()).backward()
    return flat({name: value.grad for name, value in leaves.items() if value.grad is not None})


@pytest.mark.parametrize("engine", ["stacked", "plain"])
def test_the_norm_by_hand(federate: Any, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """|grad F(W) + lambda grad R(W)|, grad R(W)_i = w_i - sum_j a_ij w_j, lambda = alpha / eta: both fall together."""
    monkeypatch.setattr(batching, "BLOCK", 4)
    federation = federate([5, 9, 6, 8], 2, (4,), 3)
    result = ran(federation, METHOD, engine=engine)
    models = [tree.row(result.models["personal"], i) for i in range(4)]
    W = torch.stack([flat(model) for model in models])
    a = SimilarityThreshold(0.4).weights(result.models["personal"], torch.ones(4, dtype=torch.float64))["model"]
    loss, pull, both = 0.0, 0.0, 0.0
    for i in range(4):
        f = slope(federation, i, models[i])
        r = 0.5 / 0.2 * (W[i] - sum(a[i, j] * W[j] for j in range(4)))
        loss, pull, both = loss + float(f @ f), pull + float(r @ r), both + float((f + r) @ (f + r))
    found = result.lines[-1]["gradient"]
    assert pull > 1e-6
    assert found == pytest.approx({"norm": sqrt(both), "loss": sqrt(loss), "pull": sqrt(pull)}, rel=1e-9)
    assert result.summary["observed"]["gradient"]["norm"]["last"] == found["norm"]


def test_a_round_is_a_step_down_this_gradient(federate: Any) -> None:
    """With steps that are small enough the norm falls, from the first scored round to the last."""
    federation = federate([8, 8, 8], 2, (4,), 3)
    slow = replace(METHOD, train=SGD(eta=0.05, steps=1, batch=100), collaborate=SimilarityThreshold(None, alpha=0.05))
    norms = [line["gradient"]["norm"] for line in ran(federation, slow, 40).lines]
    assert norms[-1] < 0.7 * norms[0]


@pytest.mark.parametrize("name", ["fedavg", "local", "ditto"])
def test_without_mixtures_there_is_the_gradient_of_the_losses(federate: Any, name: str) -> None:
    federation = federate([5, 9, 6, 8], 2, (4,), 3)
    result = ran(federation, fk.methods.METHODS[name](), class_weights="balanced")
    common = result.models.get("global")
    models = [common or tree.row(result.models["personal"], i) for i in range(4)]
    squares = sum(float(slope(federation, i, models[i], balanced=True).square().sum()) for i in range(4))
    found = result.lines[-1]["gradient"]
    assert found == {"norm": None, "loss": pytest.approx(sqrt(squares), rel=1e-9), "pull": None}


def test_nobody_is_asked_who_does_not_ask(federate: Any) -> None:
    federation = federate([5, 9], 2, (4,), 3)
    one, other = ran(federation, METHOD), ran(federation, METHOD, gradient_norm=False)
    assert not any("gradient" in line for line in other.lines)
    assert all(torch.equal(one.models["personal"][name], value) for name, value in other.models["personal"].items())
    with pytest.raises(fk.BadInput, match="gradient_norm is true or false"):
        ran(federation, METHOD, gradient_norm=1)


@pytest.mark.parametrize("name", ["pfedre", "fedacs"])
def test_a_run_that_diverges_is_recorded(tmp_path: Path, name: str) -> None:
    """The run goes on, and what it records is finite or null."""
    method = fk.methods.METHODS[name](eta=100.0)
    experiment = fk.Experiment(method, fk.Data("digits", clients=4), "dnn:8", rounds=4, evaluate_every=1)
    result = fk.run(replace(experiment, heterogeneity=True, gradient_norm=True), tmp_path / "run")
    assert len(result.lines) == 4
    for line in result.lines:
        json.dumps(line, allow_nan=False)
        assert line["heterogeneity"].keys() >= {"gap"}


def test_infinite_losses_have_no_gap_and_no_skew() -> None:
    sizes, infinite, own = np.ones(2), np.array([np.inf, np.inf]), np.array([np.inf, 1.0])
    assert diagnostics.finite(diagnostics.gap(sizes, infinite, own)) is None
    assert diagnostics.finite(diagnostics.skew(sizes, np.ones(2), infinite, own)) is None
