"""The engine `ray` with two actors is the engine `stacked`: the same selections, batches and picks, and the same models,
scores and outputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from seen import agree, close, played
from small import seeded, seen_round
from test_engines_agree import COMPOSED, EVERY, SIZES, mlp

from fedkin import round as rounds
from fedkin.core import tree
from fedkin.engines import Ray, Stacked

NAMED = ("fedavg", "fedmcsa", "fedacs", "adafl", "pfedre", "scaffold", "ditto", "fedmix", "apfl", "perfedavg")
CLOSE: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-9}


@pytest.mark.parametrize("name", NAMED)
def test_two_actors_are_stacked(ray_here: Any, federate: Any, start: Any, name: str) -> None:
    method, federation = EVERY[name], federate(SIZES, shape=(6,))
    options = {"chunk": 4, "dtype": torch.float64}
    stacked = played(start(Stacked, method, federation, mlp(), **options), method, evaluates=True)
    actors = played(start(Ray, method, federation, mlp(), actors=2, **options), method, evaluates=True)
    agree(stacked, actors, 1e-7)
