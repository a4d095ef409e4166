"""Plain stochastic gradient descent, the fresh optimiser of section 'SGD' in every paper here."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fedkin.core.tree import Message
from fedkin.errors import require
from fedkin.parts import Descent, Train, Work


@dataclass(frozen=True)
class SGD(Train):
    """theta <- theta - eta v, v <- momentum v + g + weight_decay theta, from what was sent (or, if nothing was, from
    the client's own model). The velocity starts at zero in every round.

    `steps` mini-batches a round (R in the papers), or `epochs` passes over the client's data (E); `batch` samples each.
    `sampler="fresh"` draws every batch anew without replacement inside it; `"cyclic"` walks a fixed list of batches
    that goes on from round to round, as pFedMe's code does. The rate in round t is
    eta rate_decay^(t-1) / (1 + gamma (t-1)).
    """

    eta: float = 0.02
    steps: int | None = 20
    epochs: int | None = None
    batch: int = 20
    momentum: float = 0.0
    weight_decay: float = 0.0
    rate_decay: float = 1.0
    sampler: Literal["fresh", "cyclic"] = "fresh"
    gamma: float = 0.0

    def __post_init__(self) -> None:
        require(self.eta > 0, f"train.eta must be positive, not {self.eta}.")
        require(0 <= self.momentum < 1, f"train.momentum must be at least 0 and below 1, not {self.momentum}.")
        require(self.weight_decay >= 0, f"train.weight_decay cannot be negative, and is {self.weight_decay}.")
        require(0 < self.rate_decay <= 1, f"train.rate_decay must be above 0 and at most 1, not {self.rate_decay}.")
        require(self.gamma >= 0, f"train.gamma cannot be negative, and is {self.gamma}.")
        require(self.batch >= 1, f"train.batch must be at least 1, not {self.batch}.")
        require(
            (self.steps is None) != (self.epochs is None),
            "Training takes either steps or epochs; set one, and the other to null.",
        )
        require(self.steps is None or self.steps >= 1, f"train.steps must be at least 1, not {self.steps}.")
        require(self.epochs is None or self.epochs >= 1, f"train.epochs must be at least 1, not {self.epochs}.")
        require(self.sampler in ("fresh", "cyclic"), f"train.sampler is 'fresh' or 'cyclic', not '{self.sampler}'.")

    def rate(self, round: int) -> float:
        return self.eta * self.rate_decay ** (round - 1) / (1 + self.gamma * (round - 1))

    def reach(self, steps: Tensor) -> Tensor:
        """K_eff: how many plain steps of a constant gradient K steps with momentum are worth (A-D7)."""
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
