"""The nodes of a strategy: those that run fedkin's client, and those with a ClientApp of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from torch import Tensor

from fedkin.core import batches, tree
from fedkin.engines.engine import Look, Order
from fedkin.errors import BadInput
from fedkin.flower.grid import OnGrid, kind
from fedkin.flower.records import arrays, as_answer, request_record, tensors
from fedkin.messages import Model, Reply
from fedkin.sites.ledger import Ledger, letter
from fedkin.sites.letters import Request
from fedkin.sites.scores import one_score
from fedkin.sites.talk import believed
from fedkin.sites.uploads import fitting

Records = Mapping[int, RecordDict]  # by node: what it replied


class Nodes(Protocol):
    """What a strategy asks of its nodes, which are numbered by their places in `names`."""

    names: tuple[str, ...]
    sizes: Tensor  # (n,) training samples, as far as they are known

    def current(self, ids: Tensor, slot: str) -> Model:
        """Return the models that these nodes show now, stacked."""
        ...

    def training(self, order: Order, config: ConfigRecord) -> dict[int, Message]:
        """Return the messages that ask nodes to train, by node."""
        ...

    def taken(self, order: Order, records: Records) -> Reply:
        """Return what counts of the nodes' replies after training."""
        ...

    def released(self, records: Records) -> list[int]:
        """Return the nodes of whom an upload has arrived, whether it counts or not."""
        ...

    def evaluating(self, ids: Tensor, looks: Mapping[str, Look], config: ConfigRecord) -> dict[int, Message]:
        """Return the messages that ask these nodes to score models, by node."""
        ...

    def measured(self, records: Records) -> list[RecordDict]:
        """Return what nodes replied as Flower's own functions average it: a record of metrics each, with its weight."""
        ...

    def result(self, common: Model | None) -> ArrayRecord | None:
        """Return the common model or, where there is none, the mean by size of the models that nodes showed."""
        ...


@dataclass(frozen=True)
class Keys:
    """What the records of Flower's messages are called, and the metric that has a node's number of samples."""

    weight: str
    arrays: str
    config: str


@dataclass
class OwnNodes:
    """Nodes whose ClientApp the user wrote. They get and send one model a round, and hold nothing between rounds.

    A node's current model is the one that it sent last. The method's train part says how many steps of which rate a
    node takes, for parts that need to know.
    """

    nodes: tuple[int, ...]
    model: Model  # the first one
    rest: dict[str, Any]  # arrays that are no numbers to learn, as counters of batches; they are sent as they were
    keys: Keys
    largest: float | None
    warn: Callable[[str], None]
    names: tuple[str, ...] = field(init=False)
    sizes: Tensor = field(init=False)
    held: dict[int, Model] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.names = tuple(str(node) for node in self.nodes)
        self.sizes = torch.ones(len(self.names), dtype=torch.int64)

    def current(self, ids: Tensor, slot: str) -> Model:
        return tree.stacked([self.held.get(number, self.model) for number in ids.tolist()])

    def training(self, order: Order, config: ConfigRecord) -> dict[int, Message]:
        sent = {number: letter(order.sent, number) for number in order.ids.tolist()}
        models = {i: self.held.get(i, self.model) if one is None else one["model"] for i, one in sent.items()}
        return {i: self.message(i, model, config, MessageType.TRAIN) for i, model in models.items()}

    def message(self, number: int, model: Model, config: ConfigRecord, type: str) -> Message:
        """Return a message of Flower's usual form, with a model of this node's own."""
        record = RecordDict({self.keys.arrays: arrays(model, self.rest), self.keys.config: ConfigRecord(dict(config))})
        return Message(record, self.nodes[number], type)

    def taken(self, order: Order, records: Records) -> Reply:
        given = {number: {"model": self.uploaded(record)} for number, record in records.items()}
        good, why, _ = fitting(given, {"model": self.model}, self.largest)
        for number, record in records.items():
            size = weight_of(record, self.keys.weight)
            if size is None:
                why[number] = f"Its metrics have no '{self.keys.weight}', by which it would be weighted."
            else:
                self.sizes[number] = max(1, int(size))
        for number, reason in why.items():
            self.warn(f"What node {self.names[number]} sent in round {order.round} does not count: {reason}")
        good = {number: upload for number, upload in good.items() if number not in why}
        self.held |= {number: upload["model"] for number, upload in good.items()}
        ids = torch.tensor([number for number in order.uploads.tolist() if number in good], dtype=torch.int64)
        broken = tuple(sorted(why))
        if not len(ids):
            return Reply(ids, {}, {}, broken)
        upload = {"model": tree.stacked([good[number]["model"] for number in ids.tolist()])}
        return Reply(ids, upload, self.report(order, ids), broken)

    def released(self, records: Records) -> list[int]:
        return sorted(records)

    def uploaded(self, record: RecordDict) -> dict[str, Tensor]:
        """Return the numbers to learn among the arrays of a reply."""
        found = record.array_records
        one = found[self.keys.arrays] if self.keys.arrays in found else next(iter(found.values()), ArrayRecord())
        return {name: value for name, value in tensors(one).items() if name not in self.rest}

    def report(self, order: Order, ids: Tensor) -> dict[str, Tensor]:
        """Return what the train part says of the work of these nodes."""
        sizes, part = self.sizes[ids], order.part
        steps = torch.from_numpy(batches.number(sizes.numpy(), part.batch, part.steps, part.epochs)).double()
        rate = torch.full((len(ids),), part.rate(order.round), dtype=torch.float64)
        return {"size": sizes.double(), "steps": steps, "reach": part.reach(steps), "rate": rate}

    def evaluating(self, ids: Tensor, looks: Mapping[str, Look], config: ConfigRecord) -> dict[int, Message]:
        sent = looks["global" if "global" in looks else "post"].sent
        letters = {i: letter(sent, i) for i in ids.tolist()}
        models = {i: self.held.get(i, self.model) if one is None else one["model"] for i, one in letters.items()}
        return {i: self.message(i, model, config, MessageType.EVALUATE) for i, model in models.items()}

    def measured(self, records: Records) -> list[RecordDict]:
        good = {i: one for i, one in records.items() if weight_of(one, self.keys.weight) is not None}
        return [RecordDict({"metrics": next(iter(one.metric_records.values()))}) for one in good.values()]

    def result(self, common: Model | None) -> ArrayRecord:
        everyone = torch.arange(len(self.names))
        mean = common or tree.weighted(self.current(everyone, "model"), self.sizes.double())
        return arrays(mean, self.rest)


