"""With whom a site learns, from the stored mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fedkin.answers.kin import kin_of, mean_weights
from fedkin.messages import Kin


class Stored:
    """What `mean_weights` reads of a run."""

    n = 4

    def __init__(self, kin: dict[int, Kin]):
        self.stored = kin

    def kin(self) -> dict[int, Kin]:
        return self.stored


def mixture(rows: list[list[float]]) -> Kin:
    everyone = torch.arange(4)
    return Kin(everyone, everyone, {"model": torch.tensor(rows)})


def test_kin_are_those_above_an_even_spread_closest_first() -> None:
    weights = np.array([[0.0, 0.3, 0.05, 0.15], [0.2, 0.0, 0.2, 0.2], [0.0, 0.0, 0.0, 0.0], [0.0, 0.1, 0.0, 0.0]])
    assert kin_of(weights, 0) == [1], "the even spread is 0.167"
    assert kin_of(weights, 1) == [], "everybody alike is nobody in particular"
    assert kin_of(weights, 2) == []
    assert kin_of(weights, 3) == [1]
    nearly = np.array([[0.0, 0.32, 0.3, 0.2], *([[0.0] * 4] * 3)])
    assert kin_of(nearly, 0) == [], "a sixth more than the even spread is no preference"


def test_only_the_last_quarter_of_the_rounds_counts_and_the_own_model_does_not() -> None:
    early = mixture([[0.1, 0.9, 0.0, 0.0]] * 4)
    late = mixture([[0.6, 0.0, 0.4, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    run: Any = Stored({1: early, 2: early, 3: early, 4: late})
    found = mean_weights([run])
    assert found is not None
    np.testing.assert_allclose(found[0], [0.0, 0.0, 0.4, 0.0], atol=1e-7)
    assert mean_weights([Stored({})]) is None  # type: ignore[list-item]


def test_nobodys_kin_are_named_where_not_all_weights_were_stored() -> None:
    few = mixture([[0.6, 0.0, 0.4, 0.0]] * 4).largest(2)
    run: Any = Stored({1: few})
    assert mean_weights([run]) is None
    run = Stored({1: few.whole()})
    run.n = 5001
    assert mean_weights([run]) is None
