"""What methods and parts are, in words: their fields with value, meaning and range.

The meaning of a field is the comment at its line in the class, and its range is that of its annotation. So both stand
where the field is written, in fedkin and in parts of one's own.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from fedkin.fields import Rule, alternatives, hints_of, is_part
from fedkin.methods import METHODS
from fedkin.parts import Part

TYPES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    NoneType: "null",
}
FOR_TOOLS = re.compile(r"#\s*(type: ignore|noqa).*")


@dataclass(frozen=True)
class Explained:
    """A field of a part, in words."""

    name: str
    value: str
    fits: str
    meaning: str


def explained(part: Part | type[Part]) -> list[Explained]:
    """Return the fields of a part with their values or, of a class of parts, with their defaults."""
    kind = part if isinstance(part, type) else type(part)
    values = default_values(kind) if isinstance(part, type) else part.values()
    words, hints = meanings(kind), hints_of(kind)  # type: ignore[arg-type]
    return [Explained(name, shown(value), fits(hints[name]), words.get(name, "")) for name, value in values.items()]


def default_values(kind: type[Part]) -> dict[str, object]:
    """Return the default of each field; a field that has none must be given."""
    found: dict[str, object] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        made = field.default_factory() if field.default_factory is not MISSING else field.default
        found[field.name] = "must be given" if made is MISSING else made
    return found


@cache
def meanings(kind: type) -> dict[str, str]:
    """Return the comment at the line of each field, of a class and of those that it is derived from."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Part) and base is not Part:
            found |= comments(base)
    return found


def comments(kind: type) -> dict[str, str]:
    """Return the comments at the fields of one class; none where its source is not at hand."""
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    at = {
        token.start[0]: FOR_TOOLS.sub("", token.string).lstrip("# ")
        for token in tokens
        if token.type == tokenize.COMMENT
    }
    tree = ast.parse(source).body[0]
    found: dict[str, str] = {}
    for node in tree.body if isinstance(tree, ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = [at[line] for line in range(node.lineno, (node.end_lineno or node.lineno) + 1) if at.get(line)]
            found |= {node.target.id: said[-1]} if said else {}
    return found


def fits(hint: Any) -> str:
    """Return which values fit an annotation."""
    return ", or ".join(fitting(option) for option in alternatives(hint))


def fitting(hint: Any) -> str:
    """Return which values fit an annotation that is no union."""
    hint, *rules = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    words = [rule.fits for rule in rules if isinstance(rule, Rule) and rule.fits]
    if hint in TYPES:
        kind = TYPES[hint]
    elif get_origin(hint) is Literal:
        *most, last = map(str, get_args(hint))
        kind = f"{', '.join(most)} or {last}" if most else last
    elif get_origin(hint) is tuple:
        kind = "a list"
    elif is_part(hint):
        kind = f"a {hint.__name__} part"
    else:
        kind = "anything"
    return " ".join([kind, *words])


def shown(value: object) -> str:
    """Return a value as `--set` takes it, and a part with all its fields."""
    if isinstance(value, Part):
        return (
            f"{type(value).__name__}({', '.join(f'{name}={shown(inner)}' for name, inner in value.values().items())})"
        )
    if isinstance(value, list | tuple):
        return f"[{','.join(map(shown, value))}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def purpose(name: str) -> tuple[str, str]:
    """Return what a named method does, and its round as its file draws it ('' where it is another method's)."""
    made = METHODS[name]
    about = inspect.getdoc(inspect.getmodule(made)) or ""
    head, _, box = about.partition("\n\n")
    own = inspect.getdoc(made) or ""
    return "\n".join(text for text in (joined(head), joined(own)) if text), box.strip()


def joined(text: str) -> str:
    """Return paragraphs without the line breaks inside them."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
