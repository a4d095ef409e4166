"""Plain stochastic gradient descent. Every client starts every round with a fresh optimiser."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fedkin.core.tree import Message
from fedkin.errors import require
from fedkin.fields import BelowOne, Count, Fraction, NonNegative, Positive
from fedkin.messages import Work
from fedkin.parts import Train
from fedkin.training import Descent


@dataclass(frozen=True)
class SGD(Train):
    """v <- momentum v + g(theta) + weight_decay theta;  theta <- theta - eta v.

    theta starts at the model that was sent or, if none was sent, at the client's own model; v starts at zero in every
    round. A round has `steps` mini-batches (R in the papers) or `epochs` passes over the client's data (E). A
    mini-batch has `batch` samples. `sampler="fresh"` draws every mini-batch anew, without replacement inside it;
    `sampler="cyclic"` goes through a fixed list of mini-batches and continues from round to round, as pFedMe's code
    does. The rate in round t is eta rate_decay^(t-1) / (1 + gamma (t-1)).
    """

    eta: Positive = 0.02  # the learning rate
    steps: Count | None = 20  # mini-batches a round (R in the papers); null: see epochs
    epochs: Count | None = None  # passes over the client's samples a round (E); null: see steps
    batch: Count = 20  # samples in a mini-batch
    momentum: BelowOne = 0.0  # how much of the last step is added to the next
    weight_decay: NonNegative = 0.0  # how strongly parameters are pulled towards 0
    rate_decay: Fraction = 1.0  # the factor of the rate from round to round
    sampler: Literal["fresh", "cyclic"] = "fresh"  # draws mini-batches anew, or goes through a fixed list of them
    gamma: NonNegative = 0.0  # the rate of round t is divided by 1 + gamma (t - 1)

    def check(self) -> None:
        require(
            (self.steps is None) != (self.epochs is None),
            "Training takes either steps or epochs; set one, and the other to null.",
        )

    def rate(self, round: int) -> float:
        return self.eta * self.rate_decay ** (round - 1) / (1 + self.gamma * (round - 1))

    def reach(self, steps: Tensor) -> Tensor:
        """K_eff: with a constant gradient, K steps with momentum move the model as far as K_eff plain steps (A-D7)."""
        if self.momentum == 0:
            return steps
        return (steps - self.momentum * (1 - self.momentum**steps) / (1 - self.momentum)) / (1 - self.momentum)

    def descents(self) -> tuple[Descent, ...]:
        return (Descent("model", momentum=self.momentum, decay=self.weight_decay),)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        start = sent["model"] if sent and "model" in sent else mine["model"]
        return self.rested({"model": start})

    def rested(self, carry: Message) -> Message:
        """The carry with every velocity at zero."""
        for descent in self.descents():
            carry = descent.begin(carry)
        return carry

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        return mine | ({"model": carry["model"]} if "model" in mine else {}), {"model": carry["model"]}
