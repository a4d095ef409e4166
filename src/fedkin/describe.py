"""Parts as JSON and back, and changes to one field by its name, as `--set train.eta=0.1` asks for."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fedkin import collaborate, keep, methods, select, train  # noqa: F401  (their parts register themselves)
from fedkin.errors import BadInput, require, unknown
from fedkin.parts import Collaborate, Keep, Part, Select, Train

IS = "is"
P = TypeVar("P", bound=Part)


def described(value: object) -> Any:
    """A part as JSON: its name under 'is', and its fields."""
    if isinstance(value, Part):
        return {IS: type(value).label()} | {name: described(field) for name, field in value.values().items()}
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    return value


def built(value: Any) -> Any:
    """The inverse of `described`, with every field checked against its type."""
    if isinstance(value, list):
        return [built(item) for item in value]
    if not isinstance(value, dict):
        return value
    require(IS in value, f"A part in a file is an object with '{IS}', but this one has only {sorted(value)}.")
    kind = part_class(value[IS])
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given = {name: built(inner) for name, inner in value.items() if name != IS}
    for name in given:
        if name not in names:
            raise unknown(f"field of {value[IS]}", name, names)
    checked = {name: fitting(kind, name, inner) for name, inner in given.items()}
    try:
        return kind(**checked)
    except TypeError as error:
        raise BadInput(f"{value[IS]} cannot be built: {error}.") from error


def part_class(label: object) -> type[Part]:
    require(isinstance(label, str), f"'{IS}' is the name of a part, not {label!r}.")
    label = str(label)
    if label.partition(":")[0] and ":" in label and label not in Part.known:
        try:
            import_module(label.partition(":")[0])
        except ImportError as error:
            raise BadInput(f"The part '{label}' cannot be imported: {error}.") from error
    known = {name: kind for name, kind in Part.known.items() if is_dataclass(kind)}
    if label not in known:
        raise unknown("part", label, known)
    return known[label]


def fitting(kind: type[Part], name: str, value: Any) -> Any:
    """The value as the field's type has it, or a sentence that says what would fit."""
    hint = get_type_hints(kind)[name]
    if isinstance(value, Part):
        return value
    try:
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].lower()
        raise BadInput(f"{kind.__name__}.{name} cannot be {value!r}: {reason}.") from None


def changed(part: P, path: str, text: str) -> P:
    """The part with one field changed: `changed(method, "train.eta", "0.1")`."""
    name, _, rest = path.partition(".")
    names = [field.name for field in fields(part)]  # type: ignore[arg-type]
    if name not in names:
        raise unknown(f"field of {part.label()}", name, names)
    if rest:
        inner = getattr(part, name)
        if not isinstance(inner, Part):
            raise BadInput(f"'{name}' has no fields of its own; set {name}=VALUE.")
        return replace(part, **{name: changed(inner, rest, text)})  # type: ignore[type-var]
    if isinstance(getattr(part, name), Part):
        return replace(part, **{name: another(name, getattr(part, name), text)})  # type: ignore[type-var]
    return replace(part, **{name: fitting(type(part), name, parsed(text))})  # type: ignore[type-var]


def another(name: str, now: Part, label: str) -> Part:
    """The part of this name with its defaults, in place of one of the same verb: `--set keep=Relevance`."""
    verbs: tuple[type[Part], ...] = (Select, Train, Keep, Collaborate, Part)
    verb = next(kind for kind in verbs if isinstance(now, kind))
    fit = sorted(known for known, kind in Part.known.items() if issubclass(kind, verb) and is_dataclass(kind))
    if label not in fit and ":" not in label:
        inside = ", ".join(f"{name}.{field}" for field in now.values()) or "it has none"
        raise BadInput(f"'{name}' is a part: one of {', '.join(fit)}, or set one of its fields: {inside}.")
    made = built({IS: label})
    require(isinstance(made, verb), f"'{label}' is no {verb.__name__} part, so it cannot be {name}.")
    return made  # type: ignore[no-any-return]


def parsed(text: str) -> Any:
    """A value from the command line: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return None if text.lower() in ("none", "null") else text


def with_settings(part: P, settings: list[str]) -> P:
    """The part with every 'path=value' applied. `steps` and `epochs` exclude each other, so setting one clears the
    other, and it does no harm to say so; so do `count` and `fraction`."""
    said = {path for path, _, text in (setting.partition("=") for setting in settings) if parsed(text) is not None}
    for setting in settings:
        path, equals, text = setting.partition("=")
        require(equals and path, f"'{setting}' should look like part.field=value, as in train.eta=0.1.")
        holder, _, name = path.rpartition(".")
        other = {"steps": "epochs", "epochs": "steps", "count": "fraction", "fraction": "count"}.get(name)
        if other and parsed(text) is not None:
            part = both(part, holder, {name: text, other: "null"})
        elif other and f"{holder}.{other}" in said:
            continue
        else:
            part = changed(part, path, text)
    return part


def both(part: P, holder: str, texts: dict[str, str]) -> P:
    """Two fields of one inner part changed at once."""
    name, _, rest = holder.partition(".")
    if name and name in part.values() and isinstance(getattr(part, name), Part):
        return replace(part, **{name: both(getattr(part, name), rest, texts)})  # type: ignore[type-var]
    known = part.values()
    first = next(iter(texts))
    if first not in known or name:
        return changed(part, f"{holder}.{first}" if holder else first, texts[first])
    values = {key: fitting(type(part), key, parsed(text)) for key, text in texts.items() if key in known}
    return replace(part, **values)  # type: ignore[type-var]
