"""One round of any method, and the loop over rounds. Read `parts.py` first. There is no other loop anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch

from fedkin.core import tree
from fedkin.core.rng import generator
from fedkin.engines.engine import Engine
from fedkin.log import Log
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Method

SURVEYED = 512  # clients that report at once before round 1, because their models are held meanwhile


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


def survey_message(method: Method, task: Task, engine: Engine, state: State) -> Sent | None:
    """Return what every client is sent to report on before round 1; None where the method needs no survey."""
    if not method.needs.survey:
        return None
    everyone = torch.arange(task.n)
    current = engine.current(everyone, method.train.shared) if method.needs.current else None
    return method.collaborate.send(state.collaborate, task, everyone, current)[0]


def survey(method: Method, task: Task, engine: Engine, state: State, sent: Sent) -> State:
    """Let every client report on this message before round 1, and let the selection learn from it."""
    everyone, kept = torch.arange(task.n), torch.ones(task.n, dtype=torch.float64)
    replies = [engine.survey(method.train, sent, ids, method.needs.reports) for ids in everyone.split(SURVEYED)]
    report = {name: torch.cat([reply.report[name] for reply in replies]) for name in replies[0].report}
    reply = Reply(everyone, {}, report)
    observed = method.select.observe(state.select, task, sent, reply, kept, None, generator(task.seed, "observe"))
    return replace(state, select=observed)


def play(method: Method, task: Task, engine: Engine, state: State, watcher: Watcher | None = None) -> tuple[State, Log]:
    """Play one round and return the server's new state and the log of the round."""
    select, train, keep, collaborate = method.select, method.train, method.keep, method.collaborate
    r, seed, log = state.round + 1, task.seed, Log(state.round + 1)
    everyone = torch.arange(task.n)

    with log.timed("mix_s", "selection"):
        ids, sel = select(state.select, task, r, generator(seed, "select", r))
    with log.timed("mix_s", "mixing"):
        receivers = everyone if method.receives == "everyone" else ids
        current = engine.current(receivers, train.shared) if method.needs.current else None
        sent, col = collaborate.send(state.collaborate, task, receivers, current)
    if watcher is not None:
        watcher.sent(state, sent)
    with log.timed("train_s", "training steps"):
        trainers = everyone if method.trains == "everyone" else ids
        uploads = ids if collaborate.gives.replies else ids[:0]
        trained = engine.train_together if train.pools else engine.train
        reply = trained(train, sent, trainers, r, uploads, method.needs.reports)
    kp, weights = state.keep, torch.full((len(ids),), torch.nan)
    with log.timed("mix_s", "keep"):
        reply, log.dropped = without_broken(reply)
        if len(reply.ids):
            kept, kp = keep(kp, task, sent, reply, r, generator(seed, "keep", r))
    if len(reply.ids):
        with log.timed("mix_s", "mixing"):
            col = collaborate.receive(col, task, sent, reply, kept)
        with log.timed("mix_s", "selection"):
            after = collaborate.model(col)
            sel = select.observe(sel, task, sent, reply, kept, after, generator(seed, "observe", r))
        weights[torch.searchsorted(ids, reply.ids)] = kept.cpu().float()

    log.selected, log.weights, log.sent, log.reply = ids, weights, sent, reply
    if not train.pools:  # there the samples are sent, once, before round 1
        like = tree.size([task.model])[0]
        log.traffic.up(reply, like)
        log.traffic.down(sent, like)
    return State(r, sel, kp, col), log


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
