"""How the clients of a network train fastest here: how many at once and, with images, convolved in which way."""

from __future__ import annotations

import torch

from fedkin.core import tree
from fedkin.engines.convolution import WAYS
from fedkin.engines.fused import MASK
from fedkin.engines.measured import Work, quickest
from fedkin.engines.network import Network

MANY = 200  # clients at once, at most
SMALL = 2_000  # parameters; of such networks as many as possible train at once
ROOM = 2**28  # bytes that a rehearsal may take
TINY = 1e-6  # the step size of a rehearsal
TRIED = 10  # clients with whom ways of convolving are compared, at most


def choose_way(network: Network) -> None:
    """Let a network with images convolve them in the way that is the fastest here."""
    fused = network.fused
    if fused is None or fused.way is None or network.sample.device.type != "cpu":
        return
    clients = min(TRIED, most(network))
    answers = {name: (rehearsed(network, clients, name), clients) for name in WAYS}
    fused.way = WAYS[quickest(f"way of {described(network)}", answers)]


def best_chunk(network: Network) -> int:
    """Return with how many clients at once a step of one client takes the least time here."""
    images = network.fused is not None and network.fused.way is not None
    if not images and network.parameters <= SMALL:
        return MANY
    sizes = [size for size in ((1, 2, 5, 10, 20) if images else (5, 10, 20, 50, 100, 200)) if size <= most(network)]
    if len(sizes) < 2:
        return most(network)
    answers = {str(size): (rehearsed(network, size), size) for size in sizes}
    return int(quickest(f"clients at once of {described(network)}", answers))


def most(network: Network) -> int:
    """Return how many clients fit into a rehearsal; at least one."""
    one = 2 * tree.size([network.model])[1] + 3 * network.batch * network.footprint
    return max(1, min(MANY, ROOM // one))


def rehearsed(network: Network, clients: int, way: str | None = None) -> Work:
    """Return what does one step of so many clients, on samples of which nothing is kept."""

    def work() -> None:
        fused = network.fused
        assert fused is not None
        before = fused.way
        fused.way = WAYS[way] if way is not None else before
        fused.add_grad(model, 1.0, -TINY, model, batch)  # by zero, products would be left out
        fused.way = before

    shape = (clients, network.batch)
    model = tree.mapped(torch.clone, tree.repeated(network.model, clients))
    batch = {"x": network.sample.expand(*shape, *network.sample.shape).clone()}
    batch["y"] = torch.zeros(shape, dtype=torch.int64, device=network.sample.device)
    for name, inputs in network.masks.items():
        batch[MASK + name] = network.sample.new_ones((clients, *inputs))
    return work


def described(network: Network) -> str:
    """Return the sizes of a network and of its batches in words."""
    sizes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in network.model.items())
    samples = f"{network.batch} samples {tuple(network.sample.shape)} of {network.sample.dtype}"
    layers = " ".join(str(layer) for _, layer in network.layers or ())
    return f"{sizes}; {layers}; {samples}"
