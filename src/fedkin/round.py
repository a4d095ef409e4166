"""One round of any method, and the loop over rounds. Read `parts.py` first. There is no other loop anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.rng import generator
from fedkin.engines.engine import Current, Engine, Order
from fedkin.log import Log
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Method


@dataclass(frozen=True)
class State:
    """All that the server remembers after `round` rounds: one slot for each of its three parts."""

    round: int
    select: Slot
    keep: Slot
    collaborate: Slot


class Watcher(Protocol):
    """Whoever looks at a round while it is played: a run scores and records there."""

    def sent(self, state: State, sent: Sent) -> None:
        """Called in every round after the server has sent its messages and before the clients train.

        `state` is the server's state before this round.
        """
        ...

    def played(self, state: State, log: Log) -> bool | None:
        """Called after every round, with the new state. False asks the loop to stop."""
        ...


def begin(method: Method, task: Task) -> State:
    """Return the server's state before round 1."""
    keep = method.keep.init(task, generator(task.seed, "keep"))
    return State(0, method.select.init(task), keep, method.collaborate.init(task))


@dataclass(frozen=True)
class Opened:
    """A round before its clients train: who was selected, what clients are asked to do, and two slots as they are."""

    ids: Tensor  # (m,) the selected
    order: Order
    select: Slot
    collaborate: Slot


def opened(method: Method, task: Task, current: Current, state: State, log: Log) -> Opened:
    """Play the half of a round before training: choose the clients, and make what they are sent.

    `current` gives the models that clients show now. Seconds are added to the log; nothing else is changed.
    """
    r, everyone = state.round + 1, torch.arange(task.n)
    with log.timed("mix_s", "selection"):
        ids, sel = method.select(state.select, task, r, generator(task.seed, "select", r))
    with log.timed("mix_s", "mixing"):
        receivers = everyone if method.receives == "everyone" else ids
        shown = current(receivers, method.train.shared) if method.needs.current else None
        sent, col = method.collaborate.send(state.collaborate, task, receivers, shown)
    trainers = everyone if method.trains == "everyone" else ids
    uploads = ids if method.collaborate.gives.replies else ids[:0]
    return Opened(ids, Order(method.train, sent, trainers, r, uploads, method.needs.reports), sel, col)


def closed(method: Method, task: Task, state: State, half: Opened, reply: Reply, log: Log) -> State:
    """Play the half of a round after training, write the log, and return the server's new state."""
    r, sel, kp, col = half.order.round, half.select, state.keep, half.collaborate
    ids, sent, weights = half.ids, half.order.sent, torch.full((len(half.ids),), torch.nan)
    with log.timed("mix_s", "keep"):
        reply, log.dropped = without_broken(reply)
        log.clipped = list(reply.clipped)
        if len(reply.ids):
            kept, kp = method.keep(kp, task, sent, reply, r, generator(task.seed, "keep", r))
    if len(reply.ids):
        with log.timed("mix_s", "mixing"):
            col = method.collaborate.receive(col, task, sent, reply, kept)
        with log.timed("mix_s", "selection"):
            after = method.collaborate.model(col)
            sel = method.select.observe(sel, task, sent, reply, kept, after, generator(task.seed, "observe", r))
        weights[torch.searchsorted(ids, reply.ids)] = kept.cpu().float()
    log.selected, log.weights, log.sent, log.reply = ids, weights, sent, reply
    if not method.train.pools:  # there the samples are sent, once, before round 1
        like = tree.size([task.model])[0]
        log.traffic.up(reply, like)
        log.traffic.down(sent, like)
    return State(r, sel, kp, col)


def play(method: Method, task: Task, engine: Engine, state: State, watcher: Watcher | None = None) -> tuple[State, Log]:
    """Play one round and return the server's new state and the log of the round."""
    log = Log(state.round + 1)
    half = opened(method, task, engine.current, state, log)
    if watcher is not None:
        watcher.sent(state, half.order.sent)
    with log.timed("train_s", "training steps"):
        reply = (engine.train_together if method.train.pools else engine.train)(*half.order)
    return closed(method, task, state, half, reply, log), log


def without_broken(reply: Reply) -> tuple[Reply, list[int]]:
    """Return the reply without the uploads that are not finite, and the clients whose training or upload was not."""
    if not len(reply.ids):
        return reply, sorted(reply.broken)
    good = reply.finite()
    dropped = sorted({*reply.ids[~good].tolist(), *reply.broken})
    return (reply if good.all() else reply.only(good)), dropped


def loop(method: Method, task: Task, engine: Engine, state: State, watcher: Watcher) -> State:
    """Play rounds until `task.rounds` of them are played or the watcher asks to stop; returns the last state."""
    while state.round < task.rounds:
        state, log = play(method, task, engine, state, watcher)
        go_on = watcher.played(state, log) is not False
        del log  # it holds this round's messages, which are not to live through the next one
        if not go_on:
            break
    return state