@dataclass
class FedkinNodes:
    """Nodes that run `fedkin.flower.client`: the ordinary train part of any method, with private slots at the site."""

    transport: OnGrid
    ledger: Ledger
    keys: Keys
    timeout: float
    names: tuple[str, ...] = field(init=False)
    sizes: Tensor = field(init=False)
    asked: dict[int, Request] = field(init=False, default_factory=dict)  # the last requests
    said: dict[int, dict[str, Any]] | None = field(init=False, default=None)  # what was answered to them

    def __post_init__(self) -> None:
        self.names, self.sizes = self.ledger.names, self.ledger.sizes

    def current(self, ids: Tensor, slot: str) -> Model:
        for number in self.ledger.unknown(ids, slot):
            raise BadInput(f"Site {self.names[number]} has not shown its model; run this method by fedkin.flower.run.")
        return self.ledger.current(ids)

    def training(self, order: Order, config: ConfigRecord) -> dict[int, Message]:
        self.ledger.saving()  # a strategy never goes back, so sites need not keep what they held long ago
        return self.messages(self.ledger.work({}, order.ids[:0], order))

    def messages(self, values: Mapping[int, Mapping[str, Any]]) -> dict[int, Message]:
        """Return these requests as messages to the nodes of sites that are connected."""
        there = self.transport.found([self.names[number] for number in values], self.timeout)
        known = {number: Request.of(uuid4().hex, "work", value) for number, value in values.items()}
        self.asked = {number: one for number, one in known.items() if self.names[number] in there}
        self.said = None
        nodes = {number: there[self.names[number]] for number in self.asked}
        return {i: Message(request_record(one), nodes[i], kind(one)) for i, one in self.asked.items()}

    def answers(self, records: Records) -> dict[int, dict[str, Any]]:
        """Return what sites said to the last requests, of those whose answers are believed."""
        if self.said is not None:
            return self.said
        found = self.said = {}
        for number, record in records.items():
            try:
                said = believed(self.names[number], self.asked[number], as_answer(record))
                if "refused" in said:
                    raise BadInput(str(said["refused"]))
                found[number] = said
            except BadInput as error:
                self.ledger.warn(f"It goes on without site {self.names[number]}: {error}")
        return found

    def taken(self, order: Order, records: Records) -> Reply:
        return self.ledger.taken(order, self.answers(records))

    def released(self, records: Records) -> list[int]:
        return [number for number, said in self.answers(records).items() if "upload" in said]

    def evaluating(self, ids: Tensor, looks: Mapping[str, Look], config: ConfigRecord) -> dict[int, Message]:
        return self.messages(self.ledger.work(looks, ids, None))

    def measured(self, records: Records) -> list[RecordDict]:
        return [one for said in self.answers(records).values() if (one := self.scores(said)) is not None]

    def result(self, common: Model | None) -> ArrayRecord | None:
        known = sorted(self.ledger.known)
        if common is None and not known:
            return None
        seen = torch.tensor(known)
        return arrays(common or tree.weighted(self.ledger.current(seen), self.sizes[seen].double()))

    def scores(self, said: dict[str, Any]) -> RecordDict | None:
        """Return the scores of a site as metrics: 'post-accuracy', 'post-loss', ...; None where it has no samples."""
        metrics: dict[str, float] = {}
        for name, splits in (said.get("scores") or {}).items():
            score = one_score(splits.get("test"), int((splits.get("test") or {}).get("count", 0)))
            if not score.count:
                return None
            metrics[self.keys.weight] = int(score.count)
            metrics |= {f"{name}-{metric}": float(value) for metric, value in score.values.items()}
            metrics[f"{name}-loss"] = float(score.loss / score.count)
        return RecordDict({"metrics": MetricRecord(metrics)}) if metrics else None


def weight_of(record: RecordDict, name: str) -> float | None:
    """Return the number by which a reply is weighted; None where it has none."""
    value = next(iter(record.metric_records.values()), MetricRecord()).get(name)
    return float(value) if isinstance(value, int | float) else None
