"""Bare PyTorch loops: what a client of each kind does, as one would write it without a framework.

A loop trains one client: it copies the model that was sent, takes `part.steps` steps with `torch.optim.SGD` on batches
that `draw` gives, and changes gradients in place where the method adds something to them. `kept` is what the client
keeps from round to round. A loop returns the model that the client uploads.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Draw = Callable[[], tuple[Tensor, Tensor]]  # the next batch: samples and labels
Kept = dict[str, Any]
Loop = Callable[[nn.Module, Any, Draw, Kept], nn.Module]


def zeros(module: nn.Module) -> list[Tensor]:
    """Return a zero for every number of a model."""
    return [torch.zeros_like(p) for p in module.parameters()]


def differentiate(model: nn.Module, batch: tuple[Tensor, Tensor]) -> None:
    """Leave the gradient of the mean loss on a batch in the model."""
    x, y = batch
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()


@torch.no_grad()
def pull(model: nn.Module, centre: nn.Module, strength: float) -> None:
    """Add to the gradient what pulls a model towards another one."""
    for p, c in zip(model.parameters(), centre.parameters(), strict=True):
        p.grad.add_(p - c, alpha=strength)


def sgd(module: nn.Module, part: Any, draw: Draw, kept: Kept) -> nn.Module:
    """FedAvg's client: plain steps, with momentum where the part has it."""
    model = copy.deepcopy(module)
    optimiser = torch.optim.SGD(model.parameters(), lr=part.eta, momentum=part.momentum)
    for _ in range(part.steps):
        differentiate(model, draw())
        optimiser.step()
    return model


def prox(module: nn.Module, part: Any, draw: Draw, kept: Kept) -> nn.Module:
    """FedProx's client: each step is pulled towards the model that was sent."""
    model = copy.deepcopy(module)
    optimiser = torch.optim.SGD(model.parameters(), lr=part.eta)
    for _ in range(part.steps):
        differentiate(model, draw())
        pull(model, module, part.lam)
        optimiser.step()
    return model


def moreau(module: nn.Module, part: Any, draw: Draw, kept: Kept) -> nn.Module:
    """pFedMe's client: K steps of theta for each batch, and then one of w towards theta."""
    w, theta = copy.deepcopy(module), copy.deepcopy(module)
    optimiser = torch.optim.SGD(theta.parameters(), lr=part.eta_p)
    for _ in range(part.steps):
        batch = draw()
        for _ in range(part.K):
            differentiate(theta, batch)
            pull(theta, w, part.lam)
            optimiser.step()
        with torch.no_grad():
            for a, b in zip(w.parameters(), theta.parameters(), strict=True):
                a.sub_(a - b, alpha=part.eta * part.lam)
    kept["theta"] = theta
    return w


def scaffold(module: nn.Module, part: Any, draw: Draw, kept: Kept) -> nn.Module:
    """SCAFFOLD's client: control variates are added to each gradient, and the client's own is renewed at the end.

    The server's control variate is zero here, as in the first round.
    """
    model, server = copy.deepcopy(module), kept.setdefault("server", zeros(module))
    mine = kept.setdefault("control", zeros(module))
    optimiser = torch.optim.SGD(model.parameters(), lr=part.eta)
    for _ in range(part.steps):
        differentiate(model, draw())
        with torch.no_grad():
            for p, c, own in zip(model.parameters(), server, mine, strict=True):
                p.grad.add_(c).sub_(own)
        optimiser.step()
    with torch.no_grad():
        change = [
            (before - after) / (part.eta * part.steps) - c
            for before, after, c in zip(module.parameters(), model.parameters(), server, strict=True)
        ]
        for own, c in zip(mine, change, strict=True):
            own.add_(c)
    return model


def ditto(module: nn.Module, part: Any, draw: Draw, kept: Kept) -> nn.Module:
    """Ditto's client: a step of the common model, and on a batch of its own one of the personal model."""
    model = copy.deepcopy(module)
    personal = kept.setdefault("personal", copy.deepcopy(module))
    optimisers = [torch.optim.SGD(one.parameters(), lr=part.eta) for one in (model, personal)]
    for _ in range(part.steps):
        differentiate(model, draw())
        optimisers[0].step()
        differentiate(personal, draw())
        pull(personal, module, part.lam)
        optimisers[1].step()
    return model


def apfl(module: nn.Module, part: Any, draw: Draw, kept: Kept) -> nn.Module:
    """APFL's client: a step of w, and one of its own model v by the gradient at their mixture; alpha learns first."""
    w, mixture = copy.deepcopy(module), copy.deepcopy(module)
    own, alpha = kept.setdefault("own", copy.deepcopy(module)), kept.setdefault("alpha", part.alpha)
    optimiser = torch.optim.SGD(w.parameters(), lr=part.eta)
    for step in range(part.steps):
        batch = draw()
        triples = list(zip(mixture.parameters(), own.parameters(), w.parameters(), strict=True))
        with torch.no_grad():
            for m, v, common in triples:
                torch.lerp(common, v, alpha, out=m)
        differentiate(mixture, batch)
        with torch.no_grad():
            slope = sum(float(((v - common) * m.grad).sum()) for m, v, common in triples) if step == 0 else 0.0
            for m, v, _ in triples:
                v.sub_(m.grad, alpha=part.eta * alpha)
        differentiate(w, batch)
        optimiser.step()
        alpha = min(1.0, max(0.0, alpha - part.eta * slope))
    kept["alpha"] = alpha
    return w


LOOPS: dict[str, Loop] = {
    "SGD": sgd,
    "Prox": prox,
    "Moreau": moreau,
    "Scaffold": scaffold,
    "TwoStreams": ditto,
    "APFL": apfl,
}  # by the name of the train part whose work they do
