"""One common model: the mean of the replies without the extremes, separately for each number (Yin et al. 2018)."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from fedkin.collaborate.mean import OneModel
from fedkin.collaborate.median import by_number
from fedkin.fields import Rule
from fedkin.messages import Reply, Sent, Slot, Task


@dataclass(frozen=True)
class TrimmedMean(OneModel):
    """Each number of the new model is the mean of that number over the n replies with a positive weight, without the
    b = floor(trim n) largest and the b smallest values; how large the weight is does not matter."""

    trim: Annotated[
        float,
        Rule(lambda v: 0 <= v < 0.5, "{field} must be at least 0 and below 0.5, not {value}.", "from 0 to below 0.5"),
    ] = 0.1  # the share of the values that is cut off at each end

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        counted = reply.only(kept > 0)
        n = len(counted.ids)
        if not n:
            return slot
        b = int(self.trim * n + 1e-9)  # 0.29 * 100 is a hair below 29

        def inner(values: Tensor) -> Tensor:
            return values[b : n - b].double().mean(0).to(values.dtype)

        return slot | {"model": by_number(counted.upload["model"], inner)}
