"""What every client reports before round 1, where a method needs that."""

from __future__ import annotations

from dataclasses import replace

import torch

from fedkin.core.rng import generator
from fedkin.engines.engine import Engine
from fedkin.messages import Reply, Sent, Task
from fedkin.parts import Method
from fedkin.round import State

SURVEYED = 512  # clients that report at once, because their models are held meanwhile


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
