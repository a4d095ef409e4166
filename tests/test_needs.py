"""What parts need of each other, and what a collaborate part gives to them."""

from __future__ import annotations

import pytest
import torch

import fedkin as fk
from fedkin.collaborate import Mean, Nothing
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Active, Attention, Dismiss, Shapley, Uniform
from fedkin.train import SGD


def method(select: fk.Select, collaborate: fk.Collaborate) -> Method:
    return Method("toy", select, SGD(), Everyone(), collaborate)


@pytest.mark.parametrize("base", [Attention(), Active()])
def test_dismiss_needs_replies_where_its_base_does(base: fk.Select) -> None:
    for select in (base, Dismiss(base=base)):
        with pytest.raises(fk.BadInput, match="nothing is ever sent"):
            method(select, Nothing())
        method(select, Mean())


def test_dismiss_passes_on_the_cautions_of_its_base() -> None:
    model = {"w": torch.zeros(1)}
    validation = {"x": torch.zeros(7, 1), "y": torch.zeros(7)}
    task = fk.Task(3, torch.ones(3), 2, model, lambda model, batch: torch.zeros(()), validation)
    said = Dismiss(base=Shapley()).cautions(task)
    assert said == Shapley().cautions(task)
    assert "7 clean samples" in said[0]
    assert Dismiss(base=Uniform(count=2)).cautions(task) == []
