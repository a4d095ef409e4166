"""The actors of an engine: how they are started, asked, and started again with their clients as they were."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fedkin.engines.cluster import tensors
from fedkin.engines.cluster.connection import idle_actors
from fedkin.engines.cluster.failures import RESUME, raise_unless_mended, short_of_memory
from fedkin.engines.cluster.worker import Worker
from fedkin.errors import BadInput, Unfinished, require

START = 120.0  # seconds that the next actor has to begin
STARTS, PAUSE = 4, 5.0  # times that it is tried, and seconds between: Ray learns late that a machine is gone


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
    begun: list[Any] = field(default_factory=list)  # of what it does first: it says the id of its process
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
        self.started = 0  # actors that did not wait for a run already
        try:
            self.begin()
        except BaseException:
            self.idle = None  # nobody is to wait for one of them
            self.close()
            raise

    def begin(self) -> None:
        """Start all actors, side by side."""
        for member in self.members:
            self.start(member)
        late = [ref for member in self.members for ref in member.begun]
        while late:
            begun, late = self.ray.wait(late, timeout=START)
            none = f"{len(late)} of {len(self.members)} actors found no free core in {START:.0f} s; ask for fewer."
            require(begun, none)
        for member in self.members:
            try:
                self.built(member)
            except self.ray.exceptions.RayError as error:
                self.start_again(member, error, 1)

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
            self.started += 1
        actor, options = member.actor, self.options | {"chunk": member.chunk}
        actor.look_in.remote(sys.path)
        member.begun = [actor.build.remote(member.federation, *self.made, options)]
        if self.pool:
            member.begun.append(actor.take_pool.remote(*self.pool))
        if member.changes:
            member.begun.append(actor.restore.remote(*member.changes))

    def built(self, member: Member) -> None:
        """Wait until an actor has built its engine and has its clients' slots."""
        _, late = self.ray.wait(member.begun, num_returns=len(member.begun), timeout=START)
        if late:
            raise Unfinished(
                f"An actor that ended found no other free core in {START:.0f} s; {RESUME}, and fewer actors."
            )
        member.pid = self.ray.get(member.begun)[0]

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
            except self.ray.exceptions.RayError as error:
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
        """Start an actor again that failed so many times, with half its chunk where memory ran short.

        What a new start does not mend is raised.
        """
        raise_unless_mended(self.ray, error)
        short = short_of_memory(self.ray, error)
        how = "ran out of memory" if short else "ended"
        if short or times > 1:
            at_once = min(member.chunk, len(member.ids))
            if member.smaller or at_once == 1:
                again = f"An actor {how} again, even with a chunk of {at_once}"
                raise BadInput(f"{again}; {RESUME}, where there is more memory for each actor.") from error
            member.chunk, member.smaller = at_once // 2, True
            how += f", and goes on with a chunk of {member.chunk}"
        self.warn(f"An actor with {len(member.ids)} clients {how}; it is started again, its clients are as they were.")
        for left in reversed(range(STARTS)):
            self.start(member)
            try:
                return self.built(member)
            except self.ray.exceptions.RayError as another:
                raise_unless_mended(self.ray, another)
                if not left or short_of_memory(self.ray, another):
                    return self.start_again(member, another, times + 1)
                time.sleep(PAUSE)

    def fetched(self, places: Sequence[Any]) -> list[Any]:
        """Move what lies in Ray's memory to this process."""
        try:
            found: list[Any] = self.ray.get(list(places))
        except self.ray.exceptions.RayError as error:
            raise_unless_mended(self.ray, error)
            raise
        return found

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
