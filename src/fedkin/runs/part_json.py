"""Parts as JSON, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from fedkin import collaborate, keep, methods, select, train  # noqa: F401  (their parts register themselves)
from fedkin.errors import BadInput, require, unknown
from fedkin.fields import converted
from fedkin.imports import user_module
from fedkin.parts import Part

IS = "is"  # the key of the name of a part


def to_json(value: object) -> Any:
    """A part as JSON: its name under 'is', and its fields."""
    if isinstance(value, Part):
        return {IS: type(value).label()} | {name: to_json(field) for name, field in value.values().items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def labels(part: Part) -> Iterator[str]:
    """The names of a part and of the parts in it."""
    yield type(part).label()
    for value in part.values().values():
        for inner in value if isinstance(value, list | tuple) else (value,):
            if isinstance(inner, Part):
                yield from labels(inner)


def from_json(value: Any) -> Any:
    """The inverse of `to_json`. Every value is converted to the type of its field, or refused."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    require(IS in value, f"A part in a file is an object with '{IS}', but this one has only {sorted(value)}.")
    kind = part_class(value[IS])
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given = {name: from_json(inner) for name, inner in value.items() if name != IS}
    for name in given:
        if name not in names:
            raise unknown(f"field of {value[IS]}", name, names)
    values = {name: converted(kind, name, inner) for name, inner in given.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise BadInput(f"{value[IS]} cannot be built: {error}.") from error


def part_class(label: object) -> type[Part]:
    """The class of parts with this name: one of fedkin, or 'module:Class', whose module is imported if need be."""
    require(isinstance(label, str), f"'{IS}' is the name of a part, not {label!r}.")
    label = str(label)
    if label.partition(":")[0] and ":" in label and label not in Part.known:
        user_module(label.partition(":")[0], f"The part '{label}'")
    known = {name: kind for name, kind in Part.known.items() if is_dataclass(kind)}
    if label not in known:
        raise unknown("part", label, known)
    return known[label]
