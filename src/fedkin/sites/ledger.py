"""The server's book of its sites in a run: what each is asked, which of their answers count, and what each holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor

from fedkin.core import batches, tree
from fedkin.engines.batching import Pool
from fedkin.engines.engine import Look, Order
from fedkin.errors import BadInput, require
from fedkin.messages import Message, Model, Reply, Sent
from fedkin.parts import Train
from fedkin.runs.checkpoint import MOST
from fedkin.runs.part_json import to_json
from fedkin.sites.uploads import Fitting, TooLarge, fitting, like


class Ledger:
    """The server's book of its sites, who are numbered by their places in `names`. It asks nobody itself.

    `version` says for each site after which round it holds the private slots that count; whatever a site did that never
    arrived here, it goes on from there. `model` is the first model. `network` is how sites know the network: one of
    fedkin's names, or 'given'. `dp` is how sites noise their uploads. `numbers` are those that sites draw their batches
    by (None: their places). `warn` gets what the people at the server should read.
    """

    def __init__(
        self,
        names: Sequence[str],
        sizes: Tensor,
        agreed: dict[str, Any],
        train: Train,
        model: Model,
        seed: int,
        *,
        own: bool,
        network: str,
        dtype: str = "float32",
        balanced: bool = False,
        largest: float | None = None,
        too_large: TooLarge = "drop",
        dp: str | None = None,
        numbers: Sequence[int] | None = None,
        warn: Callable[[str], None] = print,
    ):
        self.names, self.sizes, self.part, self.model, self.own = tuple(names), sizes, train, model, own
        self.largest, self.too_large, self.warn, self.run = largest, too_large, warn, uuid4().hex
        self.facts = {"train": to_json(train), "model": network, "seed": seed, "dtype": dtype, "own": own}
        self.facts |= {"balanced": balanced, "agreed": agreed} | ({} if dp is None else {"dp": dp})
        self.slots = train.slots(model, own)  # what a site keeps to itself, as it begins
        self.numbers = [int(number) for number in (range(len(self.names)) if numbers is None else numbers)]
        self.version = [0] * len(self.names)
        self.saved: list[list[int]] = []  # the versions of the checkpoints that a run keeps
        self.shows: str | None = None  # the slot that sites are asked to show, since somebody wanted to see it
        self.known: dict[int, tuple[int, Model]] = {}  # by site: what it showed, and after which round
        self.pool: Pool | None = None
        self.upload: Message | None = None  # one as the part makes it

    # what sites are asked

    def value(self, number: int, **more: Any) -> dict[str, Any]:
        """Return what a site needs to know to do anything in this run, and what it is to do."""
        found = {
            "run": self.facts | {"id": self.run, "number": self.numbers[number]},
            "held": self.version[number],
            **more,
        }
        if self.slots and self.version[number] == 0:
            found["initial"] = self.model
        if self.pool is not None:
            found["pool"] = {"rows": self.pool.message, "ends": torch.as_tensor(self.pool.ends)}
        if len(self.saved) == MOST:
            found["safe"] = self.saved[0][number]
        return found

    def work(self, looks: Mapping[str, Look], ids: Tensor, order: Order | None) -> dict[int, dict[str, Any]]:
        """Return what sites are asked: these to score their models, and those of the order to train after that."""
        asked: dict[int, dict[str, Any]] = {}
        for number in ids.tolist() if looks else ():
            asked[number] = {"looks": {name: look_as_json(look, number) for name, look in looks.items()}}
        if order is not None:
            for number in order.ids.tolist():
                training = {"train": training_as_json(order, number), "show": self.shows}
                asked[number] = asked.get(number, {}) | training
        return {number: self.value(number, **more) for number, more in sorted(asked.items())}

    # what they answer

    def taken(self, order: Order, answers: Mapping[int, dict[str, Any]]) -> Reply:
        """Take in what sites answered after training: what counts becomes a reply, and what they hold is noted."""
        found = {number: answer for number, answer in answers.items() if not answer.get("broken")}
        who = [number for number in order.uploads.tolist() if number in found]
        if who and self.upload is None:
            pool = {} if self.pool is None else self.pool.message
            sent = letter(order.sent, who[0])
            self.upload = like(order.part, self.model, self.own, None if sent is None else sent | pool)
        fit = fitting({i: found[i].get("upload") for i in who}, self.upload or {}, self.largest, self.too_large)
        good, why = fit.good, dict(fit.why)
        seen = self.seen({number: answer for number, answer in found.items() if number not in why}, good)
        why |= seen.why
        for number in [number for number in found if number not in why]:
            try:
                self.note(number, found[number], order.round, seen.good.get(number))
            except BadInput as error:
                why[number] = str(error)
        clipped = {number: reason for number, reason in (seen.clipped | fit.clipped).items() if number not in why}
        for number, reason in why.items():
            self.warn(f"What site {self.names[number]} sent in round {order.round} does not count: {reason}")
        for number, reason in clipped.items():
            self.warn(f"What site {self.names[number]} sent in round {order.round} does not count in full: {reason}")
        broken = tuple(sorted({*why, *(answers.keys() - found.keys())}))
        replied = torch.tensor([number for number in sorted(good) if number not in why], dtype=torch.int64)
        if not len(replied):
            return Reply(replied, {}, {}, broken, tuple(sorted(clipped)))
        stack = [good[number] for number in replied.tolist()]
        upload = {name: tree.stacked([one[name] for one in stack]) for name in stack[0]}
        report = self.report(order.part, replied, order.round) | reported(found, replied, order.reports)
        return Reply(replied, upload, report, broken, tuple(sorted(clipped)))

    def seen(self, answers: Mapping[int, dict[str, Any]], uploads: Mapping[int, Message]) -> Fitting:
        """Return the models that sites show, as far as they count. One may be the model that a site uploads."""
        if self.shows is None:
            return Fitting({}, {}, {})
        same = {i for i, answer in answers.items() if answer.get("shown") == "upload" and i in uploads}
        shown = {i: uploads[i]["model"] if i in same else answer.get("shown") for i, answer in answers.items()}
        models, wanted = {i: {"model": model} for i, model in shown.items()}, {"model": self.slots[self.shows]}
        return fitting(models, wanted, self.largest, self.too_large, "What it shows")

    def note(self, number: int, answer: dict[str, Any], round: int, shown: Message | None) -> None:
        """Note what a site holds after a round, and what it shows of it, if what it says is right."""
        held = round if self.slots else 0
        require(answer.get("held") == held, f"It says that it holds round {answer.get('held')} after round {round}.")
        if shown is not None:
            self.known[number] = held, shown["model"]
        self.version[number] = held

    def show(self, answers: Mapping[int, dict[str, Any]]) -> None:
        """Note what sites show that were asked for it. The first model stands for one that does not count."""
        seen = self.seen(answers, {})
        for number in answers:
            model = seen.good[number]["model"] if number in seen.good else self.slots[str(self.shows)]
            self.known[number] = self.version[number], model
        for number, reason in (seen.why | seen.clipped).items():
            self.warn(f"What site {self.names[number]} shows does not count in full: {reason}")

    def report(self, part: Train, ids: Tensor, round: int) -> dict[str, Tensor]:
        """Return what the server knows itself of the work of these clients, so that none can claim more."""
        sizes = self.sizes[ids]
        steps = torch.from_numpy(batches.number(sizes.numpy(), part.batch, part.steps, part.epochs)).double()
        rate = torch.full((len(ids),), part.rate(round), dtype=torch.float64)
        return {"size": sizes.double(), "steps": steps, "reach": part.reach(steps), "rate": rate}

    # what they hold

    def unknown(self, ids: Tensor, slot: str) -> list[int]:
        """Return those of these sites whose model the server has to ask for. From now on, sites that train show it."""
        self.shows = slot
        return [i for i in ids.tolist() if self.version[i] and self.known.get(i, (0,))[0] != self.version[i]]

    def current(self, ids: Tensor) -> Model:
        """Return the models that these sites show now: the first one, or what each of them sent last."""
        first = self.slots[str(self.shows)]
        return tree.stacked([self.known[i][1] if self.version[i] else first for i in ids.tolist()])

    def saving(self) -> Message:
        """Return which version each site holds, for a checkpoint. Sites keep those of the checkpoints of a run."""
        self.saved = [*self.saved, list(self.version)][-MOST:]
        run = torch.tensor(list(bytes.fromhex(self.run)), dtype=torch.uint8)
        return {"sites": {"version": torch.tensor(self.version), "run": run}}

    def go_back(self, saved: Message) -> None:
        """Go on from a checkpoint."""
        held = saved["sites"]
        self.run, self.version = bytes(held["run"].tolist()).hex(), held["version"].tolist()
        self.saved, self.known = [list(self.version)], {}


def letter(sent: Sent, number: int) -> Message | None:
    """Return what one client was sent; None where it was sent nothing."""
    at = (sent.ids == number).nonzero().reshape(-1)
    return sent.shared | tree.each(lambda model: tree.row(model, int(at[0])), sent.own) if len(at) else None


def look_as_json(look: Look, number: int) -> dict[str, Any]:
    """Return what a site is asked to score."""
    facts: dict[str, Any] = {name: getattr(look, name) for name in ("of", "splits", "round", "slot", "stored")}
    return facts | {"sent": letter(look.sent, number)}


def training_as_json(order: Order, number: int) -> dict[str, Any]:
    """Return what a site is asked to train."""
    uploads = bool((order.uploads == number).any())
    return {"round": order.round, "sent": letter(order.sent, number), "reports": order.reports, "upload": uploads}


def reported(found: Mapping[int, dict[str, Any]], ids: Tensor, reports: tuple[str, ...]) -> dict[str, Tensor]:
    """Return the numbers that only the clients know, as they report them; what is no number is nan."""

    def number(client: int, name: str) -> float:
        value = (found[client].get("report") or {}).get(name)
        return float(value) if isinstance(value, int | float) else float("nan")

    return {name: torch.tensor([number(i, name) for i in ids.tolist()], dtype=torch.float64) for name in reports}
