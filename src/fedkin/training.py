"""What a client does in a round: the part that runs at the client (`Train`), and steps declared as data (`Descent`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from fedkin.contract import Part, redefines
from fedkin.core import tree
from fedkin.messages import Batch, Message, Model, Objective, Work


@dataclass(frozen=True)
class Descent:
    """One descent of one model of the carry (the named models of a client during a round):

    v <- momentum v + grad(model) + decay model + pull (model - towards) + sum(plus) - sum(minus)
    model <- model - speed rate v

    `model`, `towards`, `plus` and `minus` are names of models in the carry. If there is momentum, the velocity v of a
    model is in the carry as 'velocity of <model>'.
    """

    model: str = "model"
    towards: str | None = None
    pull: float = 0.0
    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    momentum: float = 0.0
    decay: float = 0.0
    speed: float = 1.0  # times the rate of the round
    batch: int = 0  # which of the batches of a step
    gradient: bool = True  # whether grad(model) is among the terms
    without: int | None = None  # the fold of the client's samples that does not count here; None: all count

    def terms(self) -> dict[str, float]:
        """The factor of each model of the carry that is added to the gradient in v."""
        found: dict[str, float] = {}
        pulled = [(self.model, self.pull), (self.towards, -self.pull)] if self.towards is not None else []
        beside = [*((name, 1.0) for name in self.plus), *((name, -1.0) for name in self.minus)]
        for name, factor in [(self.model, self.decay), *pulled, *beside]:
            found[name] = found.get(name, 0.0) + factor
        return {name: factor for name, factor in found.items() if factor}

    def counted(self, batch: Batch) -> Batch:
        """The batch as it counts in this descent, of one client or of many."""
        if self.without is None:
            return batch
        weight = (batch["fold"] != self.without).to(batch["fold"].dtype)
        return batch | {"weight": weight * batch["weight"] if "weight" in batch else weight}

    def begin(self, carry: Message) -> Message:
        """The carry with the velocity of this descent at zero, if it has momentum."""
        return carry | {f"velocity of {self.model}": tree.zeros(carry[self.model])} if self.momentum else carry

    def step(self, carry: Message, batch: Batch, f: Objective, rate: float) -> Message:
        """The carry after one step on this batch.

        Engines that fuse steps add in this order too: where training diverges, rounding decides.
        """
        model, terms, rate = carry[self.model], self.terms(), rate * self.speed
        result = dict(carry)
        gradient = f.grad(model, self.counted(batch)) if self.gradient else tree.zeros(model)
        if self.momentum:
            v = tree.added(gradient, carry[f"velocity of {self.model}"], self.momentum)
            for name, factor in terms.items():
                v = tree.added(v, carry[name], factor)
            return result | {f"velocity of {self.model}": v, self.model: tree.added(model, v, -rate)}
        shrink = 1.0 - rate * terms.pop(self.model, 0.0)
        after = tree.added(tree.mapped(lambda w: shrink * w, model), gradient, -rate)
        for name, factor in terms.items():
            after = tree.added(after, carry[name], -rate * factor)
        return result | {self.model: after}


class Train(Part):
    """What does a client do with what it receives?

    Everything here is for ONE client and pure; an engine lifts it to many clients. During a round a client has a
    *carry*: named models that `begin` makes, `step` changes and `end` divides into private models and an upload. A part
    that only declares `descents` need not write a `step`, and an engine may fuse its steps.
    """

    verb = "train"

    eta: float
    steps: int | None  # mini-batch steps in a round ...
    epochs: int | None  # ... or passes over the data of the client
    batch: int
    sampler: str
    shared: ClassVar[str] = "model"  # the private model that a client shows when it is asked for its current one
    changes: ClassVar[tuple[str, ...]] = ()  # uploads that are changes; all others are models, as they were sent
    also: ClassVar[dict[str, str]] = {}  # further private models to score: 'post-<name>' -> private model
    picks: ClassVar[str | None] = None  # the prepared model of which each batch has one random row, 'picked <name>'
    own_streams: ClassVar[bool] = False  # whether the batches of a step have a random stream each even with `steps`

    clocked: ClassVar[bool] = False  # whether each batch says in 'done' which share of the round's steps it ends
    pools: ClassVar[bool] = False  # whether one model is trained on the samples of all clients of a round together
    counts: ClassVar[bool] = False  # whether batches have 'counts': how many samples of each class the client has

    @property
    def folds(self) -> int:
        """Into how many folds a client's training samples are divided; 0: none. With folds, batches say in 'fold' which
        one each sample is of, 'counts' has a row for each fold, and a descent may leave a fold out."""
        return 0

    @property
    def held(self) -> int:
        """How many of the folds, the first ones, hold the samples that `reflect` and `meet` see."""
        return 0

    @property
    def picks_own(self) -> bool:
        """Whether the picked row may be one that the client prepared itself."""
        return True

    @property
    def batches_per_step(self) -> int:
        """How many batches one step needs. With `epochs` each of them has a random stream and shuffles of its own, so
        that a client takes as many steps as with one batch a step; with `steps` only where `own_streams` says so."""
        return 1

    @property
    def elementwise(self) -> bool:
        """Whether `step` uses nothing but `f.grad` and arithmetic between tensors of one name. Such a step means the
        same on stacked models, and an engine may call it with them."""
        return True

    @property
    def reflects(self) -> bool:
        """Whether a client looks at samples that it held out, after its last step."""
        return redefines(self, Train.reflect)

    @property
    def steps_by_descent(self) -> bool:
        """Whether all that a step does is in `descents`, so that an engine may fuse it."""
        return not redefines(self, Train.step)

    @property
    def has_personal_model(self) -> bool:
        """Whether the part itself says by which model a client is scored."""
        return redefines(self, Train.personal_model)

    @property
    def personal_size(self) -> int:
        """How many models the model by which a client is scored is as large as."""
        return 1

    @property
    def personal_is_local(self) -> bool:
        """Whether the model by which a client is scored never sees the others, so that it is that of training alone. A
        method with such a part is judged by its common model."""
        return False

    @property
    def predicts_itself(self) -> bool:
        """Whether the part itself says how a personal model predicts."""
        return redefines(self, Train.predicted)

    def rate(self, round: int) -> float:
        """The learning rate of a round."""
        return self.eta

    def reach(self, steps: Tensor) -> Tensor:
        """How many plain gradient steps are worth so many steps of this part, if the gradient were constant."""
        return steps

    def alone(self) -> dict[str, Any]:
        """The fields of plain SGD with which a client that trains alone does as much work, at the same rate."""
        names = ("eta", "steps", "epochs", "batch", "momentum", "weight_decay", "rate_decay", "gamma", "sampler")
        return {name: value for name, value in self.values().items() if name in names}

    def in_pool(self, clients: int) -> Train:
        """What the one client does that holds the samples of so many clients, where samples are pooled."""
        return self

    def slots(self, model: Model, own: bool) -> Message:
        """The private models of a client before round 1.

        model: the initial model. own: whether clients hold a model of their own between rounds (`Gives.own_model`).
        """
        return {"model": model} if own else {}

    def prepare(self, x: Tensor, y: Tensor, classes: int) -> Message | None:
        """What a client sends once, before round 1, as rows; None if nothing. Every client then finds the rows of all
        clients in what it is sent. x, y: the training samples of the client."""
        return None

    @property
    def at_hand(self) -> int:
        """How many of its training samples a client has at hand when it meets what it is sent; 0: it does not look."""
        return 0

    def meet(self, sent: Message, mine: Message, batch: Batch, f: Objective) -> Message:
        """What a client makes of what it was sent before it begins, as a choice among several models. Called only if
        `at_hand`; `begin` and `end` are then given this in place of what was sent.

        batch: `at_hand` of its training samples, or all if it has no more; where folds are `held`, of these.
        """
        return sent

    def at_home(self) -> Train:
        """How a client trains a common model that it takes home, to be scored by it, where it holds none of its own."""
        return self

    def descents(self) -> tuple[Descent, ...]:
        """What one step does, in this order."""
        return ()

    def begin(self, sent: Message | None, mine: Message) -> Message:
        """The carry at the start of a round. sent: what the client was sent, or None if it trains without being sent
        anything. mine: the private models of the client."""
        raise TypeError(f"{type(self).__name__} does not say where a client starts")

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        """The carry after one step. batches: `batches_per_step` of them. rate: the learning rate of the round."""
        for descent in self.descents():
            carry = descent.step(carry, batches[descent.batch], f, rate)
        return carry

    def adjusted(self, batch: Batch) -> Batch:
        """The batch as the client trains on it. With 'offset' (classes,) in it, the offset is added to the logits in
        the loss. Called for one client or for many at once, whose batches have one more axis."""
        return batch

    def reflect(self, carry: Message, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Message:
        """The carry after the client has looked at samples of the folds that are `held`, after its last step. `batch`
        has them, with 'fold', 'counts', and 'weight' 0 where it is only filled up."""
        return carry

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        """What the client keeps and what it sends, after its last step: (private models, upload)."""
        raise TypeError(f"{type(self).__name__} does not say what a client keeps and sends")

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        """The model by which this client is scored. batch: one of its *training* batches."""
        return mine["model"]

    def predicted(self, personal: Model, batch: Batch, logits: Callable[[Model, Batch], Tensor]) -> Tensor:
        """The logits of a personal model on a batch. A part redefines it if its personal model is more than one
        network."""
        return logits(personal, batch)
