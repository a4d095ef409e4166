"""What a part needs, and what a collaborate part gives: a method fits together if all that is needed is given."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Needs:
    """What a part needs from the other parts of its method, from the clients and from the data."""

    replies: bool = False  # clients send something back
    common_model: bool = False  # one model that all clients have in common
    own_model: bool = False  # each client holds a model of its own between rounds
    current: bool = False  # the models that the clients hold now, before anything is sent
    reports: tuple[str, ...] = ()  # numbers that each client reports, as "loss"
    survey: bool = False  # every client reports once, before round 1
    truth: bool = False  # who is irrelevant
    rounds: bool = False  # the number of rounds, so that a run cannot be extended

    def __or__(self, other: Needs) -> Needs:
        """What either of the two needs. The reports are those of both, each once and in order."""
        either = {f.name: getattr(self, f.name) or getattr(other, f.name) for f in fields(self)}
        return Needs(**either | {"reports": tuple(dict.fromkeys(self.reports + other.reports))})


@dataclass(frozen=True)
class Gives:
    """What a collaborate part gives to the other parts of its method."""

    replies: bool = True  # False: nothing is ever exchanged
    common_model: bool = False  # the server holds one model for all clients (`Collaborate.model`)
    own_model: bool = False  # each client holds a model of its own between rounds
