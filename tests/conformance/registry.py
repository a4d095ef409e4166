"""Every part and every named method, as they are registered, so that a new one is tested from the day it is there. A
part that no named method uses is put in the simplest method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass, replace

from small import composed

from fedkin.methods import METHODS
from fedkin.parts import Collaborate, Keep, Method, Part, Select, Train
from fedkin.select import Uniform
from fedkin.train import SGD

BASES = {"Select": Select, "Train": Train, "Keep": Keep, "Collaborate": Collaborate}
KINDS = sorted(
    label for label, kind in Part.known.items() if ":" not in label and is_dataclass(kind) and kind is not Method
)


def within(part: Part) -> Iterator[Part]:
    """The part and every part in its fields."""
    yield part
    for value in part.values().values():
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, Part):
                yield from within(item)


def example(label: str) -> Part:
    """The part as a named method has it, else with its defaults."""
    kind = Part.known[label]
    for make in METHODS.values():
        for part in within(make()):
            if type(part) is kind:
                return part
    return kind()


def short(method: Method) -> Method:
    """The method with few clients a round and little work, of which some clients have a short batch."""
    train = replace(method.train, steps=2, epochs=None, batch=4)  # type: ignore[call-arg]
    few = Uniform(count=6) if isinstance(method.select, Uniform) else method.select
    return replace(method, train=train, select=few)


def around(label: str) -> Method | None:
    """A method that uses the part."""
    kind = Part.known[label]
    for make in METHODS.values():
        if any(type(part) is kind for part in within(make())):
            return short(make())
    role = next((name.lower() for name, base in BASES.items() if issubclass(kind, base)), None)
    if role is None:
        return None  # part of a part that no named method uses
    return replace(short(composed(**({"train": SGD()} | {role: example(label)}))), name=label)  # type: ignore[arg-type]


AROUND = {method.name: method for method in map(around, KINDS) if method is not None}  # together they have every part
