"""SGD on the samples of all clients put together: what privacy forbids, and what a federation is measured by."""

from dataclasses import dataclass, replace

from fedkin.contract import Needs
from fedkin.fields import Count
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class Pooled(SGD):
    """SGD of one model on the samples of all clients of a round together, as if one client held them all.

    By default the pool gets as much work as its clients would do alone, together: `epochs` are passes over the pool,
    and `steps` are taken once for every client in it. A client that fine-tunes the common model takes `steps` or
    `epochs` on its own samples.
    """

    pools = True

    total: Count | None = None  # mini-batches a round on the pool; null: as many as its clients would take alone

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(common_model=True)

    def in_pool(self, clients: int) -> SGD:
        if self.total is not None:
            return replace(self, steps=self.total, epochs=None)
        return self if self.steps is None else replace(self, steps=self.steps * clients)
