"""SGD from the model that fits a client's samples best, of several that it is sent: the client of IFCA."""

from dataclasses import dataclass

import torch

from fedkin.contract import Needs
from fedkin.core import tree
from fedkin.core.tree import Batch, Message
from fedkin.fields import Count
from fedkin.messages import Objective, Work
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class Choosing(SGD):
    """theta starts at the model with the smallest loss on `samples` of the client's training samples. The client says
    which one it was: its upload has a 1 at the place of that model, and 0 at all others."""

    samples: Count = 200  # how many training samples a client looks at to choose; all if it has no more

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(models=("choice",))

    @property
    def at_hand(self) -> int:
        return self.samples

    def meet(self, sent: Message, mine: Message, batch: Batch, f: Objective) -> Message:
        several = [name for name in sent if name.startswith("model ")]
        names = ["model", *sorted(several, key=lambda name: int(name.removeprefix("model ")))]  # whoever sorted them
        losses = torch.stack([f.loss(sent[name], batch) for name in names])
        best = (losses.nan_to_num(torch.inf) == losses.nan_to_num(torch.inf).min()).to(losses.dtype)
        first = best * (best.cumsum(0) == 1)  # of several that are equally good the first
        model = sent["model"]
        for place, name in enumerate(names):
            model = tree.mapped(
                lambda old, new, place=place: torch.where(first[place] > 0, new, old), model, sent[name]
            )
        return {"model": model, "choice": {"of": first}}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        assert sent is not None
        private, upload = super().end(carry, sent, mine, work)
        return private, upload | {"choice": sent["choice"]}
