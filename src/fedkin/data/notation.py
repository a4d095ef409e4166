"""Reads the short texts that name a partition, a scenario or a synthetic dataset, such as "dirichlet:0.5"."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fedkin.data.catalogue import CATALOGUE
from fedkin.errors import BadInput, require, unknown

FEDMCSA = ("mnist", "fashion_mnist", "cifar10")  # the three generators of FedMCSA's authors

Argument = float | int | str | None


def parsed(text: str) -> tuple[str, list[str]]:
    """The name and the arguments of `"name"`, `"name:a,b"` or `"name(a, b)"`."""
    text = text.strip()
    if text.endswith(")") and "(" in text:
        name, _, inside = text[:-1].partition("(")
    else:
        name, _, inside = text.partition(":")
    arguments = [part.strip() for part in inside.split(",")] if inside.strip() else []
    return name.strip(), arguments


def _above_zero(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError
    return value


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _fedmcsa_generator(text: str) -> str:
    if text not in FEDMCSA:
        raise unknown("generator of the fedmcsa partition", text, FEDMCSA)
    return text


# name -> the function that reads its one argument (None: it takes none), what the argument must be, the default
PARTITIONS: dict[str, tuple[Callable[[str], Argument] | None, str, Argument]] = {
    "iid": (None, "", None),
    "dirichlet": (_above_zero, "a number above 0", 0.5),
    "classes": (_at_least_one, "a whole number of at least 1", 2),
    "shards": (_at_least_one, "a whole number of at least 1", 2),
    "natural": (str, "a column", None),
    "pfedme": (None, "", None),
    "pfedme-overlap": (None, "", None),
    "fedmcsa": (_fedmcsa_generator, "a generator", None),
}


def partition_argument(text: str) -> tuple[str, Argument]:
    """The name of a partition and its checked argument: `"dirichlet:0.5"` -> `("dirichlet", 0.5)`."""
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


def _share_below_one(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError
    return value


def _share_up_to_one(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError
    return value


def _ood_source(text: str) -> str:
    choices = ("noise", "permuted", *CATALOGUE)
    if text not in choices:
        raise unknown("source of out-of-distribution samples", text, choices)
    return text


def _class_number(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


ATTACKS = ("scale", "sign", "alie")  # scenarios in which samples stay clean, and updates are changed

# name -> for each argument: the function that reads it, what it is and must be, the default (None: it has none)
SCENARIOS: dict[str, tuple[tuple[Callable[[str], Argument], str, Argument], ...]] = {
    "flip": (
        (_share_below_one, "share of the clients must be a number above 0 and below 1", None),
        (_share_up_to_one, "share of their samples must be a number above 0 and up to 1", 1.0),
    ),
    "ood": (
        (_share_below_one, "share of the clients must be a number above 0 and below 1", None),
        (_ood_source, "source must be noise, permuted or a dataset", "permuted"),
    ),
    "target": (
        (_share_below_one, "share of the clients must be a number above 0 and below 1", None),
        (_class_number, "class must be a whole number of at least 0", None),
    ),
    "scale": (
        (_share_below_one, "share of the clients must be a number above 0 and below 1", None),
        (_finite, "factor of their updates must be a number", -10.0),
    ),
    "sign": ((_share_below_one, "share of the clients must be a number above 0 and below 1", None),),
    "alie": (
        (_share_below_one, "share of the clients must be a number above 0 and below 1", None),
        (_above_zero, "number of deviations must be above 0", 1.5),
    ),
    "odd_even": (
        (_at_least_one, "number of relevant clients must be a whole number of at least 1", 6),
        (_at_least_one, "number of irrelevant clients must be a whole number of at least 1", 4),
    ),
}


def scenario_arguments(text: str) -> tuple[str, list[Any]]:
    """The kind of irrelevant clients and its checked arguments: `"flip:0.1"` -> `("flip", [0.1, 1.0])`."""
    name, texts = parsed(text)
    name = name.replace("-", "_")
    if name not in SCENARIOS:
        raise unknown("kind of irrelevant clients", name, SCENARIOS)
    wanted = SCENARIOS[name]
    most = len(wanted)
    require(
        len(texts) <= most,
        f"'{name}' takes at most {most} argument{'s' * (most > 1)}, not {len(texts)} as in '{text}'.",
    )
    require(texts or name == "odd_even", f"'{name}' needs the share of irrelevant clients, as in '{name}:0.2'.")
    both = "'odd_even' takes both numbers of clients, relevant and irrelevant, or none, as in 'odd_even:6,4'."
    require(name != "odd_even" or len(texts) != 1, both)
    arguments = [default for _, _, default in wanted]
    for place, argument in enumerate(texts):
        read, must, _ = wanted[place]
        try:
            arguments[place] = read(argument)
        except BadInput:
            raise
        except ValueError:
            raise BadInput(f"The {must} in '{text}', not '{argument}'.") from None
    return name, arguments


def synthetic_arguments(name: str) -> tuple[float, float]:
    """alpha and beta of `"synthetic(alpha, beta)"`, or (0.5, 0.5) if the name has no arguments."""
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
