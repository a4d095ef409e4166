"""The federation of a golden test's module, and a method on it beside its transcription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import CLASSES, FEATURES, SEED
from transcribed import Card, Round

from fedkin.data.federation import Federation
from fedkin.engines import Stacked
from fedkin.parts import Method


@pytest.fixture
def federation(request: pytest.FixtureRequest, federate: Any) -> Federation:
    """Clients with as many samples as the module's TRAIN and TEST say."""
    made: Federation = federate(request.module.TRAIN, request.module.TEST, (FEATURES,), CLASSES)
    return made


@pytest.fixture
def started(federation: Federation, start: Any) -> Callable[..., Any]:
    """`started(method)`: the engine, the task and the server before round 1, in float64 and in chunks of two; `on`
    another federation than the module's."""

    def build(method: Method, on: Federation | None = None, **options: Any) -> Any:
        chosen = {"seed": SEED, "chunk": 2, "dtype": torch.float64} | options
        return start(Stacked, method, on or federation, net.network(), **chosen)

    return build


@pytest.fixture
def checked(federation: Federation, started: Any) -> Callable[..., list[Round]]:
    """`checked(method, card)`: every round is what the card says; with `again` also in a run of the experiment."""

    def check(method: Method, card: Card, again: bool = False, on: Federation | None = None) -> list[Round]:
        return by_hand.checked(started(method, on, rounds=net.ROUNDS), method, on or federation, card, again)

    return check
