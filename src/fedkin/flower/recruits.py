"""What a strategy finds out before round 1: who its nodes are, and what the server knows of the problem."""

from __future__ import annotations

from collections.abc import Callable
from logging import INFO
from typing import Any
from uuid import uuid4

import torch
from flwr.app import ArrayRecord
from flwr.common.logger import log
from flwr.serverapp import Grid
from torch import Tensor, nn

from fedkin.data.natural_order import natural_order
from fedkin.engines.network import Network
from fedkin.errors import BadInput, require
from fedkin.flower.grid import OnGrid
from fedkin.flower.nodes import FedkinNodes, Keys, Nodes, OwnNodes
from fedkin.flower.records import tensors
from fedkin.messages import Model, Task
from fedkin.parts import Method
from fedkin.privacy import Privacy
from fedkin.select import Uniform
from fedkin.sites.agreement import agree
from fedkin.sites.allowed import GIVEN
from fedkin.sites.ledger import Ledger
from fedkin.sites.letters import Answer, Request
from fedkin.train import SGD, TwoStreams

Make = Callable[[], nn.Module]
Warn = Callable[[str], None]
ANOTHER = ("Flower says (code 2)", "This message is none")  # so begin reasons of apps that raise, or reply otherwise


def check_method(method: Method, make: Make | None, fraction: float | None) -> None:
    """Refuse a method that needs more than the rounds of a Flower strategy."""
    needs, name = method.needs, method.name
    more = needs.survey or needs.truth or method.train.pools or method.train.picks is not None
    require(not more, f"{name} needs more than the rounds of a strategy; run it by fedkin.flower.run.")
    looks = any(part.needs.classes for part in (method.select, method.keep, method.collaborate))
    require(make is not None or not looks, f"The server of {name} looks into the network; give Strategy a model=.")
    drawn = fraction is None or isinstance(method.select, Uniform)
    chosen = type(method.select).__name__
    require(drawn, f"{name} selects its clients itself, by {chosen}; leave fraction_train out.")


def check_plain(method: Method) -> None:
    """Refuse a method whose client is more than plain SGD, for nodes that do not run fedkin's client.

    PFedRe's client also trains a model that never leaves it; such nodes may do so or not, the server cannot tell.
    """
    train = method.train
    plain = type(train) is SGD or (type(train) is TwoStreams and train.personal_is_local)
    gives = method.collaborate.gives
    require(
        plain and not method.needs.reports and gives.whole_model and gives.start,
        f"The client of {method.name} ({type(train).__name__}) is more than plain SGD, and the nodes do not run "
        "fedkin's client; make their ClientApp with fedkin.flower.client.",
    )


def numbers_and_rest(first: ArrayRecord) -> tuple[Model, dict[str, Any]]:
    """Return the numbers to learn among arrays, and the other arrays, as counters of batches."""
    found = tensors(first)
    model = {name: value for name, value in found.items() if value.is_floating_point()}
    require(model, "The initial arrays have no numbers to learn.")
    return model, {name: first[name] for name in found if name not in model}


def recruited(
    grid: Grid,
    method: Method,
    first: ArrayRecord,
    keys: Keys,
    seed: int,
    timeout: float,
    largest: float | None,
    privacy: Privacy | None,
    warn: Warn,
) -> tuple[Nodes, dict[str, Any]]:
    """Return the nodes of a strategy, and what those that run fedkin's client agree on."""
    model, rest = numbers_and_rest(first)
    present, transport = sorted(grid.get_node_ids()), OnGrid(grid, warn)
    if not runs_fedkin(transport, present, timeout):
        theirs = "These nodes run a ClientApp of their own, which adds no noise"
        require(privacy is None, f"{theirs}; leave dp out, or make it with fedkin.flower.client.")
        check_plain(method)
        return OwnNodes(tuple(present), model, rest, keys, largest, warn), {}
    transport.warn = lambda sentence: None  # one that says nothing is told of in the next sentence
    answers = transport.introduced(Request(uuid4().hex, "introduce"), present, timeout)
    transport.warn = warn
    among = f"{len(answers)} of {len(present)} nodes run fedkin's client"
    require(len(answers) == len(present), f"{among}, and the others do not; give all of them the same ClientApp.")
    require(not rest, f"The initial arrays have {', '.join(rest)}, which is no parameter; give only parameters.")
    names, sizes, agreed = agreed_on(answers, warn)
    dtype = str(next(iter(model.values())).dtype).removeprefix("torch.")
    how: dict[str, Any] = {"network": GIVEN, "dtype": dtype, "largest": largest, "warn": warn}
    how |= {"dp": None if privacy is None else str(privacy)}
    own = method.collaborate.gives.own_model
    ledger = Ledger(names, sizes, agreed, method.train, model, seed, own=own, **how)
    return FedkinNodes(transport, ledger, keys, timeout), agreed


def runs_fedkin(transport: OnGrid, nodes: list[int], timeout: float) -> bool:
    """Whether the nodes run fedkin's client. One of them is asked, since they all run the same app; of those that are
    gone the next one.

    An app of Flower's usual form has no answer to that, and Flower writes a page about it, so a line says why.
    """
    log(INFO, "fedkin asks a node whether it runs fedkin's client; where it has no query function, it does not.")
    for node in nodes:
        (answer,) = transport.sent([(node, Request(uuid4().hex, "introduce"))], timeout)
        if isinstance(answer, Answer):
            return True
        if answer.reason.startswith(ANOTHER):
            return False
    return False


def agreed_on(answers: list[Answer], warn: Warn) -> tuple[list[str], Tensor, dict[str, Any]]:
    """Return the sites that agree, sorted by name, their sizes, and what they agree on."""
    told = {answer.site: answer.facts for answer in answers}
    require(len(told) == len(answers), "Two nodes say that they are the same site; give each its own name.")
    agreed, wrong = agree({name: told[name] for name in natural_order(told)})
    for name, why in wrong.items():
        warn(f"Site {name} was not taken: {why}")
    names = [name for name in natural_order(told) if name not in wrong]
    return names, torch.tensor([told[name]["data"]["sizes"]["train"] for name in names]), agreed


def task_of(
    nodes: Nodes, first: ArrayRecord, rounds: int, seed: int, make: Make | None, sample: Tensor | None, batch: int
) -> Task:
    """Return what the server knows of the problem; of the network only where there is one."""
    model, n = numbers_and_rest(first)[0], len(nodes.names)
    if make is None:
        return Task(n, nodes.sizes, rounds, model, unknown_loss, seed=seed)
    if sample is None:
        raise BadInput("The server does not know what a sample is like; give Strategy one, as sample=torch.zeros(5).")
    dtype = next(iter(model.values())).dtype
    known = Network(make(), sample.to(dtype if sample.is_floating_point() else sample.dtype), batch, dtype)
    return Task(
        n,
        nodes.sizes,
        rounds,
        model,
        known.loss,
        logits=known.logits,
        classes=known.outputs,
        shape=known.differentiable(tuple(sample.shape)),
        seed=seed,
        layers=known.layers,
    )


def unknown_loss(model: Model, batch: Any) -> Tensor:
    raise BadInput("The server does not know the network; give Strategy a model=.")
