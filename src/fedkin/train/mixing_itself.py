"""SGD from a mixture that the client makes itself of models that it is sent: the client of FedFomo."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.fields import Count
from fedkin.messages import Objective, Work
from fedkin.train.sgd import SGD
from fedkin.training import Descent

NOTHING = 1e-12  # two models that are nearer are the same


@dataclass(frozen=True)
class MixingItself(SGD):
    """theta starts at theta_b + sum_j w_j (theta_j - theta_b), w_j = max(0, (f(theta_b) - f(theta_j)) / |theta_j -
    theta_b|), divided by their sum; without any positive w_j at theta_b.

    theta_b is the model from which the client started when it trained last. The theta_j are the model that it has
    trained from there and those it was sent. f is the loss on training samples: on one in `validate` of them, on which
    the client does not train, or on those that it trains on. The client uploads the w_j before they are cut off and
    divided, beside its model; the first of them is that of its own model.
    """

    samples: Count = 200  # how many samples a client looks at to weigh models, at most
    validate: Count | None = 5  # one in so many samples weighs models and is not trained on; null: none is held out

    def check(self) -> None:
        super().check()
        require(self.validate != 1, "train.validate=1 leaves no sample to train on; use 2 or more, or null.")

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(models=("gains",), own_model=True)

    @property
    def at_hand(self) -> int:
        return self.samples

    @property
    def folds(self) -> int:
        return self.validate or 0

    @property
    def held(self) -> int:
        return 1 if self.validate else 0

    def descents(self) -> tuple[Descent, ...]:
        return tuple(replace(one, without=0 if self.validate else None) for one in super().descents())

    def slots(self, model: Model, own: bool) -> Message:
        return {"model": model, "before": model}

    def meet(self, sent: Message, mine: Message, batch: Batch, f: Objective) -> Message:
        before, own = mine["before"], mine["model"]
        several = tree.mapped(lambda value, others: torch.cat([value[None], others]), own, sent["others"])
        loss, gains = f.loss(before, batch), []
        for place in range(len(next(iter(several.values())))):
            other = tree.row(several, place)
            apart = tree.update(before, other)
            length = torch.stack([value.square().sum() for value in apart.values()]).sum().sqrt()
            gain = (loss - f.loss(other, batch)) / length.clamp(min=NOTHING)
            gains.append(torch.where(length > NOTHING, gain, 0.0).nan_to_num(0.0, 0.0, 0.0))
        found = torch.stack(gains)
        shares = normalised(found)

        def mixed(value: Tensor, these: Tensor) -> Tensor:
            moved: Tensor = torch.tensordot(shares, these - value, dims=1)
            return value + moved

        return {"model": tree.mapped(mixed, before, several), "gains": {"of": found}}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        private, upload = super().end(carry, sent, mine, work)
        if not sent or "gains" not in sent:
            return private | {"before": mine["model"]}, upload
        return private | {"before": sent["model"]}, upload | {"gains": sent["gains"]}


def normalised(gains: Tensor) -> Tensor:
    """The positive gains, divided by their sum; zeros where there are none."""
    positive = gains.clamp(min=0)
    total = positive.sum(-1, keepdim=True)
    return torch.where(total > 0, positive / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)
