"""The engine `ray`: few long-lived actors, each a stacked engine over its own clients."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.core.rows import Sealed
from fedkin.core.store import BUDGET
from fedkin.data.federation import Federation
from fedkin.engines.cluster import tensors
from fedkin.engines.cluster.actors import Actors, Call, Member
from fedkin.engines.cluster.answers import Answers
from fedkin.engines.cluster.connection import connected
from fedkin.engines.cluster.division import check_actors, divided, shares
from fedkin.engines.cluster.reply import Apart, Part
from fedkin.engines.engine import Score, Split
from fedkin.engines.network import Network
from fedkin.engines.problem import network_of
from fedkin.engines.stacked import Stacked
from fedkin.messages import Message, Model, Reply, Sent, Tell
from fedkin.parts import Train
from fedkin.privacy import Guard

Ours = Callable[[int, Tensor], tuple[Any, ...]]  # (actor, positions of its clients) -> what it is given


class Ray:
    """An engine whose clients are divided among actors, once.

    `here` is a stacked engine over everyone in this process; it scores the common test set and trains where samples are
    pooled, and no client keeps anything in it. `cores` is for other engines: an actor has one. `actors` is how many
    there are (None: one a core, or one a GPU), and `address` that of a cluster (None: Ray is started on this machine).
    `warn` gets sentences that a user should read.
    """

    default_chunk, usual_chunk = staticmethod(Stacked.default_chunk), staticmethod(Stacked.usual_chunk)

    def __init__(
        self,
        federation: Federation,
        module: nn.Module | Network,
        train: Train,
        seed: int,
        *,
        own: bool = False,
        chunk: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        budget: int = BUDGET,
        scratch: Path | None = None,
        balanced: bool = False,
        cores: int = 1,
        guard: Guard | None = None,
        actors: int | None = None,
        address: str | None = None,
        warn: Callable[[str], None] = print,
    ):
        began, n = time.monotonic(), federation.n
        check_actors(actors, n)
        if not isinstance(module, Network):
            module = network_of(federation, module, train, dtype, torch.device(device))
        options: dict[str, Any] = {"seed": seed, "own": own, "dtype": dtype, "device": device, "balanced": balanced}
        options |= {"guard": guard}
        self.here = Stacked(federation, module, train, chunk=chunk, **options)
        self.federation, self.network, self.batching = federation, module, self.here.batching
        self.chunk, self.device, self.scratch = self.here.chunk, self.here.device, scratch
        self.splits, self.has_common_test = self.here.splits, self.here.has_common_test
        self.irrelevant = self.here.irrelevant
        self.slots = train.slots(module.model, own)  # what a client keeps to itself, as it begins
        self.open, self.folder = ExitStack(), None
        self.open.callback(self.here.close)
        try:
            self.ray = self.open.enter_context(connected(address, actors))
            number, gpus = shares(self.ray.cluster_resources(), actors, n, device)
            if scratch is not None:
                self.folder = Path(tempfile.mkdtemp(prefix="slots-", dir=scratch))
                self.open.callback(shutil.rmtree, self.folder, ignore_errors=True)
            options |= {"budget": budget // number, "scratch": self.folder}
            options |= {"device": self.device.type}  # an actor sees its own GPU only
            tensors.register()
            bare = replace(federation, source={}, preparation=None, notes=())
            parts = divided(self.batching.steps(train, torch.arange(n)), number)
            members = [Member(ids, self.ray.put(bare.only(ids)), self.chunk) for ids in parts]
            made = self.ray.put(module), self.ray.put(train)
            self.actors = Actors(self.ray, members, made, options, gpus, self.device, warn)
            self.open.callback(self.actors.close)
        except BaseException:
            self.open.close()
            raise
        self.owner, self.place = torch.zeros(2, n, dtype=torch.int64)  # of each client, and its number there
        for member, ids in enumerate(parts):
            self.owner[ids], self.place[ids] = member, torch.arange(len(ids))
        self.startup = time.monotonic() - began
        if self.actors.started:
            several = "1 actor" if number == 1 else f"{number} actors"
            warn(f"Ray: {several} started in {self.startup:.1f} s, which the seconds of the run do not include.")

    @property
    def tell(self) -> Tell:
        return self.here.tell

    @tell.setter
    def tell(self, tell: Tell) -> None:
        self.here.tell = tell

    # how actors are asked

    def positions(self, ids: Tensor) -> dict[int, Tensor]:
        """Return where the clients of each actor stand in `ids`, for the actors that have any."""
        owner = self.owner[ids]
        found = {member: (owner == member).nonzero().reshape(-1) for member in range(len(self.actors.members))}
        return {member: at for member, at in found.items() if len(at)} or {0: found[0]}

    def spread(self, ids: Tensor, name: str, ours: Ours, what: str = "", returns: int = 1) -> Answers:
        """Ask the actors of these clients; `what` they do is told as far as it is done."""
        at, done = self.positions(ids), 0

        def tell(member: int) -> None:
            nonlocal done
            done += len(at[member])
            self.tell(what, done, len(ids))

        calls = {member: Call(name, ours(member, some), returns) for member, some in at.items()}
        found = self.actors.ask(calls, tell if what else lambda member: None)
        return Answers(found, at)

    def models(self, ids: Tensor, name: str, ours: Ours, what: str = "") -> Model:
        """Ask the actors of these clients for a model of each, and stack them in the order of `ids`."""
        found = self.spread(ids, name, ours, what)
        stack = tree.rows(tree.joined(found.first), found.order)
        return tree.mapped(lambda value: value.to(self.device), stack)

    def letter(self, sent: Sent, member: int) -> Sent:
        """Return what an actor's own clients are sent, each for itself."""
        at = (self.owner[sent.ids] == member).nonzero().reshape(-1)
        return Sent(self.place[sent.ids[at]], own=tree.each(lambda model: tree.rows(model, at), sent.own))

    def mine(self, ids: Tensor, member: int) -> Tensor:
        """Return those of these clients that an actor has, as it numbers them."""
        found: Tensor = self.place[ids[self.owner[ids] == member]]
        return found

    # before and in a round

    def prepare(self, part: Train) -> tuple[int, int]:
        found = self.here.prepare(part)
        if self.batching.pool is not None:
            self.actors.give_pool(self.ray.put(self.batching.pool.message), self.ray.put(self.batching.pool.ends))
        return found

    def survey(self, part: Train, sent: Sent, ids: Tensor, reports: tuple[str, ...]) -> Reply:
        shared = self.ray.put(sent.shared)
        ours: Ours = lambda m, at: (shared, self.letter(sent, m), part, self.place[ids[at]], reports)  # noqa: E731
        found = self.spread(ids, "survey", ours)
        return Reply(ids, {}, tree.rows(tree.joined(found.first), found.order))

    def current(self, ids: Tensor, slot: str) -> Model:
        return self.models(ids, "ask", lambda m, at: ("current", None, self.place[ids[at]], slot))

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
        uploads = ids if uploads is None else uploads
        shared = self.ray.put(sent.shared)

        def ours(member: int, at: Tensor) -> tuple[Any, ...]:
            some = self.place[ids[at]], round, self.mine(uploads, member), reports, keep
            return shared, self.letter(sent, member), part, *some

        answers = self.spread(ids, "train", ours, "training clients", returns=3)
        parts, broken = [], []
        for member, (told, upload, change) in answers.found.items():
            who = self.actors.members[member].ids
            broken += who[list(told.broken)].tolist()
            if len(told.ids):
                parts.append(Part(member, who[told.ids], told, upload))
            if keep and self.slots:
                self.actors.remember(member, change, len(answers.at[member]))
        lost = tuple(sorted(broken))
        reply = Apart(parts, lost, self.actors) if parts else Reply(ids[:0], {}, {}, lost)
        attack = self.federation.attack if keep else None  # actors have none: no actor knows what all clients upload
        return reply if attack is None else attack.passed(reply, sent, part.changes)

    def train_together(
        self,
        part: Train,
        sent: Sent,
        ids: Tensor,
        round: int,
        uploads: Tensor | None = None,
        reports: tuple[str, ...] = (),
    ) -> Reply:
        return self.here.train_together(part, sent, ids, round, uploads, reports)

    # what clients are scored by

    def personal(self, part: Train, sent: Sent, ids: Tensor, round: int) -> Model:
        shared = self.ray.put(sent.shared)
        ours: Ours = lambda m, at: (shared, self.letter(sent, m), part, self.place[ids[at]], round)  # noqa: E731
        return self.models(ids, "personal", ours, "making personal models")

    def score(self, models: Model, ids: Tensor, split: Split, part: Train | None = None) -> Score:
        ours: Ours = lambda m, at: ("score", tree.rows(models, at), self.place[ids[at]], split, part)  # noqa: E731
        return self.spread(ids, "ask", ours, "scoring clients").scores()

    def score_one(self, model: Model, split: Split) -> Score:
        there = self.ray.put(model)
        everyone = torch.arange(self.federation.n)
        return self.spread(everyone, "ask", lambda m, at: ("score_one", there, split)).scores()

    def score_common(self, model: Model) -> Score:
        return self.here.score_common(model)

    def gradients(self, models: Model, ids: Tensor) -> Model:
        ours: Ours = lambda m, at: ("gradients", tree.rows(models, at), self.place[ids[at]])  # noqa: E731
        return self.models(ids, "ask", ours, "measuring gradients")

    def outputs(self, models: Model, ids: Tensor, split: Split, part: Train | None = None) -> Tensor:
        ours: Ours = lambda m, at: ("outputs", tree.rows(models, at), self.place[ids[at]], split, part)  # noqa: E731
        return self.spread(ids, "ask", ours).rows(self.here.index(split).sizes[ids])

    def outputs_one(self, model: Model, split: Split) -> Tensor:
        there, everyone = self.ray.put(model), torch.arange(self.federation.n)
        found = self.spread(everyone, "ask", lambda m, at: ("outputs_one", there, split))
        return found.rows(self.here.index(split).sizes)

    # checkpoints

    def private(self) -> Message:
        if not self.slots:
            return {}
        everyone = range(len(self.actors.members))
        found = self.actors.fetched(self.actors.snapshot(everyone))
        order = torch.cat([member.ids for member in self.actors.members]).argsort()
        return {slot: tree.rows(tree.joined([message[slot] for _, message in found]), order) for slot in self.slots}

    def restore(self, private: Message | Sealed) -> None:
        assert not isinstance(private, Sealed)  # a run keeps its engine, and this one stores stacked slots
        calls = {}
        for number, member in enumerate(self.actors.members) if self.slots else ():
            rows = tree.each(lambda model, ids=member.ids: tree.rows(model, ids), private)
            change = self.ray.put((torch.arange(len(member.ids)), rows))
            self.actors.remember(number, change, len(member.ids))
            calls[number] = Call("restore", (change,))
        self.actors.ask(calls)

    def clean(self) -> None:
        for folder in self.scratch.glob("slots-*") if self.scratch is not None else ():
            if folder != self.folder:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        self.open.close()
