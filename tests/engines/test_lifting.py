"""Modules that vmap cannot run: the stacked engine names the layer, and the plain one trains them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fedkin as fk
from fedkin.core import tree
from fedkin.engines.network import Network


class Gate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else x.relu()


class Scale(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / (1 + float(x.detach().abs().max()))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"memory": nn.LSTM(1, 4, batch_first=True)})
        self.last = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.inner["memory"](x[..., None])[0][:, -1])
        return found


class Whole(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (1 if x.sum() > 0 else 2)


MODULES: dict[str, tuple[Any, str]] = {
    "branch": (lambda: nn.Sequential(nn.Linear(5, 4), Gate(), nn.Linear(4, 3)), r"Layer '1' \(Gate\)"),
    "item": (lambda: nn.Sequential(nn.Linear(5, 4), Scale(), nn.Linear(4, 3)), r"Layer '1' \(Scale\)"),
    "lstm": (Recurrent, r"Layer 'inner.memory' \(LSTM\)"),
    "whole": (lambda: Whole(5, 3), r"The model \(Whole\)"),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_layer_is_named_and_the_plain_engine_runs_it(federate: Any, name: str) -> None:
    module, layer = MODULES[name]
    federation = federate((7, 5, 9))
    experiment = {"data": federation, "model": module(), "rounds": 2}
    sentence = rf"^{layer} cannot run for many clients at once; use --engine plain, or another layer\.$"
    with pytest.raises(fk.BadInput, match=sentence):
        fk.run(fk.Experiment(fk.methods.fedavg(count=2), **experiment))
    for method in (fk.methods.fedavg(count=2), fk.methods.apfl(count=2)):  # APFL's models predict in their own way
        run = fk.run(fk.Experiment(method, **experiment, engine="plain"))
        assert run.finished
        assert all(value.isfinite().all() for value in tree.flat(run.models).values())


@pytest.mark.parametrize("name", MODULES)
def test_one_after_another_is_each_by_itself(name: str) -> None:
    network = Network(MODULES[name][0](), torch.zeros(5), 4)
    assert network.unlifted is not None
    gen = torch.Generator().manual_seed(0)
    stacked = tree.mapped(lambda value: torch.randn(3, *value.shape, generator=gen), network.model)
    batch = {"x": torch.randn(3, 4, 5, generator=gen)}
    found = network.stacked_logits(stacked, batch)
    for i in range(3):
        torch.testing.assert_close(found[i], network.logits(tree.row(stacked, i), tree.row(batch, i)), rtol=0, atol=0)


def test_what_vmap_runs_is_not_looped() -> None:
    network = Network(nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 3)), torch.zeros(5), 4)
    assert network.layers is None
    assert network.unlifted is None
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in network.module.modules())


def test_an_update_that_cannot_be_inverted_at_once_is_a_sentence(federate: Any) -> None:
    module = nn.Sequential(nn.Linear(5, 4), Gate(), nn.Linear(4, 3))
    experiment = fk.Experiment(fk.methods.pfedre(), federate((7, 5, 9)), module, rounds=1, engine="plain")
    with pytest.raises(fk.BadInput, match=r"cannot be inverted at once; use another layer, or --set keep=Alignment\.$"):
        fk.run(experiment)
