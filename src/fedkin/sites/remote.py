"""The engine whose clients are sites on other machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from fedkin.contract import redefines
from fedkin.core import tree
from fedkin.core.rows import Sealed
from fedkin.engines.batching import Pool
from fedkin.engines.engine import Look, Order, Score, Split
from fedkin.errors import BadInput, require
from fedkin.messages import Message, Model, Reply, Sent, Tell, nobody
from fedkin.parts import Train
from fedkin.sites.ledger import Ledger, letter, reported
from fedkin.sites.meeting import Sites
from fedkin.sites.scores import joined_scores
from fedkin.sites.talk import Talk

NO_LOOKS: Mapping[str, Look] = {}


@dataclass
class Ahead:
    """A training that sites have done already, because it was asked for together with scores."""

    order: Order
    answers: dict[int, dict[str, Any]]
    scores: dict[str, dict[Split, Score]] = field(default_factory=dict)


class Remote:
    """An engine that asks sites. Samples, personal models and private slots stay with them.

    `model` is the first model. `network` is how sites know the network: one of fedkin's names, or 'given'.
    """

    has_common_test = False
    irrelevant: Tensor | None = None

    def __init__(
        self,
        sites: Sites,
        train: Train,
        model: Model,
        seed: int,
        *,
        own: bool,
        network: str,
        dtype: str = "float32",
        balanced: bool = False,
        dp: str | None = None,
    ):
        self.sites, self.talk, self.federation = sites, Talk(sites), sites.federation()
        run: dict[str, Any] = {"own": own, "network": network, "dtype": dtype, "balanced": balanced}
        run |= {"dp": dp, "largest": sites.largest, "too_large": sites.too_large, "warn": sites.warn}
        self.ledger = Ledger(sites.names, self.federation.train.sizes, sites.agreed, train, model, seed, **run)
        self.splits: tuple[Split, ...] = ("train", "test")
        self.splits += ("validation",) if self.federation.validation is not None else ()
        self.tell: Tell = nobody  # an exchange does not say how far it is
        self.expected: tuple[Order, Mapping[str, Look]] | None = None
        self.ahead: Ahead | None = None

    # several things in one message

    def expect(self, order: Order, looks: Mapping[str, Look]) -> None:
        if self.ahead is None or self.ahead.order.round != order.round:
            self.expected = order, looks

    def looked(self, looks: Mapping[str, Look], ids: Tensor) -> dict[str, dict[Split, Score]]:
        if self.ahead is not None and set(looks) <= set(self.ahead.scores):
            return {name: self.ahead.scores[name] for name in looks}
        order, soon = self.expected or (None, NO_LOOKS)
        self.expected, every = None, {**soon, **looks}
        last = any(look.stored for look in every.values())
        answers = self.talk.ask("work", self.ledger.work(every, ids, order), last=last)
        found = {name: joined_scores(answers, name, look, ids, self.federation) for name, look in every.items()}
        if order is not None:
            self.ahead = Ahead(order, answers, {name: found[name] for name in soon})
        return {name: found[name] for name in looks}

    # before and in a round

    def prepare(self, part: Train) -> tuple[int, int]:
        if not redefines(part, Train.prepare):
            return 0, 0
        everyone = range(len(self.sites.names))
        asked = {number: self.ledger.value(number, prepare=True) for number in everyone}
        found = self.talk.ask("work", asked, everyone=True)
        sent = [found[number]["prepared"] for number in everyone]
        rows = [len(next(iter(next(iter(message.values())).values()))) for message in sent]
        joined = {name: tree.joined([message[name] for message in sent]) for name in sent[0]}
        self.ledger.pool = Pool(joined, np.cumsum([0, *rows]))
        return tree.size(joined.values())

    def survey(self, part: Train, sent: Sent, ids: Tensor, reports: tuple[str, ...]) -> Reply:
        asked = {i: {"sent": letter(sent, i), "reports": reports} for i in ids.tolist()}
        values = {number: self.ledger.value(number, survey=one) for number, one in asked.items()}
        found = self.talk.ask("work", values, everyone=True)
        return Reply(ids, {}, self.ledger.report(part, ids, 1) | reported(found, ids, reports))

    def current(self, ids: Tensor, slot: str) -> Model:
        missing = {i: self.ledger.value(i, show=slot) for i in self.ledger.unknown(ids, slot)}
        self.ledger.show(self.talk.ask("work", missing, everyone=True))
        return self.ledger.current(ids)

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
        require(keep, "Models that are trained to be scored stay at their sites.")
        order = Order(part, sent, ids, round, ids if uploads is None else uploads, reports)
        if self.ahead is not None and self.ahead.order.round == round:
            answers = self.ahead.answers
        else:
            answers = self.talk.ask("work", self.ledger.work(NO_LOOKS, ids[:0], order))
        self.ahead = self.expected = None
        return self.ledger.taken(order, {number: answers[number] for number in ids.tolist() if number in answers})

    # what is scored

    def score(self, models: Model, ids: Tensor, split: Split, part: Train | None = None) -> Score:
        require(part is None or not part.predicts_itself, "Sites score their personal models themselves.")
        look = Look("held", Sent(ids, own={"model": models}), (split,))
        return self.looked({"asked": look}, ids)["asked"][split]

    def score_one(self, model: Model, split: Split) -> Score:
        everyone = torch.arange(len(self.sites.names))
        look = Look("held", Sent(everyone, {"model": model}), (split,))
        return self.looked({"asked": look}, everyone)["asked"][split]

    # what stays at the sites

    def train_together(self, *asked: Any) -> NoReturn:
        raise BadInput("Samples do not leave their sites, so they cannot be put together; choose another method.")

    def personal(self, *asked: Any) -> NoReturn:
        raise BadInput("Personal models do not leave their sites; each is stored at its own when the run ends.")

    def gradients(self, *asked: Any) -> NoReturn:
        raise BadInput("Gradients of all samples do not leave their sites; leave --gradient-norm out.")

    def outputs(self, *asked: Any) -> NoReturn:
        raise BadInput("What a model says of single samples does not leave a site.")

    outputs_one = score_common = outputs

    # checkpoints

    def private(self) -> Message:
        """Return which version each site holds, and by what it proves who it is. The slots stay at the sites."""
        proofs = torch.tensor([list(bytes.fromhex(one["proof"])) for one in self.sites.told], dtype=torch.uint8)
        saved = self.ledger.saving()
        return {"sites": saved["sites"] | {"proof": proofs}}

    def restore(self, private: Message | Sealed) -> None:
        """Go on with the versions of a checkpoint, and tell the sites to go back to them."""
        assert not isinstance(private, Sealed)  # a run keeps its engine, and this one stores no rows
        proofs = private["sites"]["proof"].tolist()
        for name, one, proof in zip(self.sites.names, self.sites.told, proofs, strict=True):
            same = bytes(proof).hex() == one["proof"]
            require(same, f"Site {name} is not the one that the run began with; bring back its folder.")
        self.ledger.go_back(private)
        self.ahead = self.expected = None
        back = {i: {"run": self.ledger.run, "held": held} for i, held in enumerate(self.ledger.version)}
        _, why, refused = self.talk.once("go back", back)
        for number, reason in why.items():
            require(number not in refused, f"Site {self.sites.names[number]} cannot go back: {reason}")

    def clean(self) -> None:
        """There are no scratch files here."""

    def close(self) -> None:
        """Nothing is held here that has to be freed."""
