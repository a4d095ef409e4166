"""What is seen of a run on an engine, to be compared with the same run on another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from small import seen_round
from torch import Tensor

from fedkin import round as rounds
from fedkin.core import tree
from fedkin.engines import Simulation
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep, Method

ROUNDS = 3


@dataclass(frozen=True)
class Nearer(Keep):
    """Leaves out the largest update and, by lot, one more; remembers every mask."""

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        update = tree.update(tree.repeated(task.model, len(reply.ids)), reply.upload["model"])
        kept = torch.ones(len(reply.ids), dtype=torch.float64)
        kept[tree.vector(update).double().norm(dim=1).argmax()] = 0.0
        kept[torch.randint(len(reply.ids), (), generator=gen)] = 0.0
        return kept, slot | {f"kept {round}": kept}


@dataclass
class Seen:
    """`exact` must be the same on every engine; `tensors` are all that the server and the clients remember."""

    exact: list[Any] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    @property
    def selected(self) -> list[list[int]]:
        return [line[0] for line in self.exact]

    @property
    def plans(self) -> list[dict[int, list[list[int]]]]:
        return [line[1] for line in self.exact]


def played(
    begun: tuple[Simulation, Task, rounds.State], method: Method, number: int = ROUNDS, evaluates: bool = False
) -> Seen:
    engine, task, state = begun
    seen = Seen()
    for t in range(1, number + 1):
        if evaluates:
            state, log, _ = seen_round(method, task, engine, state)
        else:
            state, log = rounds.play(method, task, engine, state)
        assert not log.dropped
        ids = torch.arange(task.n) if method.trains == "everyone" else log.selected
        kept = log.weights.nan_to_num(-1.0).tolist()
        seen.exact.append((log.selected.tolist(), planned(engine, method, t, ids), log.replied, kept, log.traffic))
    server = {"select": state.select, "keep": state.keep, "collaborate": state.collaborate}
    everything = tree.flat(server | {"clients": engine.private()})
    seen.tensors = {name: value.clone() for name, value in everything.items()}
    return seen


def planned(engine: Simulation, method: Method, t: int, ids: Tensor) -> dict[int, list[list[int]]]:
    """The rows each client uses, in the chunks in which this engine runs them."""
    found = {}
    for chosen in engine.batching.chunks(method.train, ids, engine.chunk):
        work = engine.batching.planned(method.train, t, chosen)
        for i, client in enumerate(chosen.tolist()):
            counts = work.count[:, i].tolist()
            found[client] = [work.rows[k, i, :c].tolist() for k, c in enumerate(counts) if c]
            assert len(found[client]) == work.steps[i] * method.train.batches_per_step
    return dict(sorted(found.items()))


def agree(one: Seen, other: Seen, tolerance: float = 1e-5) -> None:
    assert one.exact == other.exact
    close(one.tensors, other.tensors, tolerance)


def close(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float = 1e-5) -> None:
    assert set(one) == set(other)
    for name, value in one.items():
        assert value.dtype == other[name].dtype
        a, b = (tensor.double().nan_to_num(neginf=0.0) for tensor in (value, other[name]))
        assert (a - b).norm() <= tolerance * a.norm(), name


def identical(one: Seen, other: Seen) -> None:
    assert one.exact == other.exact
    assert set(one.tensors) == set(other.tensors)
    for name, value in one.tensors.items():
        assert torch.equal(value.nan_to_num(), other.tensors[name].nan_to_num()), name
