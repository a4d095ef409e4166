"""Ditto's client: the shared model trains as if it were alone, the private one is pulled towards what was sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fedkin.train import SGD, TwoStreams

from .quadratic import START, WAYS, F, ended, tensor, work

OWN = tensor(1.0, 2.0, 3.0)
PART = TwoStreams(eta=0.1, lam=2.0, batches="same")


def both(way: Any, part: TwoStreams, steps: int) -> Any:
    return way(part, {"model": {"w": START}}, F, steps, {"personal": {"w": OWN}})


@WAYS
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_the_pull_has_a_gradient_in_the_private_model_alone(way: Any, momentum: float) -> None:
    found = both(way, replace(PART, momentum=momentum), 2000)
    torch.testing.assert_close(found["personal"]["w"], (F.a * F.b + 2.0 * START) / (F.a + 2.0))
    torch.testing.assert_close(found["model"]["w"], ended(way, SGD(eta=0.1, momentum=momentum), 2000))


@WAYS
def test_the_private_model_has_its_own_rate(way: Any) -> None:
    found = both(way, replace(PART, eta_v=0.3), 1)
    torch.testing.assert_close(found["personal"]["w"], OWN - 0.3 * (F.a * (OWN - F.b) + 2.0 * (OWN - START)))
    torch.testing.assert_close(found["model"]["w"], START - 0.1 * F.a * (START - F.b))


@pytest.mark.parametrize("restart", [False, True])
def test_the_private_model_goes_on_or_begins_where_the_round_does(restart: bool) -> None:
    carry = replace(PART, restart=restart).begin({"model": {"w": START}}, {"personal": {"w": OWN}})
    assert carry["personal"]["w"] is (START if restart else OWN)
    assert carry["centre"]["w"] is START


@pytest.mark.parametrize(("batches", "last"), [("own", 1), ("same", 0)])
def test_which_batches_the_private_model_takes(batches: Any, last: int) -> None:
    part = replace(PART, batches=batches)
    assert part.batches_per_step == last + 1
    assert [descent.batch for descent in part.descents()] == [0, last]


def test_only_the_shared_model_is_uploaded_and_the_private_one_is_judged() -> None:
    mine: Any = {"personal": {"w": OWN}}
    carry = {"model": {"w": START}, "personal": {"w": F.b}, "centre": {"w": START}}
    kept, upload = PART.end(carry, {"model": {"w": START}}, mine, work())
    assert kept == {"personal": carry["personal"]}
    assert upload == {"model": carry["model"]}
    assert PART.personal_model(None, kept, {}, F) is carry["personal"]
