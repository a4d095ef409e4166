"""What all parts have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar

from fedkin.fields import check as check_fields
from fedkin.needs import Needs


class Part:
    """Anything that a method is made of. When a part is made, its values are checked (`fields.check`, then `check`).

    A class outside fedkin is known by 'module:Class', one of fedkin by its name.
    """

    known: ClassVar[dict[str, type[Part]]] = {}
    verb: ClassVar[str] = ""  # what sentences call the part: 'train' in 'train.eta must be positive'

    def __init_subclass__(cls) -> None:
        Part.known[cls.label()] = cls

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Refuse values that make no sense together, each in one sentence (`errors.require`). Called when the part is
        made, after each value was checked by itself."""

    @property
    def needs(self) -> Needs:
        """What this part needs from the other parts of its method, from the clients and from the data."""
        return Needs()

    @classmethod
    def label(cls) -> str:
        """The name of the class in files."""
        return cls.__name__ if cls.__module__.split(".")[0] == "fedkin" else f"{cls.__module__}:{cls.__qualname__}"

    def values(self) -> dict[str, object]:
        """The values of the fields, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def redefines(part: Part, method: Callable[..., Any]) -> bool:
    """Whether the class of this part has a method of its own in place of the one of a base class."""
    return getattr(type(part), method.__name__) is not method
