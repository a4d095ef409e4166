"""Every field of a part is checked against its annotation, also in a part that says nothing about its values."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

import fedkin as fk
from fedkin.errors import require
from fedkin.fields import BelowOne, Count, Fraction, NonNegative, Positive, Rule, Share, check, converted
from fedkin.select import Attention, Constant, Listed, Uniform

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True)
class Top(fk.Keep):
    """A user's part that has no check of its own."""

    k: int = 3
    weight: float = 1.0


@pytest.mark.parametrize("k", ["x", 2.5, True, None, float("nan")])
def test_a_users_part_is_checked_without_its_asking(k: Any) -> None:
    with pytest.raises(fk.BadInput, match=r"Top\.k must be a whole number, not"):
        Top(k=k)


@dataclass(frozen=True)
class All(fk.Train):
    """One field of every kind."""

    eta: Positive = 1.0
    lam: NonNegative = 0.0
    share: Share = 0.0
    fraction: Fraction = 1.0
    below: BelowOne = 0.0
    count: Count = 1
    maybe: Count | None = None
    how: Literal["fresh", "cyclic"] = "fresh"
    three: Literal["a", "b", "c"] = "a"
    flag: bool = False
    text: str = "anything"
    either: int | str = 1
    several: tuple[Positive, ...] = (1.0,)
    odd: Annotated[Count, Rule(lambda v: v % 2 == 1, "{name} is odd, and {value} is not.")] = 1
    base: fk.Select = field(default_factory=lambda: Uniform(count=1))
    change: float | fk.Select = 0.5


SENTENCES: list[tuple[str, Any, str]] = [
    ("eta", 0, "train.eta must be positive, not 0."),
    ("eta", float("inf"), "All.eta must be a finite number, not inf."),
    ("lam", -0.5, "train.lam cannot be negative, and is -0.5."),
    ("share", 1.5, "train.share must be from 0 to 1, not 1.5."),
    ("fraction", 0, "train.fraction must be above 0 and at most 1, not 0."),
    ("below", 1, "train.below must be at least 0 and below 1, not 1."),
    ("count", 0, "train.count must be at least 1, not 0."),
    ("count", None, "All.count must be a whole number, not None."),
    ("maybe", 0, "train.maybe must be at least 1, not 0."),
    ("maybe", "x", "All.maybe must be a whole number, not 'x'."),
    ("how", "x", "train.how is 'fresh' or 'cyclic', not 'x'."),
    ("three", None, "train.three is 'a', 'b' or 'c', not 'None'."),
    ("flag", 1, "train.flag is true or false, not 1."),
    ("text", 5, "train.text is a text, not 5."),
    ("either", 1.5, "All.either must be a whole number, not 1.5."),
    ("several", (1.0, -1.0), "train.several must be positive, not -1.0."),
    ("several", 3, "train.several is a list, not 3."),
    ("odd", 0, "train.odd must be at least 1, not 0."),
    ("odd", 4, "odd is odd, and 4 is not."),
    ("base", 3, "train.base is a Select part, not 3."),
    ("base", Constant(), "train.base is a Select part, not Constant(fraction=0.1)."),
    ("base", Uniform, f"train.base is a Select part, not {Uniform!r}."),
    ("change", "x", "All.change must be a finite number, not 'x'."),
    ("change", Constant(), "All.change must be a finite number, not Constant(fraction=0.1)."),
    ("eta", Constant(), "train.eta must be positive, not Constant(fraction=0.1)."),
]


@pytest.mark.parametrize(("name", "value", "sentence"), SENTENCES)
def test_a_value_that_does_not_fit_is_refused_in_one_sentence(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(fk.BadInput) as caught:
        All(**{name: value})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eta", 3),
        ("count", 3.0),
        ("maybe", None),
        ("maybe", 2),
        ("how", "cyclic"),
        ("flag", True),
        ("text", ""),
        ("either", "x"),
        ("several", ()),
        ("several", [0.5, 2]),
        ("base", Attention()),
        ("change", Uniform(count=2)),
        ("change", 7),
    ],
)
def test_a_value_that_fits_is_taken_as_it_is(name: str, value: Any) -> None:
    assert getattr(All(**{name: value}), name) is value


