"""Networks, built for the data's shape and classes. `build("dnn:100", shape, classes)`; any module by import path.

All are plain sequences without running statistics, so that the stacked engine can run many clients' copies at once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from itertools import pairwise
from math import prod

import torch
from torch import nn

from fedkin.core.rng import key
from fedkin.data.spec import parsed
from fedkin.errors import BadInput, require, unknown

Shape = tuple[int, ...]


def mlr(shape: Shape, classes: int) -> nn.Module:
    """Multinomial logistic regression: one linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


def mlp(shape: Shape, classes: int, *hidden: int) -> nn.Module:
    """Linear layers with ReLU between: mlp:200,200 is AdaFL's network for MNIST."""
    layers: list[nn.Module] = [nn.Flatten()]
    for into, out in pairwise((prod(shape), *(hidden or (200, 200)))):
        layers += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((hidden or (200, 200))[-1], classes))


def dnn(shape: Shape, classes: int, hidden: int | None = None) -> nn.Module:
    """One hidden ReLU layer: 20 units for vectors, 100 for images unless said (dnn:100), as in FedMCSA."""
    return mlp(shape, classes, hidden or (20 if len(shape) == 1 else 100))


def lenet(shape: Shape, classes: int) -> nn.Module:
    """LeNet-5: two 5x5 convolutions of 6 and 16 channels, then 120 and 84 units."""
    images(shape, "lenet", 16)
    pad = 2 if shape[-1] < 32 else 0
    body = [nn.Conv2d(shape[0], 6, 5, padding=pad), nn.ReLU(), nn.MaxPool2d(2)]
    body += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    head = [nn.Linear(width(body, shape), 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)]
    return nn.Sequential(*body, *head)


def cnn(shape: Shape, classes: int, kind: str = "small") -> nn.Module:
    """cnn: two 5x5 convolutions of 8 and 16 channels, then 64 units. cnn:fedmix: FedMix's reduced VGG."""
    if kind == "small":
        images(shape, "cnn", 16)
        body = [nn.Conv2d(shape[0], 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
        body += [nn.Flatten()]
        return nn.Sequential(*body, nn.Linear(width(body, shape), 64), nn.ReLU(), nn.Linear(64, classes))
    require(kind == "fedmix", f"The cnn comes as 'cnn' or 'cnn:fedmix', not 'cnn:{kind}'.")
    images(shape, "cnn:fedmix", 8)

    def block(into: int, middle: int, out: int, dropout: bool) -> list[nn.Module]:
        first = [nn.Conv2d(into, middle, 3, padding=1), nn.ReLU(), nn.Conv2d(middle, out, 3, padding=1), nn.ReLU()]
        return [*first, nn.MaxPool2d(2), *([nn.Dropout(0.1)] if dropout else [])]

    vgg = [*block(shape[0], 32, 64, False), *block(64, 128, 128, True), *block(128, 256, 256, True), nn.Flatten()]
    head = [nn.Linear(width(vgg, shape), 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*vgg, *head, nn.Linear(512, classes))


def images(shape: Shape, name: str, least: int) -> None:
    require(
        len(shape) == 3 and min(shape[1:]) >= least,
        f"Model '{name}' takes images of at least {least}x{least} pixels, but a sample here has shape {shape}; "
        "use mlr, dnn or mlp.",
    )


def width(body: list[nn.Module], shape: Shape) -> int:
    """How many numbers come out of these layers for one sample; nothing is computed."""
    ghost = copy.deepcopy(nn.Sequential(*body)).to("meta")
    return int(ghost(torch.empty(1, *shape, device="meta")).shape[1])


MODELS: dict[str, Callable[..., nn.Module]] = {"mlr": mlr, "dnn": dnn, "mlp": mlp, "lenet": lenet, "cnn": cnn}


def build(spec: str, shape: Shape, classes: int, seed: int, vocabulary: int | None = None) -> nn.Module:
    """The network of this name, initialised as torch does by default, from the stream (seed, "init")."""
    name, words = parsed(spec) if ":" not in spec or spec.split(":")[0] in MODELS else (spec, [])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key(seed, "init") >> 1)
        if name not in MODELS:
            return imported(spec, shape, classes)
        require(
            vocabulary is None, f"Model '{name}' takes numbers, but these data are text; give a module of your own."
        )
        try:
            values = [word if name == "cnn" else int(word) for word in words]
        except ValueError:
            raise BadInput(f"'{spec}': the sizes of a model are whole numbers, as in mlp:200,200.") from None
        require(
            all(isinstance(value, str) or value > 0 for value in values),
            f"'{spec}': the sizes of a model are positive.",
        )
        try:
            signature(MODELS[name]).bind(shape, classes, *values)
        except TypeError:
            raise BadInput(f"'{spec}': model {name} takes fewer numbers than that.") from None
        return MODELS[name](shape, classes, *values)


def imported(spec: str, shape: Shape, classes: int) -> nn.Module:
    """A module by import path, 'package.module:Name'; called with (shape, classes) if it takes two arguments, else
    with none."""
    if ":" not in spec:
        raise unknown("model", spec, MODELS)
    path, _, name = spec.partition(":")
    try:
        maker = getattr(import_module(path), name)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"Model '{spec}' cannot be imported: {error}.") from error
    require(callable(maker), f"Model '{spec}' is a {type(maker).__name__}, not a class or a function.")
    required = [p for p in signature(maker).parameters.values() if p.default is p.empty and p.kind < p.KEYWORD_ONLY]
    require(
        len(required) in (0, 2), f"Model '{spec}' must take (shape, classes) or nothing, not {len(required)} arguments."
    )
    try:
        module = maker(shape, classes) if required else maker()
    except Exception as error:  # whatever a user's class raises
        raise BadInput(f"Model '{spec}' cannot be built: {type(error).__name__}: {error}.") from error
    require(isinstance(module, nn.Module), f"'{spec}' gives a {type(module).__name__}, not a torch.nn.Module.")
    return module  # type: ignore[no-any-return]
