"""Dropout changes training, differs from step to step and client to client, and is off when models are judged."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small import composed, equal, seeded
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.engines.batching import Batching
from fedkin.train import SGD


class Own(nn.Module):
    """Not a sequence, so it goes through vmap."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(5, 8), nn.Linear(8, 3), nn.Dropout(0.4)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.drop(torch.relu(self.first(x))))
        return found


NETWORKS: dict[str, Any] = {
    "own": (Own, (5,)),
    "dense": (
        lambda: nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.2), nn.Linear(16, 8), nn.Dropout(0.5), nn.Linear(8, 3)),
        (5,),
    ),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Dropout(0.3), nn.Flatten(), nn.Linear(64, 3)),
        (1, 6, 6),
    ),
}


@pytest.mark.parametrize("kind", [Plain, Stacked])
@pytest.mark.parametrize("name", NETWORKS)
def test_dropout_drops(
    begin: Any, federate: Any, monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Simulation]
) -> None:
    build, shape = NETWORKS[name]
    federation, everyone = federate((4, 4, 9, 9), shape=shape), torch.arange(4)
    run = begin(composed(SGD(eta=0.1, steps=2, batch=4)), kind, module=seeded(build), federation=federation)
    work = run.engine.batching.planned(run.method.train, 1, everyone)
    batching, part = run.engine.batching, run.method.train
    masks = [tree.flat(batching.batch(work, k, slice(None), run.engine.network, part)) for k in range(2)]
    layers = [key for key in masks[0] if key.startswith("mask of ")]
    assert layers
    for layer in layers:
        mask, p = masks[0][layer], run.engine.network.dropouts[layer.removeprefix("mask of ")]
        assert set(mask.unique().tolist()) == {0.0, 1 / (1 - p)}
        assert mask.ne(0).double().mean() == pytest.approx(1 - p, abs=0.2)
        assert not torch.equal(mask, masks[1][layer])
        assert not torch.equal(mask[0], mask[1])
    models = tree.repeated(run.engine.network.model, 4)
    judged = [run.engine.score(models, everyone, "test").loss for _ in range(2)]
    assert torch.equal(*judged)
    before = run.model
    run.round()
    equal(run.model, run.mean(before, 1, [0, 1, 2, 3]))  # with the masks that come with the batches
    monkeypatch.setattr(Batching, "masks", lambda *_: {})
    whole = run.mean(before, 1, [0, 1, 2, 3])
    assert any(not torch.allclose(run.model[key], value, atol=1e-4) for key, value in whole.items())
