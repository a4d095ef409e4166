"""Dummy labels that are fitted together with the dummy samples, as DLG does."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.keep.inversion import balanced, descended, inverted, mismatch

CLASSES = 3


def linear(model: Model, batch: Batch) -> Tensor:
    return batch["x"] @ model["W"].mT + model["b"]


def test_one_sample_and_its_label_in_closed_form() -> None:
    """A linear model at zero says 1 / c for each of c classes, so the gradient on a sample x with shares p is
    (1 / c - p) for b and (1 / c - p) x' for W: it has one solution, p and x themselves."""
    zero = {"W": torch.zeros(1, CLASSES, 2, dtype=torch.float64), "b": torch.zeros(1, CLASSES, dtype=torch.float64)}
    x, p = torch.tensor([0.7, -1.2], dtype=torch.float64), torch.tensor([0.2, 0.7, 0.1], dtype=torch.float64)
    off = 1 / CLASSES - p
    goal = {"W": (off[:, None] * x)[None], "b": off[None]}
    begun, y = torch.zeros(1, 2, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    soft = torch.zeros(1, CLASSES, dtype=torch.float64)
    found = descended(linear, zero, goal, begun, y, 1500, 0.05, lambda share: None, soft)
    torch.testing.assert_close(found["x"][0, 0], x, rtol=0, atol=1e-3)
    torch.testing.assert_close(found["y"][0, 0].softmax(-1), p, rtol=0, atol=1e-3)
    fixed = descended(linear, zero, goal, begun, y, 1500, 0.05, lambda share: None)
    assert set(fixed) == {"x"}
    assert float(mismatch(linear, tree.row(zero, 0), fixed["x"][0], y, tree.row(goal, 0))) > 0.1


def problem(m: int) -> tuple[Model, Model, Tensor, Tensor]:
    """The models and targets of m clients, and the samples and labels from which all dummies start."""
    draw = torch.Generator().manual_seed(5)
    random = lambda *shape: torch.randn(*shape, generator=draw, dtype=torch.float64)  # noqa: E731
    models = {"W": random(m, CLASSES, 4), "b": random(m, CLASSES)}
    targets = {"W": 0.3 * random(m, CLASSES, 4), "b": 0.1 * random(m, CLASSES)}
    y = balanced(CLASSES, 2)
    return models, targets, random(len(y), 4), y


def test_soft_labels_at_a_class_are_that_class() -> None:
    """Numbers so far apart that their softmax is one class have no slope: the samples move as with fixed labels."""
    models, goal, start, y = problem(2)
    far = 1e3 * F.one_hot(y, CLASSES).double()
    found = inverted(linear, models, goal, start, y, 12, 0.1, soft=far)
    torch.testing.assert_close(found, inverted(linear, models, goal, start, y, 12, 0.1), rtol=0, atol=1e-12)


def test_fitted_labels_fit_better() -> None:
    models, goal, start, y = problem(3)
    soft = F.one_hot(y, CLASSES).double()
    fixed = inverted(linear, models, goal, start, y, 100, 0.1)
    found = descended(linear, models, goal, start, y, 100, 0.1, lambda share: None, soft)
    for i in range(3):
        model, wanted = tree.row(models, i), tree.row(goal, i)
        learned = mismatch(linear, model, found["x"][i], found["y"][i].softmax(-1), wanted)
        assert float(learned) < float(mismatch(linear, model, fixed[i], y, wanted))
    assert not torch.equal(found["y"][0], found["y"][1])
