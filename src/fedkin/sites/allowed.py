"""What a site lets a server ask of it. Whatever else it is asked, it refuses in a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

from fedkin import models
from fedkin.errors import BadInput, require
from fedkin.runs.experiment import DTYPES
from fedkin.runs.part_json import IS, from_json
from fedkin.training import Train

RUN = re.compile(r"[0-9a-f]{32}")
GIVEN = "given"  # the model that a site's app was made with


def run_name(value: Any) -> str:
    """Return the name of a run, which is the name of a folder at the site; refuses anything that could be a path."""
    fits = isinstance(value, str) and RUN.fullmatch(value) is not None
    require(fits, "A run is named by 32 hexadecimal digits here, and paths are not taken from a server.")
    return str(value)


def whole(value: Any, what: str) -> int:
    """Return a whole number from 0 on; `what` says what it counts."""
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    require(fits, f"{what} is a whole number from 0 on, not {value!r}.")
    return int(value)


def train_part(value: Any, modules: Collection[str]) -> Train:
    """Return the train part that a server asks for; refuses parts of modules that this site does not allow."""
    check_parts(value, modules)
    part = from_json(value)
    require(isinstance(part, Train), f"A site runs train parts, and {type(part).__name__} is none.")
    require(not part.pools, f"{type(part).__name__} puts samples together, and samples do not leave a site.")
    return part  # type: ignore[no-any-return]


def check_parts(value: Any, modules: Collection[str]) -> None:
    """Refuse a part, or a part inside it, that is neither of fedkin nor of a module that this site allows.

    It is looked at as JSON, so that nothing is imported for a part that is refused.
    """
    if isinstance(value, list):
        for inner in value:
            check_parts(inner, modules)
    if not isinstance(value, dict):
        return
    module, colon, _ = str(value.get(IS, "")).partition(":")
    allowed = not colon or any(module == one or module.startswith(f"{one}.") for one in modules)
    require(allowed, f"This site does not allow parts of the module '{module}'; its own configuration would have to.")
    for inner in value.values():
        check_parts(inner, modules)


def network_module(
    spec: Any, given: Callable[[], nn.Module] | None, shape: tuple[int, ...], classes: int, vocabulary: int | None
) -> nn.Module:
    """Return the network that a server asks for: by one of fedkin's names, or the one that this site's app has."""
    require(isinstance(spec, str), f"A model is named, and {spec!r} is no name.")
    if spec == GIVEN:
        if given is None:
            raise BadInput("This site's app was made without a model, so there is none that is 'given'.")
        module = given()
        require(isinstance(module, nn.Module), f"The app's model is a {type(module).__name__}, not a torch.nn.Module.")
        return module
    named = spec.partition(":")[0] in models.MODELS
    require(named, f"This site builds models by fedkin's own names only, and '{spec}' is none of them.")
    return models.build(spec, shape, classes, 0, vocabulary)


def dtype(value: Any) -> torch.dtype:
    """Return a type of numbers by its name."""
    require(value in DTYPES, f"Numbers are {' or '.join(DTYPES)} here, not {value!r}.")
    return DTYPES[value]
