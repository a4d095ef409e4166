"""Builds networks by name, such as "dnn:100", or by import path, for samples of a given shape and number of classes.

No network here has running statistics or draws random numbers itself, so that the stacked engine can run the models of
many clients at once.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from fedkin.core.machine import free, readable
from fedkin.core.rng import key
from fedkin.data.notation import parsed
from fedkin.errors import BadInput, require, unknown
from fedkin.imports import called, imported
from fedkin.models.convolutional import cnn, lenet, vgg11
from fedkin.models.dense import dnn, mlp, mlr
from fedkin.models.recurrent import lstm
from fedkin.models.residual import resnet50
from fedkin.models.shape import Shape

MODELS: dict[str, Callable[..., nn.Module]] = {
    "mlr": mlr,
    "dnn": dnn,
    "mlp": mlp,
    "lenet": lenet,
    "cnn": cnn,
    "vgg11": vgg11,
    "resnet50": resnet50,
    "lstm": lstm,
}
DEEPEST = 1000  # layers of a model by name
TEXT = ("lstm",)  # models that take tokens and need the size of the vocabulary; the others take numbers


def build(spec: str, shape: Shape, classes: int, seed: int, vocabulary: int | None = None) -> nn.Module:
    """The network that `spec` names, with torch's default initialisation drawn from the stream (seed, "init").

    `spec` is a name of `MODELS`, with sizes if wanted ("mlp:200,200"), or an import path ("package.module:Name").
    `shape` is the shape of one sample, and `vocabulary` the number of tokens of text (None: the data are numbers).
    """
    name, words = (spec, []) if is_imported(spec) else parsed(spec)
    arguments = model_arguments(spec, name, words, shape, classes, vocabulary) if name in MODELS else []
    size_of(spec, shape, classes, vocabulary)  # for its check
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key(seed, "init") >> 1)
        return MODELS[name](*arguments) if name in MODELS else import_model(spec, shape, classes)


def size_of(spec: str, shape: Shape, classes: int, vocabulary: int | None = None) -> int:
    """The bytes of a model, which is not built; 0 where a module of the user's makes it. A model that does not fit into
    memory is refused."""
    name, words = (spec, []) if is_imported(spec) else parsed(spec)
    if name not in MODELS:
        return 0
    require(len(words) <= DEEPEST, f"A model has at most {DEEPEST} layers, not {len(words):,}.")
    arguments = model_arguments(spec, name, words, shape, classes, vocabulary)
    try:
        with torch.device("meta"):
            size = sum(value.numel() * value.element_size() for value in MODELS[name](*arguments).parameters())
    except (RuntimeError, OverflowError, TypeError) as error:  # torch cannot count that far
        raise BadInput(f"Model '{spec}' is larger than any machine's memory; choose smaller sizes.") from error
    need, there = readable(size), readable(free())
    require(size <= free(), f"Model '{spec}' needs {need}, and {there} are free; choose smaller sizes.")
    return size


def is_imported(spec: str) -> bool:
    """Whether a model is named by an import path."""
    return ":" in spec and spec.split(":")[0] not in MODELS


def model_arguments(
    spec: str, name: str, words: list[str], shape: Shape, classes: int, vocabulary: int | None
) -> list[Shape | int | str]:
    """The checked arguments of the function that builds the model `name`. `words` are the sizes in `spec`."""
    if name in TEXT:
        require(vocabulary is not None, f"Model '{name}' takes text, but these data are numbers; use mlr, dnn or cnn.")
    else:
        other = f"use {' or '.join(TEXT)}, or a module of your own"
        require(vocabulary is None, f"Model '{name}' takes numbers, but these data are text; {other}.")
    try:
        values = [word if name == "cnn" else int(word) for word in words]
    except ValueError:
        raise BadInput(f"'{spec}': the sizes of a model are whole numbers, as in mlp:200,200.") from None
    positive = all(isinstance(value, str) or value > 0 for value in values)
    require(positive, f"'{spec}': the sizes of a model are positive.")
    arguments: list[Shape | int | str] = [shape, classes, *([] if vocabulary is None else [vocabulary]), *values]
    try:
        signature(MODELS[name]).bind(*arguments)
    except TypeError:
        raise BadInput(f"'{spec}': model {name} takes fewer numbers than that.") from None
    return arguments


def import_model(spec: str, shape: Shape, classes: int) -> nn.Module:
    """The module that the class or function at the import path 'package.module:Name' makes.

    It is called with (shape, classes) if it takes two arguments, and without arguments if it needs none.
    """
    if ":" not in spec:
        raise unknown("model", spec, MODELS)
    maker = imported(spec, "Model")
    require(callable(maker), f"Model '{spec}' is a {type(maker).__name__}, not a class or a function.")
    try:
        parameters = signature(maker).parameters.values()
    except (TypeError, ValueError):  # of a class that is written in C
        raise BadInput(f"Model '{spec}' does not say what it takes; give a class or a function of yours.") from None
    required = [p for p in parameters if p.default is p.empty and p.kind < p.KEYWORD_ONLY]
    require(
        len(required) in (0, 2), f"Model '{spec}' must take (shape, classes) or nothing, not {len(required)} arguments."
    )
    module = called(lambda: maker(shape, classes) if required else maker(), f"Model '{spec}'")
    require(isinstance(module, nn.Module), f"'{spec}' gives a {type(module).__name__}, not a torch.nn.Module.")
    lazy = any(map(is_lazy, module.parameters()))
    require(not lazy, f"Model '{spec}' has layers without a size, as nn.LazyLinear; give them their sizes.")
    return module  # type: ignore[no-any-return]
