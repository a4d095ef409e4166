"""What the record of a round says beyond accuracies.

How well a filter found the irrelevant clients, how heterogeneous the clients are, and what parts think of each client.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.engines.engine import Engine, Score
from fedkin.errors import require
from fedkin.evaluate import blocks, joined, personal_models
from fedkin.log import Log
from fedkin.messages import Model, Task
from fedkin.parts import Method
from fedkin.round import State
from fedkin.runs.experiment import Experiment

Numbers = dict[str, dict[str, float | None]]


def marks(method: Method, state: State, log: Log) -> dict[str, Tensor]:
    """Return what select and keep think of every client, as '<part>/<name>'; keep's only of clients that replied."""
    found = {f"select/{name}": value.cpu() for name, value in method.select.marks(state.select).items()}
    replied = log.selected[log.has_replied]
    for name, value in method.keep.marks(state.keep).items():
        known = value.cpu()  # (n,)
        found[f"keep/{name}"] = torch.full_like(known, torch.nan).index_copy(0, replied, known[replied])
    return found


def filter_quality(method: Method, engine: Engine, state: State, log: Log) -> Numbers:
    """Return how well the keep part found the irrelevant clients in this round, where it is known who they are."""
    if engine.irrelevant is None or not method.keep.needs.replies:
        return {}
    ids, kept = log.selected[log.has_replied], log.weights[log.has_replied]
    divergence = method.keep.marks(state.keep).get("divergence")
    scores = None if divergence is None else divergence[ids].numpy()
    return {"filter": filtered(engine.irrelevant[ids].numpy(), kept.numpy(), scores)}


def relevant_loss(method: Method, task: Task, engine: Engine, state: State, sample: Tensor | None = None) -> Numbers:
    """Return the training loss of the relevant clients, whose labels are right, where it is known who they are; of
    those in the sample, if there is one."""
    if engine.irrelevant is None:
        return {}
    relevant = (~engine.irrelevant).nonzero()[:, 0]
    relevant = relevant if sample is None else relevant[torch.isin(relevant, sample)]
    if sample is not None and not len(relevant):
        return {}
    common = None if sample is None else method.collaborate.model(state.collaborate)
    if common is not None:  # all other clients' samples need not be looked at
        score = engine.score(tree.repeated(common, len(relevant)), relevant, "train")
    else:
        score = training_score(method, task, engine, state, relevant)
    return {"train": {"relevant_loss": mean_loss(score)}}


def asked(experiment: Experiment, task: Task, engine: Engine, state: State, log: Log) -> Numbers:
    """Return the numbers that cost much and are recorded only where the experiment asks for them."""
    method = experiment.method
    found: Numbers = {}
    if experiment.heterogeneity:
        found |= heterogeneity(method, task, engine, state, log)
    if experiment.gradient_norm:
        found |= gradient_norm(method, task, engine, state)
    return found


def heterogeneity(method: Method, task: Task, engine: Engine, state: State, log: Log) -> Numbers:
    """Return PFedRe's gap Gamma and skew rho (definitions 2 and 3) at the models of this round.

    Gamma compares the common model with the personal ones, rho says whose updates counted. Both need training losses,
    which only a simulation knows.
    """
    everyone, sizes = torch.arange(task.n), task.sizes.double()
    personal = personal_training_score(method, task, engine, state, everyone).mean_loss
    gamma = rho = None
    if method.collaborate.model(state.collaborate) is not None:
        common = training_score(method, task, engine, state, everyone).mean_loss
        gamma = gap(sizes.numpy(), common.numpy(), personal.numpy())
    whole = method.collaborate.gives.whole_model  # some layers alone have no loss
    if log.reply is not None and "model" in log.reply.upload and whole and log.has_replied.any():
        ids, kept = log.selected[log.has_replied], log.weights[log.has_replied].double()
        local = engine.score(log.reply.upload["model"], log.reply.ids, "train").mean_loss
        rho = skew(sizes[ids].numpy(), kept.numpy(), local.numpy(), personal[ids].numpy())
    return {"heterogeneity": {"gap": finite(gamma), "skew": finite(rho)}}


