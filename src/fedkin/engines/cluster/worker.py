"""What an actor does: it holds a stacked engine over its own clients, whose private slots stay there."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Message, Model
from fedkin.data.federation import Federation
from fedkin.engines.batching import Pool
from fedkin.engines.cluster import tensors
from fedkin.engines.network import Network
from fedkin.engines.stacked import Stacked
from fedkin.messages import Sent
from fedkin.parts import Train


@dataclass(frozen=True)
class Told:
    """What the driver is told of replies whose uploads stay where they are. Clients are numbered as in the actor."""

    ids: Tensor  # (k,)
    report: dict[str, Tensor]
    broken: tuple[int, ...]
    finite: Tensor  # (k,) bool
    like: Message  # the uploads without a row: their names, shapes and types


class Share(Stacked):
    """A stacked engine over some clients, which trains them in the way that was chosen where the run was begun."""

    @staticmethod
    def rehearse(network: Network) -> None:
        """Leave the network as it came."""


class Worker:
    """An actor. It is given an engine to hold, and, where runs follow one another, another one after that."""

    def __init__(self) -> None:
        torch.set_num_threads(1)  # an actor has one core
        tensors.register()

    def look_in(self, paths: list[str]) -> None:
        """Import modules from these folders too, as the process does that started the actor."""
        sys.path.extend(path for path in paths if path not in sys.path)

    def build(self, federation: Federation, network: Network, train: Train, options: dict[str, Any]) -> int:
        """Build an engine and return the process's id.

        Clients are numbered by their places in `federation`, which has these clients only.
        """
        device = torch.device(options["device"])
        scratch = options["scratch"]  # on another machine there may be no such folder
        here = {"scratch": scratch if scratch is not None and Path(scratch).is_dir() else None}
        network.module.to(device)
        network.model = {name: value.to(device) for name, value in network.model.items()}
        self.device, self.names = device, tuple(train.slots(network.model, options["own"]))
        self.engine = Share(federation, network, train, **options | here)
        return os.getpid()

    def close(self) -> None:
        """Let go of the engine."""
        if "engine" in self.__dict__:
            self.engine.close()
            del self.engine

    def take_pool(self, message: Message, ends: np.ndarray) -> None:
        """Take what all clients sent before round 1."""
        self.engine.batching.pool = Pool(tensors.moved(message, self.device), ends)

    def sent(self, shared: Message, sent: Sent) -> Sent:
        """Return what these clients are sent: what is shared by all comes apart from what is their own."""
        return Sent(sent.ids, tensors.moved(shared, self.device), tensors.moved(sent.own, self.device))

    def train(
        self,
        shared: Message,
        sent: Sent,
        part: Train,
        ids: Tensor,
        round: int,
        uploads: Tensor,
        reports: tuple[str, ...],
        keep: bool,
    ) -> tuple[Told, Message, tuple[Tensor, Message]]:
        """Let clients train; returns what to tell of it, the uploads, and the private slots that may have changed."""
        reply = self.engine.train(part, self.sent(shared, sent), ids, round, uploads, reports, keep)
        like = tree.each(lambda model: tree.rows(model, slice(0, 0)), reply.upload)
        told = Told(reply.ids, reply.report, reply.broken, reply.finite(), like)
        return told, reply.upload, (ids, self.held(ids) if keep else {})

    def held(self, ids: Tensor) -> Message:
        """Return what clients keep to themselves, stacked; the engine may have it in files."""
        return {name: self.engine.current(ids, name) for name in self.names}

    def mean(self, upload: Message, name: str, share: Tensor) -> Model:
        """Return the part of a weighted mean that these uploads make up, in float64."""
        return tree.mapped(lambda value: torch.tensordot(share, value.double(), dims=1), upload[name])

    def survey(
        self, shared: Message, sent: Sent, part: Train, ids: Tensor, reports: tuple[str, ...]
    ) -> dict[str, Tensor]:
        """Return the reports of clients that do not train."""
        return self.engine.survey(part, self.sent(shared, sent), ids, reports).report

    def personal(self, shared: Message, sent: Sent, part: Train, ids: Tensor, round: int) -> Model:
        """Return the personal models of clients."""
        return self.engine.personal(part, self.sent(shared, sent), ids, round)

    def ask(self, name: str, model: Model | None, *rest: Any) -> Any:
        """Call a function of the engine that takes models first, or only says what is there."""
        first = () if model is None else ({key: value.to(self.device) for key, value in model.items()},)
        return getattr(self.engine, name)(*first, *rest)

    def private(self) -> tuple[None, tuple[Tensor, Message]]:
        """Return the private slots of all clients, after a word that they are there."""
        everyone = torch.arange(self.engine.federation.n)
        return None, (everyone, self.held(everyone))

    def restore(self, *changes: tuple[Tensor, Message]) -> None:
        """Put the private slots back to what they were after these changes, the oldest first."""
        whole = self.held(torch.arange(self.engine.federation.n))
        for ids, rows in changes:
            for name, model in rows.items():
                for key, value in model.items():
                    whole[name][key].index_copy_(0, ids.to(self.device), value.to(self.device))
        self.engine.restore(whole)
