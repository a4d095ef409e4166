"""What all parts have in common: their values are checked, and they say what they need and what they give.

A method fits together if all that its parts need is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import get_annotations
from typing import Any, ClassVar

from fedkin.fields import check as check_fields


@dataclass(frozen=True)
class Needs:
    """What a part needs from the other parts of its method, from the clients and from the data."""

    replies: bool = False  # clients send something back
    common_model: bool = False  # one model that all clients have in common
    own_model: bool = False  # each client holds a model of its own between rounds
    current: bool = False  # the models that the clients hold now, before anything is sent
    reports: tuple[str, ...] = ()  # numbers that each client reports, as "loss"
    models: tuple[str, ...] = ()  # further models beside "model" that go down and up, as SCAFFOLD's "control"
    survey: bool = False  # every client reports once, before round 1
    truth: bool = False  # who is irrelevant
    classes: bool = False  # targets that are classes, not numbers
    whole_model: bool = False  # all of a model is sent, not only some of its layers
    start: bool = False  # the server knows from which model each client starts
    layers: bool = False  # a network of several layers, of which the last is its head
    rounds: bool = False  # the number of rounds, so that a run cannot be extended

    def __or__(self, other: Needs) -> Needs:
        """What either of the two needs. Reports and models are those of both, each once and in order."""
        either = {f.name: getattr(self, f.name) or getattr(other, f.name) for f in fields(self)}
        both = {name: getattr(self, name) + getattr(other, name) for name in ("reports", "models")}
        return Needs(**either | {name: tuple(dict.fromkeys(words)) for name, words in both.items()})


@dataclass(frozen=True)
class Gives:
    """What a collaborate part gives to the other parts of its method."""

    replies: bool = True  # False: nothing is ever exchanged
    common_model: bool = False  # the server holds one model for all clients (`Collaborate.model`)
    own_model: bool = False  # each client holds a model of its own between rounds
    models: tuple[str, ...] = ()  # further models beside "model" that it sends, and takes from every upload
    whole_model: bool = True  # False: only some layers are sent
    remembered: int = 0  # models of each client that the server remembers
    start: bool = True  # False: a client makes the model it starts from out of several that it is sent


BEFORE = {"__post_init__": "write check() instead", "listens": "say it in the property 'gives'"}
BEFORE |= dict.fromkeys(
    ("asks", "needs_model", "surveys", "learns", "extends", "judges", "told", "mixes_before"),
    "say it in the property 'needs'",
)


class Part:
    """Anything that a method is made of. When a part is made, its values are checked (`fields.check`, then `check`).

    A class outside fedkin is known by 'module:Class', one of fedkin by its name.
    """

    known: ClassVar[dict[str, type[Part]]] = {}
    copies: ClassVar[int] = (
        0  # models of each reply that it makes while it works; the memory of a run is estimated by it
    )
    verb: ClassVar[str] = ""  # what sentences call the part: 'train' in 'train.eta must be positive'

    def __init_subclass__(cls) -> None:
        Part.known[cls.label()] = cls
        foreign = cls.__module__.split(".")[0] != "fedkin"
        for name in sorted(set(BEFORE) & set(cls.__dict__) - set(get_annotations(cls))) if foreign else ():
            raise TypeError(f"{cls.__name__}.{name} is of a version before and would not be read; {BEFORE[name]}.")

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

    def values(self) -> dict[str, Any]:
        """The values of the fields, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def redefines(part: Part, method: Callable[..., Any]) -> bool:
    """Whether the class of this part has a method of its own in place of the one of a base class."""
    return getattr(type(part), method.__name__) is not method
