"""Which parts make a method, and which are refused in one sentence when it is built."""

from __future__ import annotations

from typing import Any

import pytest

import fedkin as fk
from fedkin.collaborate import Mean, Nothing
from fedkin.keep import Everyone
from fedkin.keep.krum import Krum
from fedkin.parts import Method
from fedkin.select import Active, Attention, Shapley, Uniform
from fedkin.train import SGD, Prox

GOOD: dict[str, Any] = {"select": Uniform(count=1), "train": SGD(), "keep": Everyone(), "collaborate": Mean()}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": ""}, "A method's name is the name of its folder too"),
        ({"name": "../up"}, "A method's name is the name of its folder too"),
        ({"select": Mean()}, "Method 'tried' needs a Select part as select, not Mean"),
        ({"train": Uniform(count=1)}, "Method 'tried' needs a Train part as train, not Uniform"),
        ({"keep": "everyone"}, "Method 'tried' needs a Keep part as keep, not str"),
        ({"collaborate": None}, "Method 'tried' needs a Collaborate part as collaborate, not NoneType"),
        ({"trains": "all"}, "trains must be 'selected' or 'everyone', not 'all'"),
        ({"receives": "nobody"}, "receives must be 'selected' or 'everyone', not 'nobody'"),
        ({"collaborate": Nothing(), "receives": "everyone"}, "everyone receives but only the selected train"),
        ({"trains": "everyone"}, "everyone trains but Mean leaves the others no model to train"),
        ({"train": Prox(start="own")}, "clients cannot start from their own model, because Mean gives them none"),
        ({"select": Shapley(), "collaborate": Nothing()}, "Shapley needs one common model, and Nothing has none"),
        ({"select": Attention(), "collaborate": Nothing()}, "neither Attention nor Everyone can learn anything"),
        ({"keep": Krum(), "collaborate": Nothing()}, "neither Uniform nor Krum can learn anything"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(fk.BadInput, match=sentence) as caught:
        Method(**({"name": "tried"} | GOOD | changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"trains": "everyone", "receives": "everyone"},
        {"collaborate": Nothing(), "trains": "everyone"},
        {"collaborate": Nothing(), "train": Prox(start="own")},
        {"select": Active(), "keep": Krum()},
    ],
)
def test_parts_that_fit_are_taken(changes: dict[str, Any]) -> None:
    Method("tried", **(GOOD | changes))
