"""Many clients at once: their models stacked along one leading axis, in chunks.

Clients of a chunk are sorted by their number of steps, longest first, so those that still train are always its first
rows: a finished client is set aside, and nothing is computed for it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap
from torch.utils._pytree import tree_map

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.engines.batching import Pass
from fedkin.engines.fused import FusedLayers
from fedkin.engines.network import Network
from fedkin.engines.rehearsal import best_chunk, choose_way
from fedkin.engines.simulation import Simulation
from fedkin.engines.team import Tick
from fedkin.messages import Work
from fedkin.parts import Train
from fedkin.training import Descent

Step = Callable[[Message, list[Batch]], Message]  # the carry of a chunk and its batches -> the carry after one step


class Stacked(Simulation):
    """Trains a whole chunk of clients with each tensor operation."""

    rehearse = staticmethod(choose_way)

    @staticmethod
    def default_chunk(network: Network) -> int:
        """Return with how many clients at once training is fastest; a chunk changes speed and last digits only.

        For sequences of layers that are trained without autograd it is measured, once for a machine; for others it is a
        rule that was found on one.
        """
        if not isinstance(network.fused, FusedLayers) or network.sample.device.type == "cuda":
            return Stacked.usual_chunk(network)
        choose_way(network)
        return best_chunk(network)

    @staticmethod
    def usual_chunk(network: Network) -> int:
        """Return how many clients train at once on most machines."""
        if network.sample.device.type == "cuda":
            return 64
        if any(value.dim() == 4 for value in network.model.values()):
            return 10 if network.parameters < 30_000 else 5 if network.parameters < 200_000 else 1
        most, numbers = (200, 2_000_000) if network.fused is not None else (100, 200_000)
        return max(10, min(most, numbers // network.parameters))

    @property
    def divisible(self) -> bool:
        return self.network.fused is not None

    @torch.no_grad()
    def local_pass(
        self, part: Train, sent: Message, got: Tensor, mine: Message, work: Pass, round: int, tick: Tick
    ) -> tuple[Message, Message]:
        begun: Message = grouped(part.begin, sent, got, mine)
        carry = tree.each(lambda model: tree.mapped(torch.clone, model), begun)  # begin may hand back what it was sent
        steps, rate = work.steps, part.rate(round)
        taken, total, step_of = 0, max(1, int(steps.sum())), self.stepping(part, rate)
        done: list[Message] = []
        for first, last, live in segments(steps.tolist()):
            width = len(next(iter(next(iter(carry.values())).values())))
            if live < width:
                done.append(tree.each(lambda model, live=live: tree.rows(model, slice(live, None)), carry))
                carry = tree.each(lambda model, live=live: tree.rows(model, slice(0, live)), carry)
            take, rows = part.batches_per_step, slice(0, live)
            for step in range(first, last):
                some = [self.batching.batch(work, step * take + b, rows, self.network, part) for b in range(take)]
                carry = step_of(carry, some)
                taken += live
                tick(taken / total)
        carry = {name: tree.joined([message[name] for message in (carry, *reversed(done))]) for name in carry}
        if part.reflects:
            held = self.batching.held(part, work.ids)

            def reflect(sent: Message | None, carry: Message, mine: Message, batch: Batch) -> Message:
                return part.reflect(carry, sent, mine, batch, self.network)

            carry = grouped(reflect, sent, got, carry, mine, held)
        sizes = torch.from_numpy(self.batching.sizes[work.ids.numpy()])
        did = (sizes, torch.from_numpy(steps), torch.full((len(sizes),), rate, dtype=torch.float64))
        numbers = tuple(value.to(self.device, self.dtype) for value in did)

        def end(sent: Message | None, carry: Message, mine: Message, *numbers: Tensor) -> tuple[Message, Message]:
            return part.end(carry, sent, mine, Work(*numbers))

        ended: tuple[Message, Message] = grouped(end, sent, got, carry, mine, *numbers)
        return ended

    def chunk_personal(self, part: Train, sent: Message, got: Tensor, mine: Message, batch: Batch) -> Model:
        def one(sent: Message | None, mine: Message, batch: Batch) -> Model:
            return part.personal_model(sent, mine, batch, self.network)

        found: Model = grouped(one, sent, got, mine, batch)
        return found

    def chunk_met(self, part: Train, sent: Message, mine: Message, batch: Batch) -> Message:
        def one(sent: Message, mine: Message, batch: Batch) -> Message:
            return part.meet(sent, mine, batch, self.network)

        found: Message = vmap(one)(sent, mine, batch)
        return found

    def stepping(self, part: Train, rate: float) -> Step:
        """Return what takes one step of every client: fused where the part only declares descents, on stacked models as
        it stands where the part is elementwise, by vmap otherwise."""
        if part.steps_by_descent:
            descents = [(descent, descent.terms()) for descent in part.descents()]

            def descended(carry: Message, some: list[Batch]) -> Message:
                for descent, terms in descents:
                    self.descend(descent, terms, carry, some[descent.batch], rate)
                return carry

            return descended
        if part.elementwise:
            return lambda carry, some: part.step(carry, tuple(some), self.stacked_objective, rate)

        def one(carry: Message, some: tuple[Batch, ...]) -> Message:
            return part.step(carry, some, self.network, rate)

        lifted: Any = vmap(one)
        return lambda carry, some: lifted(carry, tuple(some))

    def descend(self, descent: Descent, terms: dict[str, float], carry: Message, batch: Batch, rate: float) -> None:
        """Do `Descent.step` in place; the carry is this engine's own copy. Without momentum the gradient is added to
        the model itself, with momentum to the velocity."""
        model, rate = carry[descent.model], rate * descent.speed
        if descent.momentum:
            into, keep, scale, own = carry[f"velocity of {descent.model}"], descent.momentum, 1.0, ""
        else:
            own = descent.model
            into, keep, scale = model, 1.0 - rate * terms.get(own, 0.0), -rate
        if descent.gradient:
            self.stacked_objective.add_grad(into, keep, scale, model, descent.counted(batch))
        else:
            torch._foreach_mul_(list(into.values()), keep)
        for name, factor in terms.items():
            if name != own:
                add(into, carry[name], scale * factor)
        if descent.momentum:
            add(model, into, -rate)


def add(into: Model, model: Model, scale: float) -> None:
    """Do into <- into + scale model, in place."""
    torch._foreach_add_(list(into.values()), [model[name] for name in into], alpha=scale)


def grouped(f: Callable[..., Any], sent: Message, got: Tensor, *rest: Any) -> Any:
    """Call `f(sent, ...)` for every client by vmap and return the results in the chunk's order.

    A client of the mask `got` gets its row of `sent`, any other client gets None. `rest` has rows for all clients.
    """
    if got.all():
        return f(sent, *rest) if hands_over(f, sent, *rest) else vmap(f)(sent, *rest)
    alone = vmap(lambda *own: f(None, *own))
    if not got.any():
        return alone(*rest)
    with_sent = vmap(f)(sent, *tree_map(lambda value: value[got], rest))
    without = alone(*tree_map(lambda value: value[~got], rest))
    order = torch.cat([got.nonzero(), (~got).nonzero()]).reshape(-1).argsort()
    return tree_map(lambda a, b: torch.cat([a, b])[order], with_sent, without)


def hands_over(f: Callable[..., Any], *given: Any) -> bool:
    """Whether `f` only hands over what it is given, so that it does the same to stacked tensors as to one client's.

    It is given marks instead of tensors. Whatever computes with a mark fails, and whatever makes something new returns
    a leaf that is no mark. vmap would cost more than a step of a small network.
    """
    try:
        found = f(*(marked(value) for value in given))
    except Exception:
        return False
    return all(isinstance(leaf, Mark) for leaf in leaves(found))


class Mark:
    """Stands for a tensor that is handed over."""


def marked(value: Any) -> Any:
    """The same nested dictionaries with a mark in place of each tensor."""
    return {key: marked(inner) for key, inner in value.items()} if isinstance(value, dict) else Mark()


def leaves(value: Any) -> Iterator[Any]:
    """Yield what lies in nested dictionaries and tuples."""
    if isinstance(value, dict | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def segments(steps: list[int]) -> list[tuple[int, int, int]]:
    """Return (first step, last step + 1, clients still training) for step counts in descending order.

    5, 5, 2 -> (0, 2, 3), (2, 5, 2)
    """
    ends = [0, *sorted(set(steps))]
    return [(first, last, sum(count > first for count in steps)) for first, last in pairwise(ends)]
