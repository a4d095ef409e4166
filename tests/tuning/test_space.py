"""Spaces: how they are written, what is refused, and what is tried of a method for which none is said."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import fedkin as fk
from fedkin.methods import METHODS
from fedkin.runs.settings import with_settings
from fedkin.tuning.space import Choices, Range, check_used, default_space, grid_size, read_space

FEDMCSA = fk.methods.fedmcsa()


def test_ranges_and_lists_are_read_and_written_alike() -> None:
    words = ["lam=0.1..10:log", "collaborate.sigma=10,30,50", "train.steps=5..50", "train.momentum=0..0.9"]
    space = read_space(FEDMCSA, words)
    assert space == {
        "train.lam": Range(0.1, 10.0, log=True),
        "collaborate.sigma": Choices(("10", "30", "50")),
        "train.steps": Range(5.0, 50.0, whole=True),
        "train.momentum": Range(0.0, 0.9),
    }
    assert read_space(FEDMCSA, {path: str(axis) for path, axis in space.items()}) == space
    assert read_space(FEDMCSA, {"collaborate.sigma": [10, 30, 50]})["collaborate.sigma"] == Choices(("10", "30", "50"))


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("lam=10..1", "the first number must be below the second"),
        ("lam=0..1:log", "a logarithmic range begins above 0"),
        ("lam=1..2:loud", "may end with :log and nothing else"),
        ("lam=a..b", "the ends of a range are numbers"),
        ("train.steps=0.5..2", "must be whole numbers"),
        ("train.eta=-1..1", "must be positive"),
        ("collaborate.sigma=1,-2", "cannot be negative"),
        ("lam", "should look like part.field=value"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(word: str, sentence: str) -> None:
    with pytest.raises(fk.BadInput, match=sentence):
        read_space(FEDMCSA, [word])


def test_a_field_that_no_method_has_is_refused() -> None:
    check_used([FEDMCSA, fk.methods.fedavg()], ["sigma=1,2"])
    with pytest.raises(fk.BadInput, match="None of fedavg has a field 'sigma'"):
        check_used([fk.methods.fedavg()], ["sigma=1,2"])
    with pytest.raises(fk.BadInput, match=r"names train\.lam twice"):
        read_space(FEDMCSA, ["lam=1,2", "train.lam=3,4"])


def test_a_number_that_is_tried_can_be_read_and_stays_in_its_range() -> None:
    axis = Range(0.12345678, 0.987654321)
    assert axis.text(0.55555555) == "0.5556"
    assert axis.ends == ("0.1235", "0.987654321")
    assert read_space(FEDMCSA, {"train.momentum": str(axis)}) == {"train.momentum": axis}
    assert Range(1, 9, whole=True).text(3) == "3"


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_has_a_space_around_its_own_settings(name: str) -> None:
    method = METHODS[name]()
    space = default_space(method)
    assert "train.eta" in space
    assert not any("count" in path or "fraction" in path or "steps" in path for path in space), "the budget stays"
    for path, axis in space.items():
        assert isinstance(axis, Range)
        value = method
        for word in path.split("."):
            value = getattr(value, word)
        assert axis.low < value < axis.high
        assert axis.log == (axis.high > 2 * value and axis.low < value / 6), (path, axis)


def test_the_default_space_of_fedmcsa_is_that_of_its_function() -> None:
    found = {path: str(axis) for path, axis in default_space(FEDMCSA).items()}
    assert found == {
        "train.eta": "0.002..0.2:log",
        "train.lam": "0.5..50:log",
        "collaborate.sigma": "5..500:log",
    }
    assert str(default_space(fk.methods.fedacs())["collaborate.p"]) == "0.18..0.98"


@dataclass(frozen=True)
class Momentum(fk.collaborate.Mean):
    """A part of a user, which declares nothing but its field."""

    share: fk.fields.Share = 0.5
    off: fk.fields.NonNegative = 0.0


def test_a_method_of_ones_own_is_tuned_by_its_annotations() -> None:
    mine = replace(fk.methods.fedavg(), name="mine", collaborate=Momentum())
    assert {path: str(axis) for path, axis in default_space(mine).items()} == {
        "train.eta": "0.002..0.2:log",
        "collaborate.share": "0.1..0.9",
    }


def test_a_grid_is_made_of_lists() -> None:
    assert grid_size(read_space(FEDMCSA, ["lam=1,5,15", "sigma=10,50"])) == 6
    with pytest.raises(fk.BadInput, match=r"A grid needs lists of values, and train\.lam is a range"):
        grid_size(read_space(FEDMCSA, ["lam=1..5", "sigma=10,50"]))


def test_texts_of_a_space_are_settings() -> None:
    axis = default_space(FEDMCSA)["train.lam"]
    assert with_settings(FEDMCSA, [f"train.lam={axis.ends[1]}"]).train.lam == 50.0
