"""Writes TOML. Python reads it (`tomllib`) but does not write it."""

from __future__ import annotations

import json
import re
from typing import Any

NULL = "null"  # the text that stands for null, which TOML has not
BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml(table: dict[str, Any]) -> str:
    """Return a table as TOML: its values first, then the tables in it, each under its path."""
    return "\n".join(lines(table, "")).lstrip("\n") + "\n"


def lines(table: dict[str, Any], path: str) -> list[str]:
    """Return the lines of a table at this path."""
    found = [f"{key(name)} = {value(inner)}" for name, inner in table.items() if not is_table(inner)]
    for name, inner in table.items():
        where = f"{path}.{key(name)}" if path else key(name)
        if isinstance(inner, dict):
            found += ["", f"[{where}]", *lines(inner, where)]
        elif is_table(inner):
            for each in inner:
                found += ["", f"[[{where}]]", *lines(each, where)]
    return found


def is_table(inner: object) -> bool:
    """Whether this is a table, or a list of nothing but tables."""
    several = isinstance(inner, list | tuple) and len(inner) > 0 and all(isinstance(each, dict) for each in inner)
    return isinstance(inner, dict) or several


def key(name: str) -> str:
    return name if BARE.fullmatch(name) else text(name)


def value(inner: Any) -> str:
    """Return a value that is not a table of its own."""
    if isinstance(inner, dict):
        return "{ " + ", ".join(f"{key(name)} = {value(each)}" for name, each in inner.items()) + " }"
    if isinstance(inner, list | tuple):
        return "[" + ", ".join(map(value, inner)) + "]"
    if inner is None:
        return text(NULL)
    if isinstance(inner, bool | int):
        return json.dumps(inner)
    if isinstance(inner, float):
        return repr(inner)
    return text(str(inner))


def text(inner: str) -> str:
    """Return a text in quotes. JSON escapes as TOML does, but for DEL, which TOML wants escaped too."""
    return json.dumps(inner, ensure_ascii=False).replace("\x7f", "\\u007f")
