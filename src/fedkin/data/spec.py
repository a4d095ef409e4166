"""What data a federation is made of, as a user says it: one frozen, JSON-friendly record."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from fedkin.data.catalogue import CATALOGUE
from fedkin.errors import BadInput, require, unknown

TABLES = (".csv", ".parquet", ".npz")
FEDMCSA = ("mnist", "fashion_mnist", "cifar10")  # the three generators of FedMCSA's authors


def parsed(text: str) -> tuple[str, list[str]]:
    """The name and the arguments of `"name"`, `"name:a,b"` or `"name(a, b)"`."""
    text = text.strip()
    if text.endswith(")") and "(" in text:
        name, _, inside = text[:-1].partition("(")
    else:
        name, _, inside = text.partition(":")
    arguments = [part.strip() for part in inside.split(",")] if inside.strip() else []
    return name.strip(), arguments


def is_path(name: str) -> bool:
    """Whether a dataset's name means own data. Existence is not asked here, so that a record can be read anywhere."""
    separators = {"/", os.sep}
    return name not in CATALOGUE and (
        any(separator in name for separator in separators)
        or name in {".", ".."}
        or PurePath(name).suffix.lower() in TABLES
        or os.path.isdir(name)
    )


def _alpha(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _fedmcsa(text: str) -> str:
    if text not in FEDMCSA:
        raise unknown("generator of the fedmcsa partition", text, FEDMCSA)
    return text


Argument = float | int | str | None

# name -> how its one argument is read (None: it takes none), what that must be, the default
PARTITIONS: dict[str, tuple[Callable[[str], Argument] | None, str, Argument]] = {
    "iid": (None, "", None),
    "dirichlet": (_alpha, "a number above 0", 0.5),
    "classes": (_count, "a whole number of at least 1", 2),
    "shards": (_count, "a whole number of at least 1", 2),
    "natural": (str, "a column", None),
    "pfedme": (None, "", None),
    "pfedme-overlap": (None, "", None),
    "fedmcsa": (_fedmcsa, "a generator", None),
}


def partition_argument(text: str) -> tuple[str, Argument]:
    """The partition's name and its argument, read and checked: `"dirichlet:0.5"` -> `("dirichlet", 0.5)`."""
    name, arguments = parsed(text)
    if name not in PARTITIONS:
        raise unknown("partition", name, PARTITIONS)
    read, wanted, default = PARTITIONS[name]
    allowed = 0 if read is None else 1
    require(
        len(arguments) <= allowed,
        f"The partition '{name}' takes {'no argument' if read is None else 'one argument'}, "
        f"not {len(arguments)} as in '{text}'.",
    )
    if read is None or not arguments:
        return name, default
    try:
        return name, read(arguments[0])
    except BadInput:
        raise
    except ValueError:
        raise BadInput(f"The argument of '{name}' must be {wanted}, not '{arguments[0]}'.") from None


def _some(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError
    return value


def _rate(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError
    return value


def _origin(text: str) -> str:
    choices = ("noise", "permuted", *CATALOGUE)
    if text not in choices:
        raise unknown("source of out-of-distribution samples", text, choices)
    return text


# name -> for each argument how it is read, what it is and must be, the default (None: it must be given)
SCENARIOS: dict[str, tuple[tuple[Callable[[str], Argument], str, Argument], ...]] = {
    "flip": (
        (_some, "share of the clients must be a number above 0 and below 1", None),
        (_rate, "share of their samples must be a number above 0 and up to 1", 1.0),
    ),
    "ood": (
        (_some, "share of the clients must be a number above 0 and below 1", None),
        (_origin, "source must be noise, permuted or a dataset", "permuted"),
    ),
    "odd_even": (
        (_count, "number of relevant clients must be a whole number of at least 1", 6),
        (_count, "number of irrelevant clients must be a whole number of at least 1", 4),
    ),
}


def scenario(text: str) -> tuple[str, list[Any]]:
    """The kind of irrelevant clients and its arguments, read and checked: `"flip:0.1"` -> `("flip", [0.1, 1.0])`."""
    name, given = parsed(text)
    name = name.replace("-", "_")
    if name not in SCENARIOS:
        raise unknown("kind of irrelevant clients", name, SCENARIOS)
    wanted = SCENARIOS[name]
    most = len(wanted)
    require(len(given) <= most, f"'{name}' takes at most {most} arguments, not {len(given)} as in '{text}'.")
    require(given or name == "odd_even", f"'{name}' needs the share of irrelevant clients, as in '{name}:0.2'.")
    both = "'odd_even' takes both numbers of clients, relevant and irrelevant, or none, as in 'odd_even:6,4'."
    require(name != "odd_even" or len(given) != 1, both)
    arguments = [default for _, _, default in wanted]
    for place, argument in enumerate(given):
        read, must, _ = wanted[place]
        try:
            arguments[place] = read(argument)
        except BadInput:
            raise
        except ValueError:
            raise BadInput(f"The {must} in '{text}', not '{argument}'.") from None
    return name, arguments


def synthetic_arguments(name: str) -> tuple[float, float]:
    """alpha and beta of `"synthetic(alpha, beta)"`; (0.5, 0.5) unless given."""
    _, arguments = parsed(name)
    if not arguments:
        return 0.5, 0.5
    try:
        alpha, beta = (float(argument) for argument in arguments)
    except ValueError:
        raise BadInput(f"synthetic takes two numbers, as in 'synthetic(0.5, 0.5)', not '{name}'.") from None
    require(
        math.isfinite(alpha) and math.isfinite(beta) and alpha >= 0 and beta >= 0,
        f"The two numbers of synthetic must be finite and at least 0, not '{name}'.",
    )
    return alpha, beta


@dataclass(frozen=True)
class Data:
    """Which samples, divided how among how many clients, and what is held out.

    `name`: a dataset of `fedkin data list`, with arguments where it has some, or a path to own data.
    `partition`: who gets which samples; None is the dataset's own way.
    `clients`: None is the dataset's own number; with natural clients a number takes that many of them, at random.
    `samples`: a cap on each client's training samples (all if it has fewer); test and validation sets stay whole.
    `test`, `validation`: fractions of each client's own samples.
    `holdout`: "split" pools the official splits and holds out a part of every client's share; "official" divides the
    official training split, keeps the official test split as the common test set, and gives each client the part of it
    that has the client's class proportions.
    `minimum`: fewest samples a client may have (dirichlet: reached by moving samples; natural: the others are dropped).
    `client`, `target`: the columns of own data that say whose a sample is and its class.
    `server`: samples taken out before the partition, for the server's own validation set.
    `irrelevant`: clients whose training samples are of no use to the others: "flip:0.2" (of the clients; "flip:0.1,0.2"
    flips a fifth of the samples of a tenth of the clients), "ood:0.1" (out of distribution; "ood:0.1,noise" or another
    dataset instead of permuted features) or "odd_even" ("odd_even:6,4" clients). Everything held out stays clean, and
    who they are is `Federation.irrelevant`, which only the evaluation sees.
    `seed`: of everything random about the data; another one than the experiment's, so that seeds can share the data.
    """

    name: str = "synthetic"
    partition: str | None = None
    clients: int | None = None
    samples: int | None = None
    test: float = 0.25
    validation: float = 0.0
    holdout: Literal["split", "official"] = "split"
    minimum: int | None = None
    client: str | None = None
    target: str | None = None
    server: int = 0
    irrelevant: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_name()
        self._check_numbers()
        if self.holdout not in ("split", "official"):
            raise unknown("holdout", str(self.holdout), ("split", "official"))
        for field, value in (("client", self.client), ("target", self.target)):
            named = value is None or (isinstance(value, str) and value)
            require(named, f"'{field}' must be the name of a column, not {value!r}.")
        require(
            self.own or (self.client is None and self.target is None),
            f"'client' and 'target' name columns of own data; {self.name} has its own.",
        )
        if self.partition is not None:
            require(isinstance(self.partition, str), f"The partition must be text, not {self.partition!r}.")
            name, column = partition_argument(self.partition)
            require(
                name != "natural" or column is None or self.client in (None, column),
                f"partition='{self.partition}' and client='{self.client}' name two different columns; give one.",
            )

        if self.irrelevant is not None:
            require(isinstance(self.irrelevant, str), f"'irrelevant' must be text, not {self.irrelevant!r}.")
            require(
                scenario(self.irrelevant)[0] != "odd_even" or (self.partition is None and self.clients is None),
                "'odd_even' makes its own clients; leave 'partition' and 'clients' out, and write 'odd_even:6,4' for "
                "other numbers of them.",
            )

    def _check_name(self) -> None:
        require(isinstance(self.name, str) and self.name.strip(), "A dataset needs a name or a path.")
        if self.own:
            return
        name, arguments = parsed(self.name)
        if name not in CATALOGUE:
            raise unknown("dataset", name, CATALOGUE)
        if name == "synthetic":
            synthetic_arguments(self.name)
        else:
            require(not arguments, f"The dataset '{name}' takes no arguments; write '{name}', not '{self.name}'.")

    def _check_numbers(self) -> None:
        for field, least in (("clients", 1), ("samples", 1), ("minimum", 0), ("server", 0), ("seed", 0)):
            value = getattr(self, field)
            if value is None and field not in ("seed", "server"):
                continue
            require(
                isinstance(value, int) and not isinstance(value, bool) and value >= least,
                f"'{field}' must be a whole number of at least {least}, not {value!r}.",
            )
        require(self.seed < 2**32 - 1, f"'seed' must be below 2**32 - 1, not {self.seed}.")
        for field in ("test", "validation"):
            value = getattr(self, field)
            require(
                isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1,
                f"'{field}' must be a fraction from 0 to below 1, not {value!r}.",
            )
        require(
            self.test + self.validation < 1,
            f"test={self.test} and validation={self.validation} leave nothing to train on; lower one.",
        )

    @property
    def own(self) -> bool:
        """Whether the name is a path to the user's own data."""
        return is_path(self.name)

    @property
    def dataset(self) -> str:
        """The name without its arguments; of own data, the last part of the path."""
        return (PurePath(self.name).stem or "own") if self.own else parsed(self.name)[0]
