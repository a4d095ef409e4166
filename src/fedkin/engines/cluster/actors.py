"""The actors of an engine: how they are started, asked, and started again with their clients as they were."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fedkin.core.tree import Message
from fedkin.engines.cluster import tensors
from fedkin.engines.cluster.connection import idle_actors
from fedkin.engines.cluster.worker import Worker
from fedkin.errors import BadInput, Unfinished

START = 120.0  # seconds that an actor has to begin


@dataclass(frozen=True)
class Call:
    """A function of a worker, what it is given, and how many things it returns: the first comes here, others stay."""

    name: str
    given: tuple[Any, ...] = ()
    returns: int = 1


@dataclass
class Member:
    """An actor, its clients, and what it takes to start it again.

    `changes` has private slots in Ray's memory, the oldest first; a change of all the actor's clients begins it anew.
    """

    ids: Tensor  # (k,) ascending
    federation: Any
    chunk: int
    actor: Any = None
    begun: Any = None  # the id of its process, when it has built its engine
    pid: int = 0
    smaller: bool = False  # whether its chunk was halved
    changes: list[Any] = field(default_factory=list)
    changed: int = 0  # rows of these changes


class Actors:
    """The actors. One that ends in a call is started again, gets its clients' slots back, and is asked once more."""

    def __init__(
        self,
        ray: Any,
        members: Sequence[Member],
        made: tuple[Any, ...],
        options: dict[str, Any],
        gpus: float,
        device: torch.device,
        warn: Callable[[str], None],
    ):
        tensors.register()
        self.ray, self.members, self.options, self.device, self.warn = ray, list(members), options, device, warn
        self.made = made  # the network and the train part, in Ray's memory
        self.idle, self.gpus = idle_actors(ray), gpus
        self.pool: tuple[Any, ...] = ()
        for member in self.members:
            self.start(member)
        begun = [member.begun for member in self.members]
        _, late = ray.wait(begun, num_returns=len(begun), timeout=START)
        if late:
            self.close()
            raise BadInput(f"{len(late)} of {len(begun)} actors found no free core in {START:.0f} s; ask for fewer.")
        for member in self.members:
            self.built(member)

    def start(self, member: Member) -> None:
        """Start an actor, or start it again with its clients as they were after the last call that it answered."""
        if member.actor is not None:
            self.ray.kill(member.actor)
        waits = [one for one in self.idle or () if one[0] == self.gpus and member.actor is None]
        if waits and self.idle is not None:
            self.idle.remove(waits[0])
            member.actor = waits[0][1]
        else:
            kind = self.ray.remote(Worker).options(num_cpus=1, num_gpus=self.gpus, max_restarts=0, max_task_retries=0)
            member.actor = kind.remote()
        member.actor.look_in.remote(sys.path)
        options = self.options | {"chunk": member.chunk}
        member.begun = member.actor.build.remote(member.federation, *self.made, options)
        if self.pool:
            member.actor.take_pool.remote(*self.pool)
        if member.changes:
            try:
                self.ray.get(member.actor.restore.remote(*member.changes))
            except self.ray.exceptions.RayError as error:
                where = "What clients keep to themselves was lost with a machine of the cluster"
                raise Unfinished(
                    f"{where}; the run is saved up to its last checkpoint, go on with --resume."
                ) from error

    def built(self, member: Member) -> None:
        """Wait until an actor has built its engine; one that ended while it waited for a run is started again."""
        errors = self.ray.exceptions
        try:
            member.pid = self.ray.get(member.begun)
        except errors.RayActorError:
            self.start(member)
            member.pid = self.ray.get(member.begun)
        except errors.RaySystemError as error:
            reason = str(error).splitlines()[0].removeprefix("System error: ").rstrip(".")
            raise BadInput(f"An actor lacks what the run needs ({reason}); install it on every machine.") from error
        except errors.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, BadInput) else error) from None

    # asking

    def ask(
        self, calls: Mapping[int, Call], tell: Callable[[int], None] = lambda member: None
    ) -> dict[int, tuple[Any, ...]]:
        """Ask actors, all at once; returns for each what it answered, and where else it returned lies.

        `tell` is called with the number of each actor that has answered.
        """
        found: dict[int, tuple[Any, ...]] = {}
        failed: Counter[int] = Counter()
        waiting = {self.sent(number, call): number for number, call in calls.items()}
        while waiting:
            done, _ = self.ray.wait([refs[0] for refs in waiting])
            refs = next(refs for refs in waiting if refs[0] == done[0])
            number = waiting.pop(refs)
            try:
                found[number] = (self.ray.get(refs[0]), *refs[1:])
                tell(number)
            except (self.ray.exceptions.RayActorError, self.ray.exceptions.RayTaskError) as error:
                failed[number] += 1
                self.start_again(self.members[number], error, failed[number])
                waiting[self.sent(number, calls[number])] = number
        return {number: found[number] for number in calls}

    def sent(self, number: int, call: Call) -> tuple[Any, ...]:
        """Ask one actor, and return where its answers will lie."""
        function = getattr(self.members[number].actor, call.name)
        refs = function.options(num_returns=call.returns).remote(*call.given)
        return tuple(refs) if call.returns > 1 else (refs,)

    def start_again(self, member: Member, error: Exception, times: int) -> None:
        """Start an actor again that failed so many times in one call, with half its chunk where memory ran short.

        An error of the training itself is raised as it was there.
        """
        short = short_of_memory(error)
        if isinstance(error, self.ray.exceptions.RayTaskError) and not short:
            raise (error.cause if isinstance(error.cause, BadInput) else error) from None
        how = "ran out of memory" if short else "ended"
        if short or times > 1:
            if member.smaller or member.chunk == 1:
                sentence = f"An actor {how} again, even with a chunk of {member.chunk}; the run is saved up to its last"
                raise Unfinished(f"{sentence} checkpoint, go on with --resume where there is more memory.") from error
            member.chunk, member.smaller = member.chunk // 2, True
            how += f", and goes on with a chunk of {member.chunk}"
        self.warn(f"An actor with {len(member.ids)} clients {how}; it is started again, its clients are as they were.")
        self.start(member)
        self.built(member)

    def fetched(self, places: Sequence[Any]) -> list[Message]:
        """Move messages from Ray's memory to this process's device."""
        return [tensors.moved(message, self.device) for message in self.ray.get(list(places))]

    def give_pool(self, *pool: Any) -> None:
        """Give every actor what all clients sent before round 1."""
        self.pool = pool
        self.ask({number: Call("take_pool", pool) for number in range(len(self.members))})

    # private slots

    def remember(self, number: int, change: Any, rows: int) -> None:
        """Keep, in Ray's memory, the private slots of so many clients of an actor as they are now."""
        member = self.members[number]
        if rows == len(member.ids):
            member.changes, member.changed = [], 0
        member.changes.append(change)
        member.changed += rows
        if member.changed > 2 * len(member.ids):  # it is shorter to keep all of them once
            self.snapshot([number])

    def snapshot(self, numbers: Sequence[int]) -> list[Any]:
        """Keep the private slots of all clients of these actors; returns where they lie."""
        found = self.ask({number: Call("private", returns=2) for number in numbers})
        for number, (_, whole) in found.items():
            self.remember(number, whole, len(self.members[number].ids))
        return [whole for _, whole in found.values()]

    def close(self) -> None:
        """End the actors, or let them wait for the next run."""
        for member in self.members:
            if member.actor is not None and self.idle is not None:
                member.actor.close.remote()
                self.idle.append((self.gpus, member.actor))
            elif member.actor is not None:
                self.ray.kill(member.actor)
            member.actor = None
            member.changes.clear()


def short_of_memory(error: Exception) -> bool:
    """Whether an actor failed for lack of memory, as far as it can be told."""
    cause = getattr(error, "cause", None)
    words = ("can't allocate memory", "DefaultCPUAllocator", "CUDA out of memory", "due to memory pressure")
    kinds = isinstance(cause, MemoryError | torch.OutOfMemoryError)
    return kinds or any(word in str(error) for word in words)
