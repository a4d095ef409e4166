"""Clients that know how common each class is among their samples: in what they predict, or in what they learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core.tree import Batch, Message, Model
from fedkin.fields import Positive
from fedkin.messages import Objective
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class LabelShares(SGD):
    """The client is judged by p_i(y | x) ~ p(y | x) (n_iy + added / C): the common model, times its label shares.

    n_iy is how many of its training samples have label y, and C the number of classes. Where the samples of all clients
    together have about as many of each class, this is Bayes' rule for the client's own distribution of labels.
    """

    added: Positive = 10.0  # samples, spread over all classes, that are added to those of the client
    counts = True

    @property
    def needs(self) -> Needs:
        return Needs(common_model=True, classes=True)

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        assert sent is not None
        return sent["model"] | {"log shares": log_shares(batch["counts"].sum(0), (self.added,))[0]}

    def predicted(self, personal: Model, batch: Batch, logits: Callable[[Model, Batch], Tensor]) -> Tensor:
        network = {name: value for name, value in personal.items() if name != "log shares"}
        return logits(network, batch) + personal["log shares"]


@dataclass(frozen=True)
class Calibrated(LabelShares):
    """As `LabelShares`, and the client's loss knows its label shares too: the cross-entropy of softmax(z + log share).

    So the common model z learns what samples say beyond how common their labels are (the balanced softmax of Ren et al.
    2020, by client as in FedLC of Zhang et al. 2022).
    """

    def adjusted(self, batch: Batch) -> Batch:
        return batch | {"offset": log_shares(batch["counts"].sum(-2), (self.added,))[0]}


def log_shares(counts: Tensor, added: tuple[float, ...]) -> Tensor:
    """The logarithms of label shares, for each number of samples that is added.

    counts: (..., classes). Each row of the result, (len(added), ..., classes), has the shares of one number.
    """
    raised = torch.stack([counts + a / counts.shape[-1] for a in added])
    return raised.log() - raised.sum(-1, keepdim=True).log()