def gradient_norm(method: Method, task: Task, engine: Engine, state: State) -> Numbers:
    """Return |grad F_lambda(W)|, which FedACS's theorem bounds, and its two parts.

    W has the models of all clients as columns: their own, or what they are sent if they hold none. 'loss' is the norm
    of grad F(W), whose columns are the gradients of the clients' training losses. 'pull' is that of
    lambda grad R(W) = (W - U) / beta, with U what the server would send them now and beta the rate of the next round:
    so lambda is alpha / beta, as in the theorem. 'norm' is that of their sum. Without a U there is the first only.
    """
    known = method.collaborate.gives.start
    require(known, f"Clients of {method.name} choose where they start; leave --gradient-norm out.")
    everyone = torch.arange(task.n)
    common = method.collaborate.model(state.collaborate)
    if method.collaborate.gives.own_model:
        models = engine.current(everyone, method.train.shared)
    else:
        sent = method.collaborate.send(state.collaborate, task, everyone, None)[0].to(everyone)["model"]
        models = sent if common is None else tree.repeated(common, task.n)
    slopes = engine.gradients(models, everyone)
    pull = norm = None
    if method.needs.current:
        sent = method.collaborate.send(state.collaborate, task, everyone, models)[0].to(everyone)["model"]
        rate = method.train.rate(state.round + 1)
        pulls = tree.mapped(lambda w, u: (w - u) / rate, models, models | sent)  # what is not sent does not pull
        pull, norm = length(pulls), length(tree.added(slopes, pulls))
    return {"gradient": {"norm": norm, "loss": length(slopes), "pull": pull}}


def length(models: Model) -> float | None:
    """Return the Frobenius norm of all these models together; None where it is not finite."""
    return finite(float(sum(value.double().square().sum() for value in models.values())) ** 0.5)


def finite(value: float | None) -> float | None:
    """Return the number; None where it is not finite, because a record holds no such numbers."""
    return value if value is not None and np.isfinite(value) else None


def training_score(method: Method, task: Task, engine: Engine, state: State, ids: Tensor) -> Score:
    """Score the common model, or else each client's personal model, on the training samples of these clients."""
    common = method.collaborate.model(state.collaborate)
    if common is None:
        return personal_training_score(method, task, engine, state, ids)
    score = engine.score_one(common, "train")
    return Score(score.correct[ids], score.loss[ids], score.count[ids])


def personal_training_score(method: Method, task: Task, engine: Engine, state: State, ids: Tensor) -> Score:
    """Score these clients' personal models on their training samples."""
    parts = [
        engine.score(personal_models(method, task, engine, state, some), some, "train", method.train)
        for some in blocks(task, ids, method.train.personal_size)
    ]
    return joined(parts, task.n)


def mean_loss(score: Score) -> float | None:
    """Return the mean loss over all samples; None where it is not finite."""
    return finite(float(score.loss.sum() / score.count.sum().double()))


# the numbers themselves


def filtered(irrelevant: np.ndarray, kept: np.ndarray, divergence: np.ndarray | None) -> dict[str, float | None]:
    """Return precision, recall, F1 and AUC of a filter over the clients that replied.

    The filter found the clients whose update has weight 0. The AUC is of the divergences: the share of pairs
    (irrelevant, relevant) in which the irrelevant client has the larger one.
    """
    found = kept == 0
    hits, truth = int((found & irrelevant).sum()), int(irrelevant.sum())
    precision = hits / int(found.sum()) if found.any() else None
    recall = hits / truth if truth else None
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * hits / (int(found.sum()) + truth) if truth else None,
        "auc": None if divergence is None else auc(irrelevant, divergence),
    }


def auc(irrelevant: np.ndarray, divergence: np.ndarray) -> float | None:
    """Return the share of pairs that are in order. Ties count half; a divergence that is nan counts as infinite."""
    from scipy.stats import rankdata  # takes a second to import

    bad = int(irrelevant.sum())
    good = len(irrelevant) - bad
    if not bad or not good:
        return None
    ranks = rankdata(np.where(np.isnan(divergence), np.inf, divergence))
    return float((ranks[irrelevant].sum() - bad * (bad + 1) / 2) / (bad * good))


def gap(sizes: np.ndarray, common: np.ndarray, personal: np.ndarray) -> float:
    """Return Gamma (8): how much lower the training losses are with personal models than with the common one."""
    with np.errstate(invalid="ignore"):  # infinite minus infinite
        return float(np.average(common - personal, weights=sizes))


def skew(sizes: np.ndarray, kept: np.ndarray, local: np.ndarray, personal: np.ndarray) -> float | None:
    """Return rho (9): the mean of F_k(omega_k) - F_k(beta_k) over the clients that count, divided by that over all.

    It is 1 if who counts has nothing to do with that difference, and None where the divisor is nothing.
    """
    weights = sizes * kept
    with np.errstate(invalid="ignore"):  # infinite minus infinite
        excess = local - personal
        whole = float(np.average(excess, weights=sizes))
    return float(np.average(excess, weights=weights)) / whole if weights.sum() > 0 and whole > 1e-12 else None
