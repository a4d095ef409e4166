"""Which settings are tried: ranges and lists of values of a method's fields.

train.lam=0.1..10:log          a range, tried on a logarithmic scale
train.momentum=0..0.9          a range
collaborate.sigma=10,30,100    a list of values
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from inspect import signature
from math import prod
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from fedkin.comparison.targets import values as listed
from fedkin.errors import BadInput, require
from fedkin.fields import Place, Rule, alternatives, hints_of, misfit
from fedkin.methods import METHODS
from fedkin.parts import Method, Part
from fedkin.runs.settings import full_path, has, new_value, split

RANGE = re.compile(r"(?P<low>[^,\[\]]+?)\.\.(?P<high>[^,\[\]:]+)(?::(?P<scale>.*))?")
DIGITS = 4  # that a tried number has, so that a person can read it
AROUND = 10  # a default range on a logarithmic scale is so many times the default, down and up ...
NEAR = 5  # ... and one of a share ends at this part of the way to 0 and to 1
RATE = "eta"


def short(value: float) -> str:
    """Return a number as a person writes it, and exactly."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


@dataclass(frozen=True)
class Range:
    """All numbers between two, of which whole ones only where the field is a whole number."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        return f"{short(self.low)}..{short(self.high)}" + (":log" if self.log else "")

    def text(self, value: float) -> str:
        """Return a number in the range as `--set` takes it."""
        if self.whole:
            return str(int(value))
        return repr(min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high))

    @property
    def ends(self) -> tuple[str, ...]:
        return self.text(self.low), self.text(self.high)


@dataclass(frozen=True)
class Choices:
    """A list of values, as `--set` takes them."""

    texts: tuple[str, ...]

    def __str__(self) -> str:
        return ",".join(self.texts)

    def text(self, value: str) -> str:
        return value

    @property
    def ends(self) -> tuple[str, ...]:
        return self.texts


Axis = Range | Choices
Space = dict[str, Axis]  # by the full path of a field


def read_space(method: Method, asked: Sequence[str] | Mapping[str, object]) -> Space:
    """Return the space that these words ask for, of the fields that the method has; each value is checked to fit.

    `asked` are texts as 'train.lam=0.1..10:log', or a mapping from fields to such texts or to lists of values.
    """
    found: Space = {}
    for short, text in said(asked):
        path = full_path(method, short)
        if not has(method, path):
            continue
        require(path not in found, f"The space names {path} twice; leave one out.")
        axis = found[path] = read_axis(method, path, text)
        for end in axis.ends:
            check_value(method, path, end)
    return found


def said(asked: Sequence[str] | Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the fields and the texts of a space."""
    if not isinstance(asked, Mapping):
        return [split(text) for text in asked]
    return [
        (name, ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
        for name, value in asked.items()
    ]


def read_axis(method: Method, path: str, text: str) -> Axis:
    """Return what a text says of one field: a range if it has two dots, else a list."""
    found = RANGE.fullmatch(text.strip())
    if found is None:
        texts = tuple(dict.fromkeys(listed(text, f"{path}={text}")))
        return Choices(texts)
    what = f"In '{path}={text}'"
    require(found["scale"] in (None, "log"), f"{what} a range may end with :log and nothing else.")
    try:
        low, high = float(found["low"]), float(found["high"])
    except ValueError:
        raise BadInput(f"{what} the ends of a range are numbers, as in {path}=0.1..10:log.") from None
    require(low < high, f"{what} the first number must be below the second.")
    log, whole = found["scale"] == "log", is_whole(method, path)
    require(not log or low > 0, f"{what} a logarithmic range begins above 0.")
    ends = low.is_integer() and high.is_integer()
    require(ends or not whole, f"{what} the ends must be whole numbers, as {path} is one.")
    return Range(low, high, log, whole)


def field_at(method: Method, path: str) -> tuple[Part, str, tuple[Any, ...]]:
    """Return the part that has the field at this path, the field's name, and what may stand in it."""
    holder: Any = method
    *names, last = path.split(".")
    for name in names:
        holder = getattr(holder, name)
    kind: Any = type(holder)
    return holder, last, alternatives(hints_of(kind)[last])


def is_whole(method: Method, path: str) -> bool:
    """Whether the field at this path holds whole numbers only."""
    kinds = {bare(option) for option in field_at(method, path)[2]}
    return int in kinds and float not in kinds


def check_value(method: Method, path: str, text: str) -> None:
    """Refuse a value that does not fit its field. How it goes with other fields is seen when it is tried."""
    part, name, options = field_at(method, path)
    value = new_value(part, name, text)
    if isinstance(value, Part) or (value is None and NoneType in options):
        return
    place = Place(type(part).__name__, part.verb or type(part).__name__, name)
    found = [misfit(place, option, value) for option in options if option is not NoneType]
    require(not all(found), str(found[0]))


def bare(hint: Any) -> Any:
    """Return an annotation without its rules."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def check_used(methods: Sequence[Method], asked: Sequence[str] | Mapping[str, object]) -> None:
    """Refuse a field that none of the methods has."""
    names = ", ".join(method.name for method in methods)
    for path, _ in said(asked):
        require(any(has(method, path) for method in methods), f"None of {names} has a field '{path}'.")


def default_space(method: Method) -> Space:
    """Return the space of a method for which none is said: its learning rate and its paper's own numbers.

    These are the numbers with a fraction that the method's function takes, as fedmcsa(lam, sigma, eta); of a method of
    one's own all such fields of its parts. A number above 0 is tried from a tenth to ten times its value, a share from
    a fifth of its value to a fifth of the way from 1. Fields at 0, and shares of 1, switch something off and stay. So
    does how many clients take part, because that is what a round costs.
    """
    own = papers_numbers(method)
    found: Space = {}
    for path, part, name, value in numbers(method):
        neutral = value == 1 and value == default(part, name)  # a factor that changes nothing
        wanted = not neutral if own is None else path in own
        axis = around(part, name, value) if (wanted or name == RATE) and "fraction" not in path.split(".") else None
        if axis is not None:
            found[path] = axis
    return found


def papers_numbers(method: Method) -> set[str] | None:
    """Return the paths of the fields that the function of a named method sets by its parameters; None of a method of
    one's own."""
    made = METHODS.get(method.name.partition("@")[0])
    if made is None:
        return None
    given = {name: parameter.default for name, parameter in signature(made).parameters.items()}
    return {path for path, _, name, value in numbers(made()) if given.get(name) == value}


def numbers(part: Part, above: str = "") -> Iterator[tuple[str, Part, str, float]]:
    """Give every field with a number that may have a fraction: its path, its part, its name and its value."""
    for name, value in part.values().items():
        if isinstance(value, Part):
            yield from numbers(value, f"{above}{name}.")
        elif isinstance(value, float | int) and not isinstance(value, bool):
            kinds = {bare(option) for option in alternatives(hints_of(type(part))[name])} - {NoneType}  # type: ignore[arg-type]
            if float in kinds:
                yield above + name, part, name, float(value)


def default(part: Part, name: str) -> object:
    """Return the default of a field; nothing if it has none."""
    found = next(field for field in fields(part) if field.name == name)  # type: ignore[arg-type]
    return None if found.default is MISSING else found.default


def around(part: Part, name: str, value: float) -> Range | None:
    """Return the range around a value that the rules of its field allow; None where the value switches it off."""
    if value <= 0:
        return None
    low, high = readable(value / AROUND), readable(value * AROUND)
    if allows(part, name, max(high, 2.0)) and allows(part, name, 1.5):  # no share
        return Range(low, high, log=True)
    low, high = readable(value / NEAR), 1 - (1 - value) / NEAR
    while not allows(part, name, high):  # some shares end below 1
        high = (value + high) / 2
    return Range(low, readable(high)) if low < value < high else None


def readable(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def allows(part: Part, name: str, value: float) -> bool:
    """Whether the rules in the annotation of a field allow a value."""
    options = alternatives(hints_of(type(part))[name])  # type: ignore[arg-type]
    rules = [
        [rule for rule in get_args(option)[1:] if isinstance(rule, Rule)] if get_origin(option) is Annotated else []
        for option in options
        if bare(option) is float
    ]
    return any(all(rule.holds(value) for rule in each) for each in rules)


def grid_size(space: Space) -> int:
    """Return how many settings a grid has; a range has no grid and is refused."""
    ranges = [path for path, axis in space.items() if isinstance(axis, Range)]
    names = ", ".join(ranges)
    require(not ranges, f"A grid needs lists of values, and {names} is a range; write {names.split(',')[0]}=0.1,1,10.")
    return prod(len(axis.ends) for axis in space.values())
