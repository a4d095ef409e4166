"""A function that only hands models over is called on stacked models as it stands; any other is lifted by vmap."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.core.tree import Message
from fedkin.engines.stacked import grouped, hands_over

MODEL = {"model": {"w": torch.arange(6.0).reshape(3, 2), "b": torch.ones(3)}}


def passes_on(sent: Message, mine: Message) -> tuple[Message, Message]:
    return {"model": sent["model"], "centre": sent["model"]}, mine


def adds(sent: Message, mine: Message) -> Message:
    return {"model": {name: value + 1 for name, value in sent["model"].items()}}


def makes(sent: Message, mine: Message) -> Message:
    return sent | {"share": {"a": torch.tensor(0.5)}}


def sums(sent: Message, mine: Message) -> Message:
    """On stacked models as they stand this would add up all clients."""
    return {"model": {"w": sent["model"]["w"].sum()}}


@pytest.mark.parametrize(("f", "only"), [(passes_on, True), (adds, False), (makes, False), (sums, False)])
def test_what_computes_or_makes_something_does_not_only_hand_over(f: Any, only: bool) -> None:
    assert hands_over(f, MODEL, {}) is only


@pytest.mark.parametrize("f", [passes_on, adds, makes, sums])
def test_every_client_gets_its_own(f: Any) -> None:
    found = grouped(f, MODEL, torch.ones(3, dtype=torch.bool), {})
    found = found[0] if isinstance(found, tuple) else found
    for i in range(3):
        one = f({"model": {name: value[i] for name, value in MODEL["model"].items()}}, {})
        one = one[0] if isinstance(one, tuple) else one
        for name, model in one.items():
            for key, value in model.items():
                assert torch.equal(found[name][key][i], value)


@pytest.mark.parametrize(("momentum", "only"), [(0.0, True), (0.5, False)])
def test_plain_descent_begins_by_handing_over_and_a_velocity_is_made(momentum: float, only: bool) -> None:
    assert hands_over(fk.train.SGD(momentum=momentum).begin, MODEL, {}) is only


def test_an_update_of_control_variates_needs_its_numbers() -> None:
    part = fk.train.Scaffold()

    def end(sent: Any, carry: Any, mine: Any, *numbers: Tensor) -> Any:
        return part.end(carry, sent, mine, fk.messages.Work(*numbers))

    carry = MODEL | {"control": MODEL["model"], "mine": MODEL["model"]}
    assert not hands_over(end, carry, carry, {"control": MODEL["model"]}, *torch.ones(3, 3))
