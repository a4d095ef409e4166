"""A part is a frozen dataclass, and survives JSON; what is no part is refused."""

from __future__ import annotations

import copy
import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from registry import BASES, KINDS, example

from fedkin import BadInput
from fedkin.methods import METHODS
from fedkin.runs.part_json import from_json, to_json


@pytest.mark.parametrize("label", KINDS)
def test_a_part_is_frozen(label: str) -> None:
    part = example(label)
    for field in fields(part):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(part, field.name, getattr(part, field.name))
    with pytest.raises(FrozenInstanceError):
        part.anything = 1  # type: ignore[attr-defined]
    assert hash(part) == hash(copy.deepcopy(part))


@pytest.mark.parametrize("label", KINDS)
def test_a_part_is_its_json(label: str) -> None:
    part = example(label)
    text = json.dumps(to_json(part), allow_nan=False)
    again = from_json(json.loads(text))
    assert type(again) is type(part)
    assert again == part
    assert json.loads(text)["is"] == label


@pytest.mark.parametrize("label", KINDS)
def test_an_unknown_field_is_refused_with_the_nearest(label: str) -> None:
    value = to_json(example(label))
    names = [name for name in value if name != "is"]
    for name in names or ["anything"]:
        wrong = {key: inner for key, inner in value.items() if key != name} | {name + "z": 1}
        nearest = f"did you mean .*{name}" if names else "no field of"
        with pytest.raises(BadInput, match=nearest) as caught:
            from_json(wrong)
        assert f"'{name}z'" in str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_its_json(name: str) -> None:
    method = METHODS[name]()
    assert from_json(json.loads(json.dumps(to_json(method), allow_nan=False))) == method
    with pytest.raises(BadInput, match=r"did you mean .*collaborate"):
        from_json(to_json(method) | {"collaborat": None})


@pytest.mark.parametrize("label", [*BASES, "Nobody", "uniform"])
def test_what_is_no_part_is_refused(label: str) -> None:
    with pytest.raises(BadInput, match="no part called"):
        from_json({"is": label})


@pytest.mark.parametrize("label", [5, None, ["Uniform"], ":", "nowhere.at_all:Part", "json:dumps"])
def test_what_is_no_name_of_a_part_is_refused(label: Any) -> None:
    with pytest.raises(BadInput):
        from_json({"is": label})
