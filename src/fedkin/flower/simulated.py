"""The engine `flower`: clients train as sites that Flower's simulation runtime plays on this machine."""

from __future__ import annotations

import copy
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from flwr.clientapp import ClientApp
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.core.rows import Sealed
from fedkin.data.federation import Federation
from fedkin.engines.engine import Order
from fedkin.engines.network import Network
from fedkin.engines.stacked import Stacked
from fedkin.flower import runtime
from fedkin.flower.client import client, name_of
from fedkin.flower.grid import OnGrid
from fedkin.messages import Message, Reply, Sent
from fedkin.parts import Train
from fedkin.runs.part_json import labels
from fedkin.sites.allowed import GIVEN
from fedkin.sites.ledger import Ledger
from fedkin.sites.meeting import meet
from fedkin.sites.talk import Talk
from fedkin.sites.versions import Versions

POLL = 0.02  # seconds between two looks at what has arrived
LONG = 1e7  # seconds: whoever is on this machine is waited for
BEGIN = 1  # the round that sites are said to hold when they go on from a checkpoint; the next one is later


class Simulated(Stacked):
    """Each client is a site on a node of its own: it is asked by letters, trains by itself, and keeps its private slots
    in its own folder, as on a machine of its own. All else is the stacked engine's, which has these slots too, for
    scores and checkpoints.

    `cores` is how many actors answer for the nodes. `guard` clips and noises what arrives from them: in a simulation
    noise is drawn by the seed, and hides nothing from anybody.
    """

    def __init__(
        self,
        federation: Federation,
        module: nn.Module | Network,
        train: Train,
        seed: int,
        *,
        own: bool = False,
        dtype: torch.dtype = torch.float32,
        scratch: Path | None = None,
        balanced: bool = False,
        cores: int = 1,
        warn: Callable[[str], None] = print,
        **more: Any,
    ):
        options: dict[str, Any] = {"own": own, "dtype": dtype, "scratch": scratch, "balanced": balanced, "cores": cores}
        super().__init__(federation, module, train, seed, **options, **more)
        began, n, self.part = time.monotonic(), federation.n, train
        self.folder = Path(tempfile.mkdtemp(prefix="slots-", dir=scratch))
        self.open = ExitStack()
        self.open.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            grid = self.open.enter_context(runtime.simulated(self.app, parts_of(federation), min(cores, n)))
            patience: dict[str, Any] = {"wait": 0.0, "timeout": LONG, "patience": 0.0, "warn": warn}
            sites = meet(OnGrid(grid, warn, POLL), n, largest=None, **patience)
        except BaseException:
            self.close()
            raise
        facts: dict[str, Any] = {
            "network": GIVEN,
            "dtype": str(dtype).removeprefix("torch."),
            "balanced": balanced,
            "warn": warn,
        }
        known = sites.names, federation.train.sizes, sites.agreed, train, self.network.model, seed
        self.talk, self.ledger = Talk(sites), Ledger(*known, own=own, numbers=self.batching.numbers.tolist(), **facts)
        self.startup = time.monotonic() - began

    def app(self, samples: Callable[[int], Federation]) -> ClientApp:
        """Return the app of all nodes; each finds its own samples by its partition."""
        module, classes, folder = trainable(self.network), self.federation.classes, self.folder
        modules = {label.partition(":")[0] for label in labels(self.part) if ":" in label}

        def load(context: Any) -> Federation:
            return samples(int(context.node_config["partition-id"]))

        return client(lambda: module, load, folder=folder, modules=sorted(modules), classes=classes)

    # before and in a round

    def prepare(self, part: Train) -> tuple[int, int]:
        found = super().prepare(part)
        self.ledger.pool = self.batching.pool
        return found

    def train(
        self,
        part: Train,
        sent: Sent,
        ids: Tensor,
        round: int,
        uploads: Tensor | None = None,
        reports: tuple[str, ...] = (),
        keep: bool = True,
    ) -> Reply:
        if not keep:  # a model that is only scored
            return super().train(part, sent, ids, round, uploads, reports, keep)
        order = Order(part, sent, ids, round, ids if uploads is None else uploads, reports)
        self.ledger.saving()  # sites never go back further than to the last rounds
        answers = self.talk.ask("work", self.ledger.work({}, ids[:0], order), everyone=True)
        reply = self.ledger.taken(order, answers)
        self.take(ids, round)
        if self.guard is None or not len(reply.ids):
            return reply
        return self.guard.passed(reply, sent, round, self.batching.numbers, part.changes)

    # what sites keep to themselves

    def kept_by(self, number: int) -> Versions:
        """Return what the site of a client keeps of this run."""
        return Versions(self.folder / name_of({"partition-id": number}) / "runs" / self.ledger.run)

    def take(self, ids: Tensor, round: int) -> None:
        """Take over the slots that these sites hold after a round; one whose training diverged holds what it held."""
        first = self.ledger.slots
        for some in ids.split(self.chunk) if first else ():
            kept = [number for number in some.tolist() if self.ledger.version[number] == round]
            rows = [self.kept_by(number).read(round, first) for number in kept]
            if rows:
                self.slots.write(
                    torch.tensor(kept), {slot: tree.stacked([row[slot] for row in rows]) for slot in first}
                )

    def restore(self, private: Message | Sealed) -> None:
        super().restore(private)
        everyone = torch.arange(self.federation.n)
        for some in everyone.split(self.chunk) if self.ledger.slots else ():
            rows = self.slots.read(some)
            for place, number in enumerate(some.tolist()):
                mine = tree.each(lambda model, place=place: tree.row(model, place), rows)
                self.kept_by(number).write(BEGIN, mine)
                self.ledger.version[number] = BEGIN

    def clean(self) -> None:
        for folder in self.scratch.glob("slots-*") if self.scratch is not None else ():
            if folder not in (self.folder, self.slots.folder):
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        self.open.close()
        super().close()


def parts_of(federation: Federation) -> list[Federation]:
    """Return the samples of each client, without what a site would not know."""
    bare = replace(federation, source={}, preparation=None, notes=(), irrelevant=None, left_out=())
    return [replace(bare.only(torch.tensor([number])), numbers=None) for number in range(federation.n)]


def trainable(network: Network) -> nn.Module:
    """Return the module of a network as a user hands one over: what is trained is marked so."""
    module = copy.deepcopy(network.module)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name in network.model)
    return module
