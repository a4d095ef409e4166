"""What the engines share that hold every client on this machine: `stacked` and `plain`.

A subclass says how one chunk of clients trains (`local_pass`) and which models they are scored by (`chunk_personal`).
"""

from __future__ import annotations

import shutil
from copy import copy
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.core.rows import Rows, Sealed
from fedkin.core.store import BUDGET, Slots, slots_for
from fedkin.data.federation import Federation, Index
from fedkin.engines.batching import Batching, Pass
from fedkin.engines.engine import Score, Split
from fedkin.engines.network import Network, StackedObjective
from fedkin.engines.problem import network_of
from fedkin.engines.replies import Gathering, completed, held, mask_of, returned
from fedkin.engines.scoring import Scoring
from fedkin.engines.team import Team, Tick, repeatable
from fedkin.messages import Batch, Message, Model, Reply, Sent, Tell, nobody
from fedkin.parts import Train
from fedkin.privacy import Guard


class Simulation:
    """An engine that holds every client. `balanced`: in training all classes of a client count the same. `guard` clips
    and noises what clients upload."""

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
    ):
        self.federation, self.seed, self.device, self.scratch = federation, seed, torch.device(device), scratch
        self.batching = Batching(federation, dtype, self.device, seed, balanced)
        made = module if isinstance(module, Network) else network_of(federation, module, train, dtype, self.device)
        self.network: Network = made
        self.rehearse(made)
        self.tell: Tell = nobody
        samples, scale = (self.batching.x, self.batching.y), federation.target_scale
        self.scoring = Scoring(self.network, *samples, scale, lambda *far: self.tell(*far))
        self.stacked_objective = StackedObjective(self.network)
        self.guard, self.chunk = guard, chunk or self.default_chunk(self.network)
        private = train.slots(self.network.model, own)
        self.slots = slots_for(private, federation.n, budget, scratch)
        size = tree.size([self.network.model])[1] + tree.size(private.values())[1]
        cores = min(cores, federation.n) if self.device.type == "cpu" else 1
        self.team = Team(self, self.chunk, cores, size, self.divisible and repeatable())
        self.splits: tuple[Split, ...] = ("train", "test")
        self.splits += ("validation",) if federation.validation is not None else ()
        self.has_common_test, self.irrelevant = federation.common is not None, federation.irrelevant

    @staticmethod
    def rehearse(network: Network) -> None:
        """Choose how this network is trained, where there are several ways."""

    @staticmethod
    def usual_chunk(network: Network) -> int:
        """Return how many clients with this network train at once on most machines."""
        return 1

    @staticmethod
    def default_chunk(network: Network) -> int:
        """Return how many clients with this network train at once unless the experiment says it."""
        return 1

    # before and in a round

    def prepare(self, part: Train) -> tuple[int, int]:
        return self.batching.prepare(part)

    def survey(self, part: Train, sent: Sent, ids: Tensor, reports: tuple[str, ...]) -> Reply:
        return Reply(ids, {}, self.report(part, sent, self.slots.read(ids), ids, 1, reports))

    def current(self, ids: Tensor, slot: str) -> Model:
        return self.slots.read_one(ids, slot)

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
        replies, broken, trained = Gathering(ids[mask_of(ids, uploads)].sort().values), [], 0

        def tick(share: float) -> None:
            """Tell how far the clients are, of whom this share of those in training is done."""
            self.tell("training clients", trained + share * in_training, len(ids))

        left = self.team.divided(self.batching.steps(part, ids), ids, self.batching.even(part, ids))
        while left:
            shares = self.team.taken(left)
            in_training = sum(len(chunk) for share in shares for chunk in share)
            for chosen, mine, after, upload in self.team.trained(part, sent, shares, round, tick):
                if keep and after:
                    broken += self.kept(chosen, after)
                wanted = mask_of(chosen, uploads)
                if wanted.any():
                    report = self.report(part, sent, mine, chosen, round, reports)
                    upload = returned(upload, sent) if keep else upload
                    reply = Reply(chosen, upload, report).only(wanted)
                    if self.guard is not None and keep:  # else nothing leaves the client
                        reply = self.guard.passed(reply, sent, round, self.batching.numbers, part.changes)
                    replies.take(reply, lent=len(shares) > 1)
            trained += in_training
        reply = replace(replies.whole(), broken=tuple(sorted(broken)))
        attack = self.federation.attack if keep else None  # else nothing is uploaded
        return reply if attack is None else attack.passed(reply, sent, part.changes)

    def kept(self, ids: Tensor, after: Message) -> list[int]:
        """Let clients keep what is finite, and return the others."""
        good = torch.stack([tree.finite(model) for model in after.values()]).all(0).cpu()
        finite = after if good.all() else tree.each(lambda model: tree.rows(model, good), after)  # no copy of all
        self.slots.write(ids[good], finite)
        return ids[~good].tolist()

    def train_together(
        self,
        part: Train,
        sent: Sent,
        ids: Tensor,
        round: int,
        uploads: Tensor | None = None,
        reports: tuple[str, ...] = (),
    ) -> Reply:
        uploads, only = ids if uploads is None else uploads, torch.tensor([0])
        one = copy(self)  # the same engine, with one client
        one.batching = self.batching.together(ids)
        one.federation, one.slots = one.batching.federation, Slots({}, 1)
        one.team = Team(one, 1, 1, 0, False)
        found = one.train(part.in_pool(len(ids)), Sent(only, sent.shared), only, round)
        if not len(found.ids):
            return found
        upload = tree.each(lambda model: tree.repeated(tree.row(model, 0), len(uploads)), found.upload)
        return Reply(uploads, upload, self.report(part, sent, {}, uploads, round, reports))

    def message(self, part: Train, sent: Sent, ids: Tensor, mine: Message, got: Tensor, round: int) -> Message:
        """Return what those of these clients were sent that got something, stacked, and what all sent before round 1.

        Layers that were not sent are the client's own. A client that meets what it is sent has made its choice.
        """
        found = completed(sent.to(ids[got]), mine, got, self.network.model)
        if part.at_hand and found and got.any():
            own = tree.each(lambda model: tree.rows(model, got), mine)
            found = self.chunk_met(part, found, own, self.batching.at_hand(part, round, ids[got]))
        return found | self.batching.pooled(int(got.sum()))

    def chunk_met(self, part: Train, sent: Message, mine: Message, batch: Batch) -> Message:
        """Return `part.meet` of clients that all were sent something, stacked."""
        raise TypeError(f"{type(self).__name__} does not say what clients make of what they are sent")

    def report(
        self, part: Train, sent: Sent, mine: Message, ids: Tensor, round: int, reports: tuple[str, ...]
    ) -> dict[str, Tensor]:
        """Return the numbers that these clients report: size, steps, reach, rate, and those named in `reports`."""
        steps = torch.from_numpy(self.batching.steps(part, ids)).double()
        report = {
            "size": torch.from_numpy(self.batching.sizes[ids.numpy()]).double(),
            "steps": steps,
            "reach": part.reach(steps),
            "rate": torch.full((len(ids),), part.rate(round), dtype=torch.float64),
        }
        if "loss" in reports:
            got = mask_of(ids, sent.ids)
            message = self.message(part, sent, ids, mine, got, round)
            score = self.score(held(message, got, mine, len(ids)), ids, "train")
            report["loss"] = score.loss / score.count
        return report

    @property
    def divisible(self) -> bool:
        """Whether a client's numbers do not depend on the other clients of its chunk, so that chunks may be cut."""
        return True

    def trained_chunk(
        self, part: Train, sent: Sent, chunk: Tensor, mine: Message, round: int, tick: Tick
    ) -> tuple[Message, Message]:
        """Return the private slots and the uploads of these clients after training, stacked."""
        got = mask_of(chunk, sent.ids)
        work = self.batching.planned(part, round, chunk)
        return self.local_pass(part, self.message(part, sent, chunk, mine, got, round), got, mine, work, round, tick)

    def local_pass(
        self, part: Train, sent: Message, got: Tensor, mine: Message, work: Pass, round: int, tick: Tick
    ) -> tuple[Message, Message]:
        """Train one chunk and return its private slots and its uploads, stacked.

        `sent` has a row for each client of the mask `got`; the others train without being sent anything. `tick` is
        called after every step, with the share of the chunk's steps that are done.
        """
        raise TypeError(f"{type(self).__name__} does not say how clients train")

    # what clients are scored by

    def personal(self, part: Train, sent: Sent, ids: Tensor, round: int) -> Model:
        if not part.has_personal_model:
            return self.slots.read_one(ids, "model")
        found = []
        for chosen in self.batching.chunks(part, ids, self.chunk):
            got = mask_of(chosen, sent.ids)
            work = self.batching.planned(part, round, chosen)
            batch = self.batching.samples(work, 0, slice(None))
            batch |= self.batching.known(part, chosen, work.places[0])
            mine = self.slots.read(chosen)
            message = self.message(part, sent, chosen, mine, got, round)
            found.append((chosen, self.chunk_personal(part, message, got, mine, batch)))
            self.tell("making personal models", sum(len(some) for some, _ in found), len(ids))
        order = torch.cat([chosen for chosen, _ in found]).argsort()
        return tree.rows(tree.joined([models for _, models in found]), order)

    def chunk_personal(self, part: Train, sent: Message, got: Tensor, mine: Message, batch: Batch) -> Model:
        """Return `part.personal_model` of one chunk, stacked."""
        raise TypeError(f"{type(self).__name__} does not say which models clients are scored by")

    def score(self, models: Model, ids: Tensor, split: Split, part: Train | None = None) -> Score:
        return self.scoring.each(models, ids, self.index(split), part, measure=split != "train")

    def score_one(self, model: Model, split: Split) -> Score:
        return self.scoring.one(model, self.index(split), measure=split != "train")

    def score_common(self, model: Model) -> Score:
        assert self.federation.common is not None
        return self.scoring.common(model, self.federation.common)

    def gradients(self, models: Model, ids: Tensor) -> Model:
        found = []
        for i, client in enumerate(ids.tolist()):
            model, total = tree.row(models, i), 0.0
            summed = tree.zeros(model)
            for batch in self.batching.blocks(client):
                weight = float(batch["weight"].sum())
                summed, total = tree.added(summed, self.network.grad(model, batch), weight), total + weight
            found.append(tree.mapped(lambda value, total=total: value / max(total, 1e-12), summed))
            self.tell("measuring gradients", i + 1, len(ids))
        return tree.stacked(found)

    def outputs(self, models: Model, ids: Tensor, split: Split, part: Train | None = None) -> Tensor:
        return self.scoring.outputs(models, ids, self.index(split), part)

    def outputs_one(self, model: Model, split: Split) -> Tensor:
        return self.scoring.outputs_one(model, self.index(split))

    def index(self, split: Split) -> Index:
        found = {"train": self.federation.train, "test": self.federation.test}.get(split, self.federation.validation)
        assert found is not None
        return found

    # checkpoints

    def private(self) -> Message | Rows:
        return self.slots.private()

    def restore(self, private: Message | Sealed) -> None:
        self.slots.restore(private)

    def clean(self) -> None:
        for folder in self.scratch.glob("slots-*") if self.scratch is not None else ():
            if folder != self.slots.folder:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        self.team.close()
        self.slots.close()
        del self.team, self.scoring  # they hold the engine, so that its samples would stay until a garbage collection

    @property
    def dtype(self) -> torch.dtype:
        return self.batching.dtype
