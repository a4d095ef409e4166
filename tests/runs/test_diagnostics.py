"""What is recorded of irrelevant clients and of heterogeneity, against sums by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import fedkin as fk
from fedkin.core import tree
from fedkin.runs import diagnostics
from fedkin.runs.run import Run
from fedkin.runs.verdict import gain


def losses(federation: fk.Federation, models: list[dict[str, Tensor]]) -> np.ndarray:
    """Each client's mean training loss with its model."""
    found = []
    for client, model in enumerate(models):
        rows = federation.train[client]
        weight, bias = model["1.weight"], model["1.bias"]
        logits = federation.x[rows].flatten(1).to(weight.dtype) @ weight.mT + bias
        found.append(float(F.cross_entropy(logits, federation.y[rows])))
    return np.array(found)


def test_the_training_loss_is_of_the_relevant(federate: Any) -> None:
    federation = federate([5, 9, 6, 8, 4, 7, 5, 6], 2, (4,), 3)
    result = fk.run(fk.Experiment(fk.methods.pfedre(), federation, "mlr", rounds=2, evaluate_every=1, dtype="float64"))
    relevant, sizes = (~federation.irrelevant).numpy(), federation.train.sizes.numpy()
    each = losses(federation, [result.models["global"]] * 8)
    expected = np.average(each[relevant], weights=sizes[relevant])
    assert result.lines[-1]["train"]["relevant_loss"] == pytest.approx(expected, rel=1e-6)
    assert expected != pytest.approx(np.average(each, weights=sizes), rel=1e-4)


def test_without_irrelevant_clients_nothing_is_said_of_them() -> None:
    line = fk.run(fk.Experiment(fk.methods.pfedre(), fk.Data("digits", clients=4), "mlr", rounds=1)).lines[-1]
    assert not {"filter", "train", "heterogeneity"} & set(line)


def test_the_gap_is_what_personal_models_save(federate: Any) -> None:
    federation = federate([5, 9, 6, 8], 2, (4,), 3)
    experiment = fk.Experiment(
        fk.methods.pfedre(), federation, "mlr", rounds=2, evaluate_every=2, dtype="float64", heterogeneity=True
    )
    result = fk.run(experiment)
    assert "heterogeneity" not in result.lines[0]
    common = losses(federation, [result.models["global"]] * 4)
    own = losses(federation, [tree.row(result.models["personal"], i) for i in range(4)])
    expected = np.average(common - own, weights=federation.train.sizes.numpy())
    assert result.lines[-1]["heterogeneity"]["gap"] == pytest.approx(expected, rel=1e-6)


def test_everybody_counting_has_no_skew(federate: Any) -> None:
    """Then the mean over those that count is the mean over all."""
    federation = federate([5, 9, 6, 8], 2, (4,), 3)
    method = fk.methods.ditto(lam=0.0, count=4)
    experiment = fk.Experiment(method, federation, "mlr", rounds=5, dtype="float64", heterogeneity=True)
    found = fk.run(experiment).lines[-1]["heterogeneity"]["skew"]
    assert found is None or found == pytest.approx(1.0)


def test_uploads_of_some_layers_have_no_skew(federate: Any) -> None:
    """A part of a network has no loss."""
    federation = federate([5, 9, 6, 8], 2, (4,), 3)
    experiment = fk.Experiment(fk.methods.fedbabu(count=4), federation, "dnn:3", rounds=1, heterogeneity=True)
    found = fk.run(experiment).lines[-1]["heterogeneity"]
    assert found["gap"] is not None
    assert found["skew"] is None


def test_the_skew_by_hand() -> None:
    sizes, kept = np.array([1.0, 2.0, 1.0]), np.array([1.0, 1.0, 0.0])
    local, own = np.array([3.0, 2.0, 9.0]), np.array([1.0, 1.0, 1.0])
    # those that count: (1*2 + 2*1) / 3; all: (1*2 + 2*1 + 1*8) / 4
    assert diagnostics.skew(sizes, kept, local, own) == pytest.approx((4 / 3) / 3)
    assert diagnostics.skew(sizes, np.zeros(3), local, own) is None
    assert diagnostics.skew(sizes, kept, own, own) is None


def test_a_round_that_keeps_a_client_out_is_skewed(federate: Any) -> None:
    """The recorded skew is the formula's, with the uploads' losses taken from the round itself."""
    federation = replace(federate([5, 9, 6, 8], 2, (4,), 3), irrelevant=torch.tensor([False, True, False, False]))
    method = fk.methods.oracle(fk.methods.pfedre(beta="ditto", eta_v=0.5))
    experiment = fk.Experiment(method, federation, "mlr", rounds=1, dtype="float64", heterogeneity=True)
    result = fk.run(experiment)
    uploads = [
        fk.run(
            fk.Experiment(fk.methods.oracle(method), only(federation, client), "mlr", rounds=1, dtype="float64")
        ).models["global"]
        for client in range(4)
    ]
    sizes, kept = federation.train.sizes.double().numpy(), np.array([1.0, 0.0, 1.0, 1.0])
    own = losses(federation, [tree.row(result.models["personal"], i) for i in range(4)])
    expected = diagnostics.skew(sizes, kept, losses(federation, uploads), own)
    assert result.lines[-1]["heterogeneity"]["skew"] == pytest.approx(expected, rel=1e-6)


def only(federation: fk.Federation, client: int) -> fk.Federation:
    """The same clients, of which all but one are irrelevant: an oracle's model is then that one's upload."""
    return replace(federation, irrelevant=torch.arange(federation.n) != client)


@pytest.mark.parametrize("resumed", [False, True])
def test_how_often_each_client_took_part_and_was_left_out(federate: Any, tmp_path: Path, resumed: bool) -> None:
    federation = federate([6] * 8, 2, (4,), 3)
    method = fk.methods.oracle(fk.methods.fedavg(count=5))
    experiment = fk.Experiment(method, federation, "mlr", rounds=6)
    if resumed:
        fk.run(replace(experiment, rounds=3), tmp_path / "run")
        result = fk.run(experiment, tmp_path / "run", resume=True)
    else:
        result = fk.run(experiment)
    table = result.clients()
    assert table["selected"].sum() == 6 * 5
    assert (table["replied"] == table["selected"]).all()
    assert (table["irrelevant"] == federation.irrelevant.numpy()).all()
    assert (table["left_out"] == table["selected"].where(table["irrelevant"], 0)).all()
    assert table["left_out"].sum() > 0
    assert result.summary["never_selected"] == (table["selected"] == 0).sum()


def test_the_gain_over_alone_is_that_of_the_relevant(tmp_path: Path) -> None:
    """A client with wrong labels gains by any model; it says nothing of whether joining is worth it."""
    data = fk.Data("digits", clients=6, irrelevant="flip:0.34")
    for name in ("local", "fedavg"):
        experiment = fk.Experiment(fk.methods.named(name), data, "mlr", rounds=3, evaluate_every=3)
        fk.run(experiment, tmp_path / name / "seed-0")
    truth = fk.load_data(data).irrelevant.numpy()
    gained = gain(*(Run(tmp_path / name / "seed-0") for name in ("fedavg", "local")))
    assert np.isnan(gained[truth]).all()
    assert np.isfinite(gained[~truth]).all()


def test_sfedavg_says_what_its_server_has() -> None:
    said: list[str] = []
    data = fk.Data("digits", clients=4, server=50)
    fk.run(fk.Experiment(fk.methods.sfedavg(), data, "mlr", rounds=1), warn=said.append)
    assert any("50 clean samples" in sentence for sentence in said)
