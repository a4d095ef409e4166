"""What the record of a round says beyond accuracies: of irrelevant clients, of heterogeneity, of what parts think."""

from __future__ import annotations

import torch
from torch import Tensor

from fedkin.engines import Simulation
from fedkin.engines.simulation import Score
from fedkin.messages import Task
from fedkin.parts import Method
from fedkin.results import metrics, record
from fedkin.round import Log, State, judged

Numbers = dict[str, dict[str, float | None]]


def marks(method: Method, state: State, log: Log) -> dict[str, Tensor]:
    """What selection and keep think of every client: '<part>/<name>' -> (n,); keep only of those that replied."""
    parts = {"select": (method.select, state.select), "keep": (method.keep, state.keep)}
    found = {
        f"{name}/{mark}": value.cpu()
        for name, (part, slot) in parts.items()
        for mark, value in part.marks(slot).items()  # type: ignore[attr-defined]
    }
    heard = log.selected[~log.weights.isnan()]
    for name in (name for name in found if name.startswith("keep/")):
        found[name] = torch.full_like(found[name], torch.nan).index_copy(0, heard, found[name][heard])
    return found


def irrelevant(method: Method, task: Task, engine: Simulation, state: State, log: Log, scoring: bool) -> Numbers:
    """Where it is known who is irrelevant: how well the filter found them in this round, and, on evaluated rounds, the
    training loss of the others, which is that of the relevant clients' clean labels."""
    truth = engine.federation.irrelevant
    if truth is None:
        return {}
    found: Numbers = {}
    if method.keep.needs.replies:
        replied = ~log.weights.isnan()
        ids = log.selected[replied]
        divergence = method.keep.marks(state.keep).get("divergence")
        scores = None if divergence is None else divergence[ids].numpy()
        found["filter"] = metrics.filtered(truth[ids].numpy(), log.weights[replied].numpy(), scores)
    if scoring:
        found["train"] = {
            "relevant_loss": record.mean_loss(trained(method, task, engine, state, (~truth).nonzero()[:, 0]))
        }
    return found


def trained(method: Method, task: Task, engine: Simulation, state: State, ids: Tensor) -> Score:
    """How the common model, or else each client's own, does on the training samples of these clients."""
    common = method.collaborate.model(state.collaborate)
    if common is None:
        return personal(method, task, engine, state, ids)
    score = engine.evaluate_one(common, engine.federation.train)
    return Score(score.correct[ids], score.loss[ids], score.count[ids])


def personal(method: Method, task: Task, engine: Simulation, state: State, ids: Tensor) -> Score:
    """How these clients' own models do on their training samples."""
    models = judged(method, task, engine, state, ids)
    return engine.evaluate(models, ids, engine.federation.train, method.train)


def heterogeneity(method: Method, task: Task, engine: Simulation, state: State, log: Log) -> Numbers:
    """PFedRe's definitions 2 and 3 at the models of this round: the gap Gamma between the common and the personal
    models, and the skew rho of whose updates counted. Both by training losses, so they are the simulation's to know."""
    everyone = torch.arange(task.n)
    own = mean(personal(method, task, engine, state, everyone))
    sizes = task.sizes.double()
    gap = skew = None
    if method.collaborate.model(state.collaborate) is not None:
        gap = metrics.gap(sizes.numpy(), mean(trained(method, task, engine, state, everyone)).numpy(), own.numpy())
    replied = ~log.weights.isnan()
    if log.local is not None and replied.any():
        ids, kept = log.selected[replied], log.weights[replied].double()
        local, mine = mean(log.local).numpy(), own[ids].numpy()
        skew = metrics.skew(sizes[ids].numpy(), kept.numpy(), local, mine)
    return {"heterogeneity": {"gap": gap, "skew": skew}}


def mean(score: Score) -> Tensor:
    """The mean loss of each client."""  # (m,)
    return score.loss / score.count.clamp(min=1)
