"""The arms of a comparison, each a `Method` whose name is that of the arm and of its folder.

How an arm is written is in `targets.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from fedkin.comparison.targets import is_file, target_parts
from fedkin.errors import BadInput, require, shown
from fedkin.imports import called, defined_at, imported
from fedkin.methods import named
from fedkin.parts import Method, Part
from fedkin.runs import part_json
from fedkin.runs.experiment_file import read_file
from fedkin.runs.settings import applied, full_path, has, parsed, split, with_settings

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@=,+-]*(?<!\.)")
LONGEST = 120  # characters of a name; folders have at most 255 on all systems, some of which go to temporary files
MANY = 1000  # arms of one sweep
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(1, 10))}  # on Windows


@dataclass(frozen=True)
class Arm:
    """A method, what it was asked for by, and the fields that were set for it alone."""

    method: Method
    asked: str | None = None  # None: a Method, handed over in Python
    own: tuple[str, ...] = ()  # full paths


def read_arms(targets: Sequence[str | Method], settings: Sequence[str] = ()) -> list[Method]:
    """Return the arms that these targets ask for, with the settings on every arm that has fields for them.

    With one arm all settings must fit; with several, each setting must fit at least one of them. What an arm sets for
    itself holds against a setting for all. Two arms of one name, or the same arm twice, are refused.
    """
    arms = [arm for target in targets for arm in arms_of(target)]
    if len(arms) == 1:
        made = [replace(arms[0], method=with_settings(arms[0].method, meant(arms[0], settings)))]
    else:
        made = [replace(arm, method=applied(arm.method, meant(arm, settings), only_fitting=True)[0]) for arm in arms]
        for path, _ in map(split, settings):
            names = ", ".join(arm.method.name for arm in made)
            require(any(has(arm.method, path) for arm in made), f"None of {names} has a field '{path}'.")
    once = [arm for i, arm in enumerate(made) if all(arm.method != other.method for other in made[:i])]
    check_different(once)
    return [arm.method for arm in once]


def arms_of(target: str | Method) -> Iterator[Arm]:
    """Give the arms that one target asks for: several if it has a sweep or is a file of several methods."""
    if isinstance(target, Method):
        yield Arm(target)
        return
    base, several = target_parts(target)
    number = prod(len(texts) for _, texts in several)
    require(number <= MANY, f"{shown(base)} has a sweep of {number:,} arms, and at most {MANY:,} are compared.")
    for method in methods_of(base):
        for chosen in product(*([(path, text) for text in texts] for path, texts in several)):
            yield arm_with(method, list(chosen), target)


def methods_of(base: str) -> list[Method]:
    """Return the methods of a file, of an import path or of a name."""
    if is_file(base):
        return methods_of_file(base)
    if ":" in base:
        return [method_at(base)]
    return [named(base)]


def methods_of_file(path: str) -> list[Method]:
    """Return the methods that a file names or describes."""
    stored = read_file(Path(path))
    entries = stored["methods"] if "methods" in stored else [stored["method"]] if "method" in stored else []
    require("methods" not in stored or "method" not in stored, f"{path} has both method and methods; leave one out.")
    require(isinstance(entries, list) and entries, f'{path} names no method; add method = "fedavg".')
    found: list[Method] = []
    for entry in entries:
        if isinstance(entry, str):
            require(not is_file(target_parts(entry)[0]), f"The method in {path} is not another file, '{entry}'.")
            found += [arm.method for arm in arms_of(entry)]
            continue
        part = part_json.from_json(entry) if isinstance(entry, dict) else entry
        require(isinstance(part, Method), f'The method in {path} is a name or has is = "Method", not {entry!r}.')
        found.append(part)
    return found


def method_at(path: str) -> Method:
    """Return the method at an import path, or the one that the function there returns."""
    found = imported(path, "The method")
    where = defined_at(found)
    if callable(found) and not isinstance(found, Method):
        optional = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        try:
            given = signature(found).parameters.values()
        except (TypeError, ValueError):  # of a class that is written in C
            raise BadInput(f"The method '{path}' is no function of yours; give one that returns a Method.") from None
        required = [one.name for one in given if one.default is Parameter.empty and one.kind not in optional]
        sentence = f"The function '{path}'{where} needs {', '.join(required)}; give them defaults."
        require(not required, sentence)
        found = called(found, f"The method '{path}'")
    got = f"gives a {type(found).__name__}, not a Method"
    require(isinstance(found, Method), f"'{path}'{where} {got}; return one, as fk.methods.fedavg() does.")
    check_found_again(found, path)
    return found  # type: ignore[no-any-return]


def check_found_again(part: Part, path: str) -> None:
    """Refuse parts that another process, or a resumed run, could not find by their names."""
    label = type(part).label()
    require("<locals>" not in label, f"'{path}' uses a class inside a function, {label}; move it out to its module.")
    for value in part.values().values():
        for inner in value if isinstance(value, list | tuple) else [value]:
            if isinstance(inner, Part):
                check_found_again(inner, path)


def arm_with(method: Method, chosen: list[tuple[str, str]], target: str) -> Arm:
    """Return the arm of a method with these settings, named by them."""
    made, own = applied(method, [f"{path}={text}" for path, text in chosen])
    words = [f"@{path}={word(parsed(text))}" for path, (_, text) in zip(own, chosen, strict=True)]
    arm = Arm(made if "name" in own else replace(made, name=method.name + "".join(words)), target, tuple(own))
    check_name(arm)
    return arm


def word(value: Any) -> str:
    """Return a value as a part of a name."""
    if isinstance(value, list):
        return "+".join(map(word, value))
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"[^A-Za-z0-9._+-]", "-", text.rpartition(":")[2])


def check_name(arm: Arm) -> None:
    """Refuse a name that is no good name of a folder on every system."""
    name = arm.method.name
    fits = NAME.fullmatch(name) and name.partition(".")[0].lower() not in RESERVED and len(name) <= LONGEST
    rule = f"letters, digits and ._-@=,+, at most {LONGEST}"
    base = (arm.asked or "").partition("@")[0]
    require(fits, f"The arm '{name}' is a folder too, whose name has {rule}; give it another: {base}@name=mine.")


def meant(arm: Arm, settings: Sequence[str]) -> list[str]:
    """Return those of the common settings that an arm does not answer itself, by a setting of the field or in it."""

    def answered(setting: str) -> bool:
        path = full_path(arm.method, split(setting)[0])
        return any(own == path or own.startswith(f"{path}.") for own in arm.own)

    return [setting for setting in settings if not answered(setting)]


def check_different(arms: Sequence[Arm]) -> None:
    """Refuse two different arms of one name, also where only capitals differ, and one arm under two names."""
    names: dict[str, Arm] = {}
    for arm in arms:
        other = names.setdefault(arm.method.name.lower(), arm)
        if other is not arm:
            base = (arm.asked or "").partition("@")[0]
            advice = (
                f"; give one another, as in {base}@name=mine" if base and base != other.asked else "; leave one out"
            )
            raise BadInput(f"Two methods of one comparison have the same name, {arm.method.name}{advice}.")
    for i, arm in enumerate(arms):
        for other in arms[:i]:
            same = replace(arm.method, name=other.method.name) == other.method and bool(arm.own or other.own)
            require(not same, f"{arm.method.name} is the same as {other.method.name}; leave one of them out.")
