"""APFL's client: a model v of its own and a copy w of the common model, mixed by a weight alpha that it learns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.core import losses, tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.fields import NonNegative, Share
from fedkin.messages import Objective, Work
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class APFL(SGD):
    """w <- w - eta g(w);  vbar = alpha v + (1 - alpha) w;  v <- v - eta alpha g(vbar);
    alpha <- clip(alpha - eta ( <v - w, g(vbar)> + penalty alpha ), 0, 1).

    All three use the values before the step. alpha changes in the first step of each round (`adapt="first"`), in every
    step, or never. `mix="output"` mixes the outputs of the two networks instead of their parameters, as FedTorch does.
    `penalty` is also from FedTorch, where it is 0.02.
    """

    alpha: Share = 0.5  # the weight of a client's own model at the start; the common model has the rest
    adapt: Literal["first", "every", "never"] = "first"  # in which steps of a round alpha learns
    penalty: NonNegative = 0.0  # pulls alpha towards 0, as FedTorch does with 0.02
    mix: Literal["parameter", "output"] = "parameter"  # whether the models' parameters or their outputs are mixed

    def check(self) -> None:
        super().check()
        plain = self.momentum == 0 and self.weight_decay == 0
        require(plain, "APFL's client has no momentum and no weight decay; set both to 0.")

    @property
    def predicts_itself(self) -> bool:
        return self.mix == "output"

    @property
    def elementwise(self) -> bool:
        """A step on mixed parameters also takes stacked models, with one alpha for each client."""
        return self.mix == "parameter"

    def slots(self, model: Model, own: bool) -> Message:
        like = next(iter(model.values()))
        alpha = torch.full((), self.alpha, dtype=like.dtype, device=like.device)
        return {"model": model, "own": model, "mix": {"alpha": alpha, "trained": torch.zeros_like(alpha)}}

    def begin(self, sent: Message | None, mine: Message) -> Message:
        w = sent["model"] if sent and "model" in sent else mine["model"]
        alpha = mine["mix"]["alpha"]
        return {"model": w, "own": mine["own"], "mix": {"alpha": alpha, "first": torch.ones_like(alpha)}}

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        w, v, alpha, batch = carry["model"], carry["own"], carry["mix"]["alpha"], batches[0]
        if self.mix == "parameter":
            g = f.grad(mixed(alpha, v, w), batch)
            own = tree.mapped(lambda x, slope: torch.addcmul(x, beside(alpha, x), slope, value=-rate), v, g)
        else:
            at_v, at_w = self.output_grads(alpha, v, w, batch, f)
            own = tree.mapped(lambda x, slope: x - rate * alpha * slope, v, at_v)
            g = mixed(alpha, at_v, at_w)
        first = carry["mix"]["first"]
        if not self.settled(first):
            learned = torch.clamp(alpha - rate * (inner(alpha, v, w, g) + self.penalty * alpha), 0.0, 1.0)
            alpha = learned if self.adapt == "every" else torch.where(first > 0, learned, alpha)
        return {
            "model": tree.added(w, f.grad(w, batch), -rate),
            "own": own,
            "mix": {"alpha": alpha, "first": torch.zeros_like(first)},
        }

    def settled(self, first: Tensor) -> bool:
        """Whether alpha stays as it is in this step. Where steps are lifted by vmap, `first` cannot be looked at."""
        return self.adapt == "never" or (self.adapt == "first" and self.elementwise and not bool(first.any()))

    def output_grads(self, alpha: Tensor, v: Model, w: Model, batch: Batch, f: Objective) -> tuple[Model, Model]:
        """The gradients of the loss of the mixed outputs at v and at w, each without its factor alpha or 1 - alpha."""
        with torch.no_grad():
            blend = alpha * f.logits(v, batch) + (1 - alpha) * f.logits(w, batch)
        signal = torch.func.grad(lambda out: losses.mean(losses.each(out, batch["y"]), batch))(blend)
        back = lambda model: torch.func.grad(lambda m: (f.logits(m, batch) * signal).sum())(model)  # noqa: E731
        return back(v), back(w)

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        alpha = carry["mix"]["alpha"]
        private = {
            "model": carry["model"],
            "own": carry["own"],
            "mix": {"alpha": alpha, "trained": torch.ones_like(alpha)},
        }
        return private, {"model": carry["model"]}

    @property
    def personal_size(self) -> int:
        return 2 if self.mix == "output" else 1

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        """alpha v + (1 - alpha) w, with w as it was after training. A client that never trained takes the common model
        of now as w. With `mix="output"` it is both networks and alpha, as one model."""
        alpha, v, w = mine["mix"]["alpha"], mine["own"], mine["model"]
        if sent and "model" in sent:
            trained = mine["mix"]["trained"] > 0
            w = tree.mapped(lambda own, now: torch.where(trained, own, now), w, sent["model"])
        if self.mix == "parameter":
            return mixed(alpha, v, w)
        return {f"own/{k}": x for k, x in v.items()} | {f"common/{k}": x for k, x in w.items()} | {"alpha": alpha}

    def predicted(self, personal: Model, batch: Batch, logits: Callable[[Model, Batch], Tensor]) -> Tensor:
        if not self.predicts_itself:
            return logits(personal, batch)
        part = lambda start: {k.removeprefix(start): x for k, x in personal.items() if k.startswith(start)}  # noqa: E731
        alpha = personal["alpha"]
        return alpha * logits(part("own/"), batch) + (1 - alpha) * logits(part("common/"), batch)


def mixed(alpha: Tensor, v: Model, w: Model) -> Model:
    """alpha v + (1 - alpha) w, of one client or of stacked ones."""
    return tree.mapped(lambda a, b: torch.lerp(b, a, beside(alpha, a)), v, w)


def inner(alpha: Tensor, v: Model, w: Model, g: Model) -> Tensor:
    """<v - w, g>, a number for each alpha."""
    found = torch.zeros_like(alpha)
    for name, slope in g.items():
        found = found + ((v[name] - w[name]) * slope).reshape(*alpha.shape, -1).sum(-1)
    return found


def beside(alpha: Tensor, value: Tensor) -> Tensor:
    """alpha in a shape that multiplies all of a client's value."""
    return alpha.reshape(alpha.shape + (1,) * (value.dim() - alpha.dim()))
