"""What the one client of a site does for a request: it trains by the ordinary part on the ordinary stacked engine."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import nn

from fedkin.core import tree
from fedkin.core.tree import Message, Model
from fedkin.engines.batching import Pool
from fedkin.engines.engine import Score, Split
from fedkin.engines.problem import network_of
from fedkin.engines.replies import completed
from fedkin.engines.stacked import Stacked
from fedkin.errors import require
from fedkin.messages import Sent
from fedkin.runs import files
from fedkin.sites import allowed
from fedkin.sites.guard import Book, SiteGuard, asked
from fedkin.sites.letters import check_like
from fedkin.sites.samples import Samples
from fedkin.sites.versions import Versions

ME = torch.tensor([0])  # a site is the only client of its engine


class Client:
    """The client of a site in a run, as long as it takes to answer one request.

    `run` has the facts of the run: the train part, the model, the seed, and this site's number among all sites, by
    which its batches are drawn. `kept` has its private slots, `book` what it has released.
    """

    def __init__(
        self,
        run: dict[str, Any],
        kept: Versions,
        samples: Samples,
        model: Callable[[], nn.Module] | None,
        modules: Collection[str],
        book: Book,
    ):
        self.run, self.kept = run, kept
        self.privacy = asked(run.get("dp"), book.demand)
        self.part = allowed.train_part(run.get("train"), modules)
        number, seed = (allowed.whole(run.get(name), f"The {name} of a site's work") for name in ("number", "seed"))
        dtype, self.own = allowed.dtype(run.get("dtype")), bool(run.get("own"))
        federation = samples.federation(run.get("agreed") or {})
        federation = replace(federation, numbers=torch.tensor([number]), clients=())
        made = run.get("model"), model, federation.shape, federation.classes, federation.vocabulary
        self.network = network_of(federation, allowed.network_module(*made), self.part, dtype, torch.device("cpu"))
        options: dict[str, Any] = {"chunk": 1, "dtype": dtype, "balanced": bool(run.get("balanced"))}
        if self.privacy is not None:
            options["guard"] = SiteGuard(self.privacy, book.secret(), allowed.run_name(run.get("id")), book)
        self.engine = Stacked(federation, self.network, self.part, seed, own=self.own, **options)
        self.slots = tuple(self.part.slots(self.network.model, self.own))

    def close(self) -> None:
        """Free what the client holds."""
        self.engine.close()

    def work(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Score models, then train for a round, each as far as it is asked for.

        `held` says from which round on the client goes on, whatever it did since then.
        """
        held = allowed.whole(asked["held"], "A round")
        found: dict[str, Any] = {"held": held}
        self.check_private(asked)
        if self.slots:
            self.go_on(held, asked.get("initial"))
        if asked.get("pool"):
            self.engine.batching.pool = Pool(asked["pool"]["rows"], asked["pool"]["ends"].numpy())
        if asked.get("prepare"):
            rows = self.engine.batching.train_rows
            x, y, classes = self.engine.batching.x[rows], self.engine.batching.y[rows], self.engine.federation.classes
            found["prepared"] = self.part.prepare(x, y, classes)
        if asked.get("survey"):
            found["report"] = self.surveyed(asked["survey"])
        found["scores"] = {name: self.scores(look) for name, look in (asked.get("looks") or {}).items()}
        if asked.get("train"):
            found |= self.trained(asked["train"], held)
        if asked.get("show"):
            found["shown"] = self.shown(asked["show"], found.get("upload"))
        if asked.get("safe") is not None:
            self.kept.forget(allowed.whole(asked["safe"], "A round"))
        return found

    def check_private(self, asked: dict[str, Any]) -> None:
        """Refuse what would leave the site as it is in a run whose updates are noised."""
        if self.privacy is None:
            return
        for word, what in (("prepare", "averages of its samples"), ("show", "the model that it holds")):
            require(not asked.get(word), f"In a run with --dp this site does not send {what}.")
        reports = [(asked.get(word) or {}).get("reports") for word in ("survey", "train")]
        quiet = self.privacy.losses or not any(reports)
        require(quiet, "In a run with --dp this site tells its losses only with losses=true.")

    def go_on(self, held: int, initial: Model | None) -> None:
        """Take up the private slots as they were after a round; before round 1 those of the first model."""
        model = self.network.model
        if initial is not None:
            check_like(initial, model, "The server's first model")
            model = in_order(initial, model)
        self.engine.slots.write(ME, stacked(self.kept.read(held, self.part.slots(model, self.own))))

    def trained(self, asked: dict[str, Any], held: int) -> dict[str, Any]:
        """Train for a round, and keep what is finite as the version of this round."""
        uploads, round = ME if asked["upload"] else ME[:0], allowed.whole(asked["round"], "A round")
        reply = self.engine.train(self.part, self.sent(asked["sent"]), ME, round, uploads, tuple(asked["reports"]))
        if reply.broken or not reply.finite().all():
            return {"broken": True}
        found: dict[str, Any] = {"broken": False, "held": held}
        if self.slots:
            self.kept.write(round, tree.each(lambda model: tree.row(model, 0), self.engine.slots.read(ME)))
            found["held"] = round
        if len(reply.ids):
            found["upload"] = tree.each(lambda model: tree.row(model, 0), reply.upload)
            found["report"] = {name: float(reply.report[name][0]) for name in asked["reports"]}
        return found

    def surveyed(self, asked: dict[str, Any]) -> dict[str, float]:
        """Return the numbers that are reported on what this client is sent."""
        reports = tuple(asked["reports"])
        reply = self.engine.survey(self.part, self.sent(asked["sent"]), ME, reports)
        return {name: float(reply.report[name][0]) for name in reports}

    def shown(self, slot: Any, upload: Message | None) -> Model | str:
        """Return the model that this client shows; where it is the one that was uploaded, only a word."""
        require(slot == self.part.shared, f"This site does not show '{slot}', which its train part keeps to itself.")
        mine = tree.row(self.engine.current(ME, self.slot(slot)), 0)
        model = (upload or {}).get("model", {})
        same = set(model) == set(mine) and all(torch.equal(value, mine[name]) for name, value in model.items())
        return "upload" if same else mine

    def slot(self, name: Any) -> str:
        """Return the name of a private model that this client has."""
        require(name in self.slots, f"This site keeps no model called '{name}'.")
        return str(name)

    # what it is scored by

    def scores(self, look: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Score one model of this client by splits; one that is to be stored is written to the site's folder.

        In a run with --dp that does not allow losses, the scores stay here.
        """
        model = self.looked_at(look)
        if look["stored"]:
            self.store(model, look["round"])
        if self.privacy is not None and not self.privacy.losses:
            return {}
        part = None if look["of"] == "held" else self.part
        splits = [split for split in get_args(Split) if split in look["splits"] and split in self.engine.splits]
        return {split: as_json(self.engine.score(model, ME, split, part)) for split in splits}

    def looked_at(self, look: dict[str, Any]) -> Model:
        """Return the model that is scored, with one row."""
        of, sent, round = look["of"], self.sent(look["sent"]), allowed.whole(look["round"], "A round")
        require(of in ("held", "personal", "tuned"), f"A site has no model that is '{of}'.")
        if of == "tuned":
            return self.engine.train(self.part.at_home(), sent, ME, round, keep=False).upload["model"]
        if of == "personal":
            return self.engine.personal(self.part, sent, ME, round)
        if "model" not in sent.own:
            return self.engine.current(ME, self.slot(look["slot"]))
        return completed(sent.own, self.engine.slots.read(ME), torch.tensor([True]), self.network.model)["model"]

    def store(self, model: Model, round: int) -> None:
        """Write the model by which this client is judged to its folder, with what it takes to build it again.

        Of a table this is also how its rows become samples.
        """
        files.make_folder(self.kept.folder)
        files.write_tensors(self.kept.folder / "model.safetensors", tree.row(model, 0))
        names = ("model", "train", "dtype", "agreed", "number")
        files.write_json(self.kept.folder / "model.json", {name: self.run[name] for name in names} | {"round": round})
        if (how := self.engine.federation.preparation) is not None:
            files.write_json(self.kept.folder / "preparation.json", how)

    def sent(self, message: Message | None) -> Sent:
        """Return what this client was sent, as an engine wants it; refuses a model that is not of this network."""
        if message is None:
            return Sent(ME[:0])
        if "model" in message:
            like = {name: value for name, value in self.network.model.items() if name in message["model"]}
            check_like(message["model"], like or self.network.model, "The model that the server sent")
        ordered = {name: in_order(model, self.network.model) for name, model in message.items()}
        return Sent(ME, own=stacked(ordered))


def in_order(model: Model, like: Model) -> Model:
    """Return a model with its tensors in the order of another; a letter may not keep it."""
    return {name: model[name] for name in like} if set(model) == set(like) else model


def stacked(message: Message) -> Message:
    """Return one client's message as an engine has it, with one row."""
    return tree.each(lambda model: tree.mapped(lambda value: value[None], model), message)


def as_json(score: Score) -> dict[str, Any]:
    """Return the score of one client as numbers; each tensor of a letter may have to be carried by itself."""
    numbers = {name: getattr(score, name).item() for name in ("correct", "loss", "count")}
    return numbers | {"values": {name: value.item() for name, value in score.values.items()}}
