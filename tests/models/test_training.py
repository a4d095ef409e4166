"""Small variants of the large networks learn, their updates can be inverted, and a run on text is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small import CLASSES, LENGTH, TOKENS, composed, learnable

import fedkin as fk
from fedkin.models import build
from fedkin.train import SGD


@pytest.mark.parametrize(("spec", "rate"), [("lstm:16,1,8", 0.5), ("vgg11:8", 0.005), ("resnet50:2", 0.01)])
def test_they_learn(spec: str, rate: float) -> None:
    fed = learnable(spec.startswith("lstm"))
    method = composed(SGD(eta=rate, steps=10, batch=5))
    found = fk.run(fk.Experiment(method, fed, spec, rounds=2, threads=1, score=("global",)))
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
    """PFedRe keeps two of three updates; text is inverted at its embedding."""
    chosen = fk.methods.pfedre(epochs=1, batch=5, iterations=3, eta=0.02)
    fed = learnable(spec.startswith("lstm"))
    found = fk.run(fk.Experiment(chosen, fed, spec, rounds=2, dtype="float64", threads=1))
    assert [line["kept"] for line in found.lines] == [2.0, 2.0]


def test_a_run_on_text_is_read_back(tmp_path: Path) -> None:
    fed = learnable(text=True)
    method = composed(SGD(eta=0.05, steps=2, batch=5, momentum=0.5))
    found = fk.run(fk.Experiment(method, fed, "lstm:6,2,4", rounds=1), tmp_path / "run")
    module = fk.load_run(tmp_path / "run").model()
    again: Any = build("lstm:6,2,4", (LENGTH,), CLASSES, 0, TOKENS)
    again.load_state_dict(found.models["global"])
    torch.testing.assert_close(module(fed.x), again(fed.x))
