"""Changes to the fields of a part by their names, as `--set train.eta=0.1` asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, TypeVar

from fedkin.errors import BadInput, require, unknown
from fedkin.fields import alternatives, converted, hints_of, is_number, is_part
from fedkin.parts import Collaborate, Keep, Part, Select, Train
from fedkin.runs.part_json import IS, from_json

P = TypeVar("P", bound=Part)

EXCLUSIVE = {"steps": "epochs", "epochs": "steps", "count": "fraction", "fraction": "count"}


def with_settings(part: P, settings: Sequence[str]) -> P:
    """The part with every 'path=value' applied, as `applied` does."""
    return applied(part, settings)[0]


def applied(part: P, settings: Sequence[str], only_fitting: bool = False) -> tuple[P, list[str]]:
    """The part with every 'path=value' applied, one after another, and the full paths that were set.

    A path is a field, as 'train.eta', or the last word of one that no other part has, as 'eta'. `steps` and `epochs`
    exclude each other, and so do `count` and `fraction`. Setting one of two such fields sets the other to null; a
    setting that sets the other to null as well is allowed. `only_fitting` leaves out settings of fields that the part
    does not have.
    """
    said = {path for path, text in map(split, settings) if parsed(text) is not None}
    done = []
    for short, text in map(split, settings):
        path = full_path(part, short)
        if only_fitting and not has(part, path):
            continue
        if "." not in path and not has(part, path):
            raise unknown(f"field of {part.label()}", path, {known.rpartition(".")[2] for known in paths(part)})
        holder, _, name = path.rpartition(".")
        other = EXCLUSIVE.get(name)
        if other and parsed(text) is not None:
            part = both_changed(part, holder, {name: text, other: "null"})
        elif not (other and {other, f"{holder}.{other}"} & said):
            part = changed(part, path, text)
        done.append(path)
    return part, done


def split(setting: str) -> tuple[str, str]:
    """The path and the text of a setting."""
    path, equals, text = setting.partition("=")
    require(equals and path, f"'{setting}' should look like part.field=value, as in train.eta=0.1.")
    return path, text


def full_path(part: Part, path: str) -> str:
    """The path of a field from its last word, where only one part has it; any other path as it is."""
    if "." in path or path in part.values():
        return path
    every = [known for known in paths(part) if known.rpartition(".")[2] == path]
    found = [known for known in every if not any(known.startswith(f"{outer}.") for outer in every)]
    require(len(found) < 2, f"'{path}' may be {' or '.join(found)}; write which.")
    return found[0] if found else path


def paths(part: Part, above: str = "") -> Iterator[str]:
    """The paths of all fields of a part and of the parts in it."""
    for name, value in part.values().items():
        yield above + name
        if isinstance(value, Part):
            yield from paths(value, f"{above}{name}.")


def has(part: Part, path: str) -> bool:
    """Whether a part has a field at this path, as 'train.eta' or 'eta'."""
    return full_path(part, path) in paths(part)


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
    return replace(part, **{name: new_value(part, name, text)})  # type: ignore[type-var]


def new_value(part: Part, name: str, text: str) -> Any:
    """The value that a text means for a field: a part if the field holds one or may hold this one."""
    now, options = part.values()[name], alternatives(hints_of(type(part))[name])  # type: ignore[arg-type]
    plain = any(map(is_plain, options))
    if parsed(text) is None and NoneType in options:
        return None
    if isinstance(now, Part) and not (plain and is_number(parsed(text), whole=False)):
        return another(name, now, text)
    if text in Part.known and not all(map(is_plain, options)):
        return from_json({IS: text})
    return converted(type(part), name, parsed(text))


def is_plain(option: object) -> bool:
    """Whether an alternative of an annotation is no part."""
    return not is_part(option)


def both_changed(part: P, holder: str, texts: dict[str, str]) -> P:
    """The part with two fields of the inner part `holder` changed at once; a field that it has not is left out."""
    name, _, rest = holder.partition(".")
    if name and name in part.values() and isinstance(getattr(part, name), Part):
        return replace(part, **{name: both_changed(getattr(part, name), rest, texts)})  # type: ignore[type-var]
    known = part.values()
    first = next(iter(texts))
    if first not in known or name:
        return changed(part, f"{holder}.{first}" if holder else first, texts[first])
    values = {key: new_value(part, key, text) for key, text in texts.items() if key in known}
    return replace(part, **values)  # type: ignore[type-var]


def another(name: str, now: Part, label: str) -> Part:
    """The part of this name with its defaults, in place of one of the same verb: `--set keep=Relevance`."""
    verbs: tuple[type[Part], ...] = (Select, Train, Keep, Collaborate, Part)
    verb = next(kind for kind in verbs if isinstance(now, kind))
    fit = sorted(known for known, kind in Part.known.items() if issubclass(kind, verb) and is_dataclass(kind))
    if label not in fit and ":" not in label:
        inside = ", ".join(f"{name}.{field}" for field in now.values()) or "it has none"
        raise BadInput(f"'{name}' is a part: one of {', '.join(fit)}, or set one of its fields: {inside}.")
    made = from_json({IS: label})
    require(isinstance(made, verb), f"'{label}' is no {verb.__name__} part, so it cannot be {name}.")
    return made  # type: ignore[no-any-return]


def parsed(text: str) -> Any:
    """A value from the command line: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None if text.lower() in ("none", "null") else text
