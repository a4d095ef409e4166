"""What the simulating engines share: the clients' data and private slots, who trains in which chunk, and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap

from fedkin.core import batches, rng, tree
from fedkin.core.store import BUDGET, Slots
from fedkin.core.tree import Batch, Message, Model
from fedkin.data.federation import Federation, Index
from fedkin.engines.network import MASK, Network, StackedObjective
from fedkin.errors import require
from fedkin.messages import Reply, Sent, Task
from fedkin.parts import Train

Logits = Callable[[Model, Batch], Tensor]

EVALUATED = 2**24  # bytes of models, samples and what is computed from them that are held at once in scoring


@dataclass(frozen=True)
class Score:
    """What models do on each client's samples."""

    correct: Tensor  # (m,) int64
    loss: Tensor  # (m,) float64, summed over samples
    count: Tensor  # (m,) int64

    @property
    def accuracy(self) -> Tensor:
        """Of each client; a client without such samples has none (nan)."""  # (m,) float64
        return self.correct.double() / self.count.double()


@dataclass(frozen=True)
class Pass:
    """One local pass of a chunk of clients: who uses which samples when."""

    ids: Tensor  # (m,)
    steps: np.ndarray  # (m,) int64
    rows: Tensor  # (K, m, width) rows of the federation's samples, for every batch
    count: np.ndarray  # (K, m) how many of them are real
    dropout: np.ndarray  # streams, (m,) uint64
    picks: np.ndarray  # streams, (m,) uint64


