"""Which values fit a field of a part.

The annotation of a field says what fits it. A rule that concerns one field only is part of the annotation: `Positive`
is a number and the rule that it is above zero. `check` compares the values of a part with its annotations; `converted`
makes a value from JSON or from the command line into one that fits.
"""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from inspect import get_annotations
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fedkin.errors import BadInput


@dataclass(frozen=True)
class Rule:
    """A condition on the value of one field, and the sentence for a value that does not meet it.

    The sentence may use {field}, as 'train.eta', {name}, as 'eta', and {value}. `fits` says which values meet it.
    """

    test: Callable[[Any], object]
    sentence: str
    fits: str = ""

    def holds(self, value: object) -> bool:
        """Whether the value meets the condition. A value that cannot be compared does not."""
        try:
            return bool(self.test(value))
        except TypeError:
            return False


Positive = Annotated[float, Rule(lambda v: v > 0, "{field} must be positive, not {value}.", "above 0")]
LISTS = ("tuple_type", "list_type")  # pydantic's names for a value that is no list
NonNegative = Annotated[float, Rule(lambda v: v >= 0, "{field} cannot be negative, and is {value}.", "of at least 0")]
Share = Annotated[float, Rule(lambda v: 0 <= v <= 1, "{field} must be from 0 to 1, not {value}.", "from 0 to 1")]
Fraction = Annotated[
    float, Rule(lambda v: 0 < v <= 1, "{field} must be above 0 and at most 1, not {value}.", "above 0 and at most 1")
]
BelowOne = Annotated[
    float, Rule(lambda v: 0 <= v < 1, "{field} must be at least 0 and below 1, not {value}.", "from 0 to below 1")
]
Count = Annotated[int, Rule(lambda v: v >= 1, "{field} must be at least 1, not {value}.", "of at least 1")]


WHOLE, LARGE = 2**31, 1e30  # whole numbers are below the first, others at most the second
LONGEST = 200  # bytes of a name; a folder has at most 255, some of which go to temporary files


def names_a_folder(value: object) -> bool:
    """Whether a text can be the name of a folder in a run's folder: it leads nowhere else, and every system has it."""
    if not isinstance(value, str) or not value.isprintable() or set(value) & set("/\\"):
        return False
    try:
        return not value.startswith(".") and 0 < len(value.encode()) <= LONGEST
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True)
class Place:
    """The field of a part whose value is checked."""

    part: str  # the class of the part
    verb: str  # the verb of the part, or its class where it has no verb
    name: str

    def told(self, sentence: str, value: object) -> str:
        """The sentence with the field and the value put in."""
        return sentence.format(field=f"{self.verb}.{self.name}", name=self.name, part=self.part, value=value)


def check(part: Any) -> None:
    """Refuse a part of which a value does not fit the annotation of its field."""
    kind: Any = type(part)
    for field in fields(part):
        value = getattr(part, field.name)
        place = Place(kind.__name__, getattr(kind, "verb", "") or kind.__name__, field.name)
        options = alternatives(hints_of(kind)[field.name])
        if value is None and NoneType in options:
            continue
        found = [misfit(place, option, value) for option in options if option is not NoneType]
        if found and all(found):
            raise BadInput(str(found[0]))


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a class, with their rules. One that names what is not imported fits any value."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        for name, hint in get_annotations(base).items():
            alone = type(base.__name__, (), {"__annotations__": {name: hint}, "__module__": base.__module__})
            try:
                found |= get_type_hints(alone, include_extras=True)
            except NameError:
                found[name] = Any
    return found


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union; any other annotation stands alone."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def misfit(place: Place, hint: Any, value: object, item: bool = False) -> str | None:
    """Why the value does not fit this annotation, as a sentence; None if it fits. `item`: the value is in a list."""
    hint, *rules = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    conditions = [rule for rule in rules if isinstance(rule, Rule)]
    if hint in (int, float) and not item and not is_part(type(value)):
        conditions = [number(hint), limit(hint), *conditions]
    else:  # the sentences of the rules come first, as they say what the part or the item should have been
        conditions = [*conditions, *plain(hint)]
    for condition in conditions:
        if not condition.holds(value):
            return place.told(condition.sentence, value)
    if get_origin(hint) is tuple and get_args(hint)[1:] == (Ellipsis,) and isinstance(value, list | tuple):
        return next(filter(None, (misfit(place, get_args(hint)[0], inner, item=True) for inner in value)), None)
    return None


def plain(hint: Any) -> list[Rule]:
    """The rule that a type itself is; none for a type that is not checked."""
    if hint in (int, float):
        return [number(hint), limit(hint)]
    if hint is bool:
        return [Rule(lambda v: isinstance(v, bool), "{field} is true or false, not {value!r}.")]
    if hint is str:
        return [Rule(lambda v: isinstance(v, str), "{field} is a text, not {value!r}.")]
    if get_origin(hint) is Literal:
        *most, last = (repr(choice) for choice in get_args(hint))
        choices = f"{', '.join(most)} or {last}" if most else last
        return [Rule(lambda v: v in get_args(hint), f"{{field}} is {choices}, not '{{value}}'.")]
    if get_origin(hint) is tuple:
        return [Rule(lambda v: isinstance(v, list | tuple), "{field} is a list, not {value!r}.")]
    if is_part(hint):
        return [Rule(lambda v: isinstance(v, hint), f"{{field}} is a {hint.__name__} part, not {{value!r}}.")]
    if get_origin(hint) in (list, dict, set, frozenset):
        return [Rule(lambda v: fits(hint, v), "{field} cannot be {value!r}.")]
    return []


def fits(hint: Any, value: object) -> bool:
    """Whether pydantic takes the value for this annotation."""
    try:
        TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except ValidationError:
        return False
    return True


def number(hint: type) -> Rule:
    """The rule that a value is a finite number, and a whole one where the annotation is int."""
    wanted = "a finite number" if hint is float else "a whole number"
    return Rule(lambda v: is_number(v, whole=hint is int), f"{{part}}.{{name}} must be {wanted}, not {{value!r}}.")


def limit(hint: type) -> Rule:
    """The rule that a number is one that a float32 can be or, where the annotation is int, an int32."""
    if hint is int:
        return Rule(lambda v: abs(v) < WHOLE, "{part}.{name} must be below 2**31, not {value!r}.")
    return Rule(lambda v: abs(v) <= LARGE, "{part}.{name} must be at most 1e30, not {value!r}.")


def is_number(value: Any, whole: bool) -> bool:
    """Whether this is a finite number, and a whole one if it has to be."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    if isinstance(value, numbers.Integral):
        return True
    return float(value).is_integer() if whole else isfinite(float(value))


def is_part(kind: Any) -> bool:
    """Whether this is a class of parts. Every part has a verb, even if it is empty."""
    return isinstance(kind, type) and hasattr(kind, "verb")


def converted(kind: type, name: str, value: Any) -> Any:
    """The value as the type of the field has it, or a sentence that says why it cannot be made so."""
    if is_part(type(value)):
        return value
    known: Any = kind
    hint = hints_of(known)[name]
    try:
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        a_list = f"write a list, as in {json.dumps([value], default=str)}"
        reason = a_list if first["type"] in LISTS else first["msg"].lower()
        raise BadInput(f"{kind.__name__}.{name} cannot be {value!r}: {reason}.") from None
