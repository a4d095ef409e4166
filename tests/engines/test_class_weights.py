"""With balanced class weights all classes of a client count the same in its training, as torch and scikit-learn say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from small import network, tiny
from torch import nn
from torch.func import functional_call

import fedkin as fk
from fedkin import round as rounds
from fedkin.core import tree
from fedkin.engines import Plain, Stacked
from fedkin.engines.batching import balanced_weights
from fedkin.train import SGD

SIZES = (1, 3, 17, 25, 10)


def test_weights_are_those_of_scikit_learn(federate: Any) -> None:
    fed = federate(SIZES)
    found = balanced_weights(fed).numpy()
    for client in range(len(SIZES)):
        y = fed.y[fed.train[client]].numpy()
        classes = np.unique(y)
        np.testing.assert_allclose(found[client, classes], compute_class_weight("balanced", classes=classes, y=y))
        assert set(np.flatnonzero(found[client])) == set(classes)


@pytest.mark.parametrize("kind", [Stacked, Plain])
@pytest.mark.parametrize("batch", [4, 64])
def test_a_step_is_that_of_torchs_weighted_loss(federate: Any, start: Any, kind: Any, batch: int) -> None:
    """Batches that are full and batches that are not; fused and by autograd."""
    fed = federate(SIZES)
    for module in (network(), nn.Sequential(nn.Linear(5, 3))):
        method = fk.methods.local()
        method = replace(method, train=SGD(eta=0.1, steps=1, batch=batch))
        engine, task, state = start(kind, method, fed, module, dtype=torch.float64, balanced=True)
        weights = balanced_weights(fed)
        before = engine.network.model
        rounds.play(method, task, engine, state)
        for client in range(len(SIZES)):
            work = engine.batching.planned(method.train, 1, torch.tensor([client]))
            rows = work.rows[0, 0, : int(work.count[0, 0])]
            x, y = fed.x[rows].double(), fed.y[rows]
            loss = nn.CrossEntropyLoss(weight=weights[client])
            leaves = {name: value.clone().requires_grad_() for name, value in before.items()}
            loss(functional_call(engine.network.module, leaves, (x,)), y).backward()
            by_hand = {name: value.detach() - 0.1 * value.grad for name, value in leaves.items()}
            got = tree.row(engine.current(torch.tensor([client]), "model"), 0)
            torch.testing.assert_close(dict(got), by_hand, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["fedavg", "fedmcsa", "apfl", "perfedavg", "fedmix", "ditto"])
def test_every_method_honours_them(federate: Any, name: str) -> None:
    fed = federate((12, 20, 9), test=5)
    asked = fk.Experiment(tiny(fk.methods.named(name), batch=8), fed, "mlr", rounds=2, evaluate_every=2, threads=1)
    plain, weighted = fk.run(asked), fk.run(replace(asked, class_weights="balanced"))
    assert plain.lines[-1]["loss"] != weighted.lines[-1]["loss"]
    again = fk.run(replace(asked, class_weights="balanced", engine="plain"))
    assert again.lines[-1]["loss"]["post"] == pytest.approx(weighted.lines[-1]["loss"]["post"], rel=1e-4)


def test_weights_are_part_of_the_experiment(federate: Any, tmp_path: Any) -> None:
    fed = federate((12, 20, 9))
    asked = fk.Experiment(fk.methods.fedavg(count=2), fed, "mlr", rounds=2, class_weights="balanced")
    fk.run(asked, tmp_path)
    with pytest.raises(fk.BadInput, match="class_weights is 'balanced' there and None here"):
        fk.run(replace(asked, class_weights=None, rounds=3), tmp_path, resume=True)
    with pytest.raises(fk.BadInput, match="class_weights is 'balanced' or nothing"):
        fk.Experiment(fk.methods.fedavg(), class_weights="even")