class Simulation:
    """An engine that holds every client. Subclasses say how a chunk of clients is trained."""

    name = ""

    def __init__(
        self,
        federation: Federation,
        module: nn.Module,
        train: Train,
        seed: int,
        *,
        own: bool = False,
        chunk: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        budget: int = BUDGET,
        scratch: Path | None = None,
    ):
        self.federation, self.seed, self.device = federation, seed, torch.device(device)
        self.x = federation.x.to(self.device, dtype if federation.x.is_floating_point() else federation.x.dtype)
        self.y = federation.y.to(self.device)
        self.sizes = federation.train.sizes.numpy()
        self.starts = federation.train.start.numpy()
        self.train_rows = federation.train.rows.to(self.device)
        self.network = Network(module, self.x[0], train.batch, dtype, federation.classes)
        self.stacked_objective = StackedObjective(self.network)
        self.chunk = chunk or self.default_chunk()
        self.slots = Slots(train.slots(self.network.model, own), federation.n, budget, scratch)
        self.pool: Message | None = None  # what the clients sent before round 1 (`Train.prepare`)
        self.pooled = np.zeros(1, dtype=np.int64)  # client i sent the rows pooled[i] to pooled[i + 1] of it

    def default_chunk(self) -> int:
        return 1

    def task(self, rounds: int) -> Task:
        """What the server knows of the problem."""
        fed, net, own = self.federation, self.network, self.federation.server
        rows = None if own is None else own.to(self.device)
        validation = None if rows is None else {"x": self.x[rows], "y": self.y[rows]}
        shape = net.differentiable(fed.shape)
        return Task(fed.n, fed.train.sizes, rounds, net.model, net.loss, validation, net.logits, fed.classes, shape)

    # what the round asks of an engine

    def current(self, ids: Tensor, shared: str) -> Model:
        """What these clients show when asked for their current model."""
        return self.slots.read(ids)[shared]

    def prepare(self, part: Train) -> tuple[int, int]:
        """Let every client send what its method exchanges before round 1; returns (numbers, bytes) sent by all."""
        sent = []
        for client in range(self.federation.n):
            own = self.train_rows[self.starts[client] : self.starts[client + 1]]
            message = part.prepare(self.x[own], self.y[own], self.federation.classes)
            if message is None:
                return 0, 0
            sent.append(message)
        self.pool = {name: tree.joined([message[name] for message in sent]) for name in sent[0]}
        rows = [len(next(iter(next(iter(message.values())).values()))) for message in sent]
        self.pooled = np.cumsum([0, *rows])
        require(part.picks_own or len(sent) > 1, "With one client there are no averages of others; set train.own=true.")
        return tree.size(self.pool.values())

    def survey(self, part: Train, sent: Sent, ids: Tensor, asks: tuple[str, ...]) -> Reply:
        """What these clients report of what they are sent, without training."""
        report = self.report(
            part, self.message(sent, ids), torch.isin(ids, sent.ids), self.slots.read(ids), ids, 1, asks
        )
        return Reply(ids, {}, report)

    def train(
        self,
        part: Train,
        sent: Sent,
        ids: Tensor,
        round: int,
        uploads: Tensor | None = None,
        asks: tuple[str, ...] = (),
        keep: bool = True,
    ) -> Reply:
        """Let these clients train; the reply has those of them in `uploads` (all by default). `keep=False` leaves their
        private slots as they were: a look at what training would give."""
        uploads = ids if uploads is None else uploads
        replies, broken = [], []
        for chosen in self.chunks(part, ids):
            mine = self.slots.read(chosen)
            got = torch.isin(chosen, sent.ids)
            message = self.message(sent, chosen[got])
            work = self.passed(part, round, chosen)
            after, upload = self.local_pass(part, message, got, mine, work, round)
            if keep and after:
                good = torch.stack([tree.finite(model) for model in after.values()]).all(0).cpu()
                self.slots.write(chosen[good], tree.each(lambda model, good=good: tree.rows(model, good), after))
                broken += chosen[~good].tolist()
            wanted = torch.isin(chosen, uploads)
            if wanted.any():
                report = self.report(part, message, got, mine, chosen, round, asks)
                replies.append(Reply(chosen, upload, report).only(wanted))
        return replace(gathered(replies), broken=tuple(sorted(broken)))

    def personal(self, part: Train, sent: Sent, ids: Tensor, round: int) -> Model:
        """The models these clients are judged by, as `part.personal_model` says; nothing is trained or kept."""
        if type(part).personal_model is Train.personal_model:
            return self.slots.read(ids)["model"]
        found = []
        for chosen in self.chunks(part, ids):
            got = torch.isin(chosen, sent.ids)
            batch = self.batch(self.passed(part, round, chosen), 0, slice(None), masks=False)
            mine = self.slots.read(chosen)
            found.append((chosen, self.chunk_personal(part, self.message(sent, chosen[got]), got, mine, batch)))
        order = torch.cat([chosen for chosen, _ in found]).argsort()
        return tree.rows(tree.joined([models for _, models in found]), order)

    def chunk_personal(self, part: Train, sent: Message, got: Tensor, mine: Message, batch: Batch) -> Model:
        """`part.personal_model` of one chunk, stacked."""
        raise TypeError(f"{type(self).__name__} does not say how clients are judged")

    def local_pass(
        self, part: Train, sent: Message, got: Tensor, mine: Message, work: Pass, round: int
    ) -> tuple[Message, Message]:
        """Train one chunk: (private slots, upload), stacked. `sent` has a row for each client of the mask `got`; the
        others train without being sent anything."""
        raise TypeError(f"{type(self).__name__} does not say how clients train")

    # chunks, messages and batches

    def chunks(self, part: Train, ids: Tensor) -> Iterator[Tensor]:
        """Clients of about the same number of steps together, those with the most first."""
        steps = batches.number(self.sizes[ids.numpy()], part.batch, part.steps, part.epochs, part.batches_per_step)
        yield from ids[torch.from_numpy(np.argsort(-steps, kind="stable"))].split(self.chunk)

    def message(self, sent: Sent, ids: Tensor) -> Message:
        """What each of these clients was sent, stacked, and the pool of what all sent before round 1."""
        message = sent.to(ids)
        pool = {} if self.pool is None else tree.each(lambda model: tree.repeated(model, len(ids)), self.pool)
        return message | pool

    def passed(self, part: Train, round: int, ids: Tensor) -> Pass:
        who = ids.numpy()
        plan = batches.planned(
            self.sizes[who],
            rng.keys(self.seed, "batches", round, who),
            round,
            part.batch,
            part.steps,
            part.epochs,
            part.sampler,
            part.batches_per_step,
        )
        rows = torch.from_numpy(np.ascontiguousarray((plan.rows + self.starts[who][:, None, None]).swapaxes(0, 1)))
        return Pass(
            ids,
            plan.batches // part.batches_per_step,
            self.train_rows[rows.to(self.device)],
            plan.count.T,
            rng.keys(self.seed, "dropout", round, who),
            rng.keys(self.seed, "picks", round, who),
        )

    def batch(self, work: Pass, number: int, live: slice, part: Train | None = None, masks: bool = True) -> Batch:
        """Batch `number` of the clients in `live`, stacked; 'weight' only where some batch is not full."""
        rows, count = work.rows[number, live], work.count[number, live]  # (m, width), (m,)
        width = rows.shape[1]
        result: Batch = {"x": picked(self.x, rows), "y": picked(self.y, rows)}
        if (count < width).any():
            result["weight"] = torch.from_numpy(np.arange(width) < count[:, None]).to(self.device, self.dtype)
        if part is not None and part.picks is not None:
            assert self.pool is not None
            at = torch.from_numpy(self.picked_rows(work, number, live, part.picks_own)).to(self.device)
            result |= {f"picked {name}": value[at] for name, value in self.pool[part.picks].items()}
        if masks:
            result |= self.drawn_masks(work.dropout[live], number, width)
        return result

    def picked_rows(self, work: Pass, number: int, live: slice, own: bool) -> np.ndarray:
        """A random row of the pool for each client; `own`: it may be one that the client sent itself."""  # (m,)
        draw, who = rng.uniform(work.picks[live], number, 1)[:, 0], work.ids[live].numpy()
        first, last = self.pooled[who], self.pooled[who + 1]
        others = self.pooled[-1] - (0 if own else last - first)
        at: np.ndarray = (draw * others).astype(np.int64)
        return at if own else np.where(at < first, at, at + last - first)

    def drawn_masks(self, streams: np.ndarray, number: int, width: int) -> Batch:
        """Dropout masks of batch `number`: a full batch is drawn for every client, whatever its chunk's width."""
        result: Batch = {}
        total = sum(int(np.prod(shape)) for shape in self.network.masks.values())
        start = number * total
        for name, shape in self.network.masks.items():
            size, p = int(np.prod(shape)), self.network.dropouts[name]
            keep = (rng.uniform(streams, start, size) >= p).reshape(len(streams), *shape)[:, :width]
            result[MASK + name] = torch.from_numpy(keep).to(self.device, self.dtype) / max(1.0 - p, 1e-12)
            start += size
        return result

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.network.model.values())).dtype

    def report(
        self,
        part: Train,
        sent: Message,
        got: Tensor,
        mine: Message,
        ids: Tensor,
        round: int,
        asks: tuple[str, ...],
    ) -> dict[str, Tensor]:
        sizes = self.sizes[ids.numpy()]
        steps = batches.number(sizes, part.batch, part.steps, part.epochs, part.batches_per_step)
        report = {
            "size": torch.from_numpy(sizes).double(),
            "steps": torch.from_numpy(steps).double(),
            "reach": part.reach(torch.from_numpy(steps).double()),
            "rate": torch.full((len(ids),), part.rate(round), dtype=torch.float64),
        }
        if "loss" in asks:
            start = mine.get("model", {})
            if "model" in sent:  # the loss of the model a client received, or, if it received none, of its own
                at = got.nonzero().reshape(-1).to(self.device)
                own = {
                    name: start[name] if start else value.new_zeros(len(ids), *value.shape[1:])
                    for name, value in sent["model"].items()
                }
                start = {name: value.index_copy(0, at, sent["model"][name]) for name, value in own.items()}
            score = self.evaluate(start, ids, self.federation.train)
            report["loss"] = score.loss / score.count
        return report

    # evaluation

    def evaluate(self, stacked: Model, ids: Tensor, index: Index, part: Train | None = None) -> Score:
        """Each client's own model on its own samples of this index; `part` says how a judged model predicts."""
        logits: Logits = self.network.stacked_logits
        if part is not None and part.predicts_itself:
            logits = vmap(lambda model, batch: part.predicted(model, batch, self.network.logits))
        sizes = index.sizes[ids]
        correct, loss = torch.zeros(len(ids), dtype=torch.int64), torch.zeros(len(ids), dtype=torch.float64)
        order = sizes.argsort(descending=True, stable=True)
        sample, model = self.network.footprint, tree.size([self.network.model])[1]  # bytes
        start = 0
        while start < len(order) and sizes[order[start]] > 0:
            width = int(sizes[order[start]])
            fits = max(1, EVALUATED // (width * sample + model))
            similar = int((sizes[order[start:]] * 2 >= width).sum())  # at most half of a block is padding
            at = order[start : start + min(fits, similar)]
            block = max(1, EVALUATED // (len(at) * sample))
            models = tree.rows(stacked, at.to(self.device))
            for first in range(0, width, block):
                some = torch.arange(first, min(first + block, width))
                live = some < sizes[at][:, None]  # (m, width)
                own = index.start[ids[at]][:, None] + torch.where(live, some, 0)
                rows = index.rows[own].to(self.device)
                hit, cost = self.judged(logits, models, rows)
                correct[at] += (hit & live).sum(1)
                loss[at] += torch.where(live, cost, 0.0).sum(1)
            start += len(at)
        return Score(correct, loss, sizes)

    def evaluate_one(self, model: Model, index: Index) -> Score:
        """One model on every client's samples of this index."""
        hit, cost = self.evaluate_rows(model, index.rows)
        ends, zero = index.start, torch.zeros(1, dtype=torch.float64)
        total = lambda values: torch.cat([zero, values.double().cumsum(0)])[ends].diff()  # noqa: E731
        return Score(total(hit).long(), total(cost), index.sizes)

    def evaluate_rows(self, model: Model, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Whether each of these samples is classified rightly, and its loss."""
        block = max(1, EVALUATED // self.network.footprint)
        found = [self.judged(self.network.logits, model, some.to(self.device)) for some in rows.split(block)]
        hits, costs = zip(*found, strict=True)
        return torch.cat(hits), torch.cat(costs)

    @torch.no_grad()
    def judged(self, logits: Logits, model: Model, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Right or wrong, and the loss, of each sample; a prediction that is not finite is wrong."""
        out = logits(model, {"x": picked(self.x, rows)})
        y = picked(self.y, rows)
        cost = F.cross_entropy(out.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)
        hit = (out.argmax(-1) == y) & cost.isfinite()  # any nan or +inf among the logits makes the loss nan
        return hit.cpu(), cost.cpu().double()

    def close(self) -> None:
        self.slots.close()


def picked(values: Tensor, rows: Tensor) -> Tensor:
    """`values[rows]`; index_select copies whole rows, several times faster than indexing by a matrix."""
    return values.index_select(0, rows.reshape(-1)).view(*rows.shape, *values.shape[1:])


def gathered(replies: list[Reply]) -> Reply:
    """The replies of all chunks as one, sorted by client."""
    if not replies:
        return Reply(torch.zeros(0, dtype=torch.int64), {}, {})
    ids = torch.cat([reply.ids for reply in replies])
    upload = {name: tree.joined([reply.upload[name] for reply in replies]) for name in replies[0].upload}
    report = {name: torch.cat([reply.report[name] for reply in replies]) for name in replies[0].report}
    whole = Reply(ids, upload, report)
    return whole if (ids.diff() > 0).all() else whole.only(ids.argsort())