def test_a_field_of_every_kind_is_refused_above() -> None:
    assert {name for name, _, _ in SENTENCES} == {item.name for item in fields(All)}


def test_values_are_checked_one_by_one_before_they_are_checked_together() -> None:
    @dataclass(frozen=True)
    class Ordered(fk.Select):
        low: float = 0.0
        high: float = 1.0

        def check(self) -> None:
            require(self.low < self.high, "low must be below high.")

    with pytest.raises(fk.BadInput, match=r"low must be below high"):
        Ordered(2.0)
    with pytest.raises(fk.BadInput, match=r"Ordered\.low must be a finite number, not 'x'"):
        Ordered("x")  # type: ignore[arg-type]


def test_a_fraction_of_the_clients_says_what_it_is() -> None:
    for values, sentence in (((), "at least one"), (("x",), "is a number, not 'x'"), ((2.0,), "at most 1, not 2.0")):
        with pytest.raises(fk.BadInput, match=sentence):
            Listed(values)
    with pytest.raises(fk.BadInput, match=r"A fraction of the clients is a number, not Uniform\(count=2"):
        Attention(fraction=Uniform(count=2))  # type: ignore[arg-type]


def test_an_annotation_that_names_what_is_not_imported_fits_anything_and_the_others_are_checked() -> None:
    @dataclass(frozen=True)
    class Unreadable(fk.Keep):
        weight: Decimal | None = None
        count: int = 1
        several: list[int] = field(default_factory=list)

    assert Unreadable("anything").weight == "anything"
    with pytest.raises(fk.BadInput, match=r"^Unreadable\.count must be a whole number, not 'x'\.$"):
        Unreadable(count="x")
    with pytest.raises(fk.BadInput, match=r"^keep\.several cannot be 'x'\.$"):
        Unreadable(several="x")


@pytest.mark.parametrize(("name", "advice"), [("__post_init__", "check"), ("judges", "needs"), ("listens", "gives")])
def test_what_parts_said_before_is_not_ignored_in_silence(name: str, advice: str) -> None:
    with pytest.raises(TypeError, match=rf"Old\.{name} is of a version before.*{advice}"):
        type("Old", (fk.Keep,), {name: True, "__module__": "elsewhere"})


def test_a_part_that_is_no_dataclass_is_refused_in_a_sentence() -> None:
    class Bare(fk.Keep):
        pass

    with pytest.raises(fk.BadInput, match=r"^Bare is not a dataclass; write @dataclass\(frozen=True\)"):
        replace(fk.methods.fedavg(), keep=Bare())


def test_any_dataclass_can_be_checked() -> None:
    @dataclass
    class Plain:
        count: Count = 1

    check(Plain())
    with pytest.raises(fk.BadInput, match=r"^Plain\.count must be at least 1, not 0\.$"):
        check(Plain(0))


@pytest.mark.parametrize(("value", "written"), [(5, "[5]"), ("one", '["one"]')])
def test_a_single_value_where_a_list_is_wanted(value: Any, written: str) -> None:
    with pytest.raises(fk.BadInput) as refused:
        converted(All, "several", value)
    assert str(refused.value) == f"All.several cannot be {value!r}: write a list, as in {written}."


def test_a_value_from_a_file_becomes_what_the_field_has() -> None:
    assert converted(All, "count", "3") == 3
    assert converted(All, "several", [1, 2]) == (1.0, 2.0)
    assert converted(All, "flag", "no") is False
    assert converted(All, "maybe", None) is None
    part = Uniform(count=1)
    assert converted(All, "base", part) is part
    with pytest.raises(fk.BadInput, match=r"^All\.count cannot be 'x': input should be a valid integer"):
        converted(All, "count", "x")
