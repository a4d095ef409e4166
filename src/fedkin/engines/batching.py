"""Which client uses which of its samples in which step, and the batches made of them.

Batches, dropout masks and picked rows are keyed by (seed, purpose, round, client): they are the same on every engine,
whatever the chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedkin.core import batches, rng, tree
from fedkin.core.tree import Batch, Message
from fedkin.data.federation import Federation
from fedkin.engines.folds import Folds
from fedkin.engines.fused import MASK
from fedkin.engines.network import Network
from fedkin.errors import require
from fedkin.parts import Train

MOST = 256  # held-out samples that a client looks at, at most
BLOCK = 1000  # samples whose gradient is taken at once where it is of all samples


@dataclass(frozen=True)
class Pass:
    """One local pass of a chunk of clients: which samples each client uses in each batch."""

    ids: Tensor  # (m,)
    steps: np.ndarray  # (m,) int64
    rows: Tensor  # (K, m, width) rows of the federation's samples, for every batch
    y: Tensor  # (K, m, width) their targets
    count: np.ndarray  # (K, m) how many of these rows are real
    full: list[int]  # (K,) how many of the first clients have only real rows in this batch
    round: int
    places: Tensor  # (K, m, width) where these rows stand among the training samples of all clients


@dataclass(frozen=True)
class Pool:
    """What all clients sent before round 1, as rows."""

    message: Message
    ends: np.ndarray  # (n + 1,) client i sent the rows ends[i] to ends[i + 1]

    def picked(self, ids: np.ndarray, draw: np.ndarray, own: bool) -> np.ndarray:
        """Return a random row for each of these clients; with `own` it may be a row that the client sent itself."""
        first, last = self.ends[ids], self.ends[ids + 1]
        others = self.ends[-1] - (0 if own else last - first)
        at: np.ndarray = (draw * others).astype(np.int64)  # (m,)
        return at if own else np.where(at < first, at, at + last - first)


class Batching:
    """The samples of a federation on one device, and the batches that clients take from them."""

    def __init__(
        self, federation: Federation, dtype: torch.dtype, device: torch.device, seed: int, balanced: bool = False
    ):
        self.seed, self.device = seed, device
        self.x = federation.x.to(device, dtype if federation.x.is_floating_point() else federation.x.dtype)
        self.y = federation.y.to(device, dtype if federation.y.is_floating_point() else federation.y.dtype)
        self.dtype, self.balanced = dtype, balanced
        self.pool: Pool | None = None
        self.hold(federation)

    def hold(self, federation: Federation) -> None:
        """Let the clients be those of this federation, which has the same samples."""
        self.federation = federation
        self.class_weights = balanced_weights(federation).to(self.device, self.dtype) if self.balanced else None
        self.sizes = federation.train.sizes.numpy()
        self.starts = federation.train.start.numpy()
        numbers = federation.numbers
        self.numbers = np.arange(federation.n) if numbers is None else numbers.numpy()
        self.train_rows = federation.train.rows.to(self.device)
        self.folds: dict[int, Folds] = {}

    def folded(self, part: Train) -> Folds:
        """Return the folds of all clients' samples for a part; one fold where it has none."""
        number = max(1, part.folds)
        if number not in self.folds:
            y = self.y[self.train_rows].cpu().numpy()
            streams = rng.keys(self.seed, "folds", 0, self.numbers)
            self.folds[number] = Folds.made(y, self.starts, streams, number, self.federation.classes)
        return self.folds[number]

    def together(self, ids: Tensor) -> Batching:
        """Return the batching of one client that holds the samples of all these clients."""
        found = copy(self)
        found.hold(self.federation.together(ids))
        return found

    def prepare(self, part: Train) -> tuple[int, int]:
        """Fill the pool with what `part.prepare` gives for every client; returns its size in numbers and in bytes.

        Where samples themselves are pooled it is their size.
        """
        if part.pools:
            samples = {"x": self.x[:1], "y": self.y[:1]}
            numbers, size = tree.size([samples])
            return numbers * int(self.sizes.sum()), size * int(self.sizes.sum())
        sent = []
        for client in range(self.federation.n):
            mine = self.train_rows[self.starts[client] : self.starts[client + 1]]
            message = part.prepare(self.x[mine], self.y[mine], self.federation.classes)
            if message is None:
                return 0, 0
            sent.append(message)
        rows = [len(next(iter(next(iter(message.values())).values()))) for message in sent]
        joined = {name: tree.joined([message[name] for message in sent]) for name in sent[0]}
        self.pool = Pool(joined, np.cumsum([0, *rows]))
        require(part.picks_own or len(sent) > 1, "With one client there are no averages of others; set train.own=true.")
        return tree.size(joined.values())

    def pooled(self, m: int) -> Message:
        """Return the pool as it reaches each of m clients, stacked; empty where nothing was prepared."""
        return {} if self.pool is None else tree.each(lambda model: tree.repeated(model, m), self.pool.message)

    def steps(self, part: Train, ids: Tensor) -> np.ndarray:
        """Return how many steps each of these clients takes in a round."""  # (m,) int64
        return batches.number(self.sizes[ids.numpy()], part.batch, part.steps, part.epochs)

    def even(self, part: Train, ids: Tensor) -> bool:
        """Whether all batches of these clients have as many samples as a batch should have."""
        sizes = self.sizes[ids.numpy()]
        return bool((sizes >= part.batch).all() if part.epochs is None else (sizes % part.batch == 0).all())

    def chunks(self, part: Train, ids: Tensor, most: int) -> Iterator[Tensor]:
        """Yield the clients in chunks of at most `most`, those with the most steps first."""
        order = np.argsort(-self.steps(part, ids), kind="stable")
        yield from ids[torch.from_numpy(order)].split(most)

    def planned(self, part: Train, round: int, ids: Tensor) -> Pass:
        """Plan the local pass of these clients in a round."""
        who = ids.numpy()
        streams = self.streams(part, "batches", round, who)
        plan = batches.planned(
            self.sizes[who],
            streams[0],
            round,
            part.batch,
            part.steps,
            part.epochs,
            part.sampler,
            part.batches_per_step,
            streams[1:],
        )
        places = torch.from_numpy(np.ascontiguousarray((plan.rows + self.starts[who][:, None, None]).swapaxes(0, 1)))
        rows = picked(self.train_rows, places.to(self.device))
        short = plan.rows.shape[2] > plan.count.T  # (K, m)
        return Pass(
            ids,
            plan.batches // part.batches_per_step,
            rows,
            picked(self.y, rows),
            plan.count.T,
            np.where(short.any(1), short.argmax(1), short.shape[1]).tolist(),
            round,
            places,
        )

    def streams(self, part: Train, purpose: str, round: int, who: np.ndarray) -> list[np.ndarray]:
        """Return the random streams of these clients for the batches of a step: one stream for all of them, or one for
        each. The first is that of a part with one batch a step."""
        apart = part.own_streams or part.epochs is not None
        further = [f"{purpose} {b + 1}" for b in range(1, part.batches_per_step)] if apart else []
        return [rng.keys(self.seed, name, round, self.numbers[who]) for name in (purpose, *further)]

    def batch(self, work: Pass, number: int, live: slice, network: Network, part: Train) -> Batch:
        """Return batch `number` of the clients in `live`, stacked, with what `part` picks and the dropout masks."""
        result = self.samples(work, number, live)
        if part.folds or part.counts:
            result |= self.known(part, work.ids[live], work.places[number, live])
        result = part.adjusted(result)
        if part.picks is not None:
            assert self.pool is not None
            at = self.picks(work, number, live, part.picks_own).to(self.device)
            result |= {f"picked {name}": value[at] for name, value in self.pool.message[part.picks].items()}
        if part.clocked:
            steps = torch.from_numpy(work.steps[live]).to(self.device, self.dtype)
            result["done"] = (number // part.batches_per_step + 1) / steps
        if network.masks:
            streams = self.streams(part, "dropout", work.round, work.ids[live].numpy())
            nth, stream = divmod(number, len(streams))
            result |= self.masks(streams[stream], nth, work.rows.shape[2], network)
        return result

    def picks(self, work: Pass, number: int, live: slice, own: bool) -> Tensor:
        """Return the rows of the pool that the clients in `live` pick for batch `number`."""  # (m,)
        assert self.pool is not None
        clients = self.numbers[work.ids[live].numpy()]
        draw = rng.uniform(rng.keys(self.seed, "picks", work.round, clients), number, 1)[:, 0]
        return torch.from_numpy(self.pool.picked(clients, draw, own))

    def samples(self, work: Pass, number: int, live: slice) -> Batch:
        """Return the samples of batch `number`, stacked.

        They have a 'weight' only where some batch is not full or classes are weighted.
        """
        rows = work.rows[number, live]  # (m, width)
        result: Batch = {"x": picked(self.x, rows), "y": work.y[number, live]}
        last = work.rows.shape[1] if live.stop is None else live.stop
        if work.full[number] < last or self.class_weights is not None:
            count, width = work.count[number, live], rows.shape[1]
            result["weight"] = torch.from_numpy(np.arange(width) < count[:, None]).to(self.device, self.dtype)
        if self.class_weights is not None:
            result["weight"] *= self.class_weights[work.ids[live].to(self.device)].gather(1, result["y"])
        return result

    def known(self, part: Train, ids: Tensor, places: Tensor) -> Batch:
        """Return what a part asks to know of these clients' samples: their folds, and how many each class has."""
        folds = self.folded(part)
        found = {"fold": folds.of[places].to(self.device, self.dtype)} if part.folds else {}
        return found | ({"counts": folds.counts[ids].to(self.device, self.dtype)} if part.counts else {})

    def held(self, part: Train, ids: Tensor) -> Batch:
        """Return samples of the folds that a part holds out, stacked: at most `MOST` of each client."""
        places, count = self.held_places(part, ids, MOST)
        rows = picked(self.train_rows, places.to(self.device))
        weight = torch.arange(places.shape[1]) < count
        found = {"x": picked(self.x, rows), "y": picked(self.y, rows), "weight": weight.to(self.device, self.dtype)}
        return found | self.known(part, ids, places)

    def held_places(self, part: Train, ids: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """Return where the samples stand that a part holds out, at most so many of each client, and how many."""
        folds = self.folded(part)
        mine = [folds.held(part.held, *self.starts[i : i + 2]) for i in ids.tolist()]
        for row, (i, some) in enumerate(zip(ids.tolist(), mine, strict=True)):
            if len(some) > most:  # a random choice, since a client's samples may lie sorted by class
                draw = rng.uniform(rng.keys(self.seed, "held", 0, self.numbers[i : i + 1]), 0, len(some))[0]
                mine[row] = some[np.sort(np.argsort(draw)[:most])]
        places = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(some) for some in mine], batch_first=True)
        return places, torch.tensor([len(some) for some in mine])[:, None]  # (m, width), (m, 1)

    def at_hand(self, part: Train, round: int, ids: Tensor) -> Batch:
        """Return the samples that these clients have at hand when they meet what they are sent, stacked."""
        if part.held:
            places, count = self.held_places(part, ids, part.at_hand)
        else:
            drawn = rng.keys(self.seed, "at hand", round, self.numbers[ids.numpy()])
            plan = batches.planned(self.sizes[ids.numpy()], drawn, round, part.at_hand, 1, None, "fresh", 1, [])
            places = torch.from_numpy(plan.rows[:, 0] + self.starts[ids.numpy()][:, None])  # (m, width)
            count = torch.from_numpy(plan.count[:, :1])
        rows = picked(self.train_rows, places.to(self.device))
        weight = (torch.arange(rows.shape[1]) < count).to(self.device, self.dtype)
        y = picked(self.y, rows)
        if self.class_weights is not None:
            weight *= self.class_weights[ids.to(self.device)].gather(1, y)
        return {"x": picked(self.x, rows), "y": y, "weight": weight}

    def blocks(self, client: int) -> Iterator[Batch]:
        """Yield all training samples of a client, in blocks, each with its weight in the client's loss."""
        for rows in self.train_rows[self.starts[client] : self.starts[client + 1]].split(BLOCK):
            y = self.y[rows]
            ones = torch.ones(len(rows), dtype=self.dtype, device=self.device)
            weight = ones if self.class_weights is None else self.class_weights[client][y]
            yield {"x": self.x[rows], "y": y, "weight": weight}

    def masks(self, streams: np.ndarray, number: int, width: int, network: Network) -> Batch:
        """Return the dropout masks number `number` of these streams. Every client draws a full batch, whatever its
        chunk's width."""
        result: Batch = {}
        total = sum(int(np.prod(shape)) for shape in network.masks.values())
        start = number * total
        for name, shape in network.masks.items():
            size, p = int(np.prod(shape)), network.dropouts[name]
            keep = (rng.uniform(streams, start, size) >= p).reshape(len(streams), *shape)[:, :width]
            result[MASK + name] = torch.from_numpy(keep).to(self.device, self.dtype) / max(1.0 - p, 1e-12)
            start += size
        return result


def balanced_weights(federation: Federation) -> Tensor:
    """Return what a training sample of each class counts at each client, so that all its classes count the same.

    It is n / (classes that the client has * samples of the class), as scikit-learn's "balanced" has it; where a client
    has no sample of a class, 0.
    """  # (n, classes) float64
    counts = torch.from_numpy(federation.label_counts()).double()
    present = (counts > 0).sum(1, keepdim=True)
    return torch.where(counts > 0, counts.sum(1, keepdim=True) / (present * counts), 0.0)


def picked(values: Tensor, rows: Tensor) -> Tensor:
    """Return `values[rows]`. index_select copies whole rows, several times faster than indexing by a matrix."""
    return values.index_select(0, rows.reshape(-1)).view(*rows.shape, *values.shape[1:])
