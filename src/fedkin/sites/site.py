"""A site: one client on a machine of its own. It answers what it is asked, from what lies in its own folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from fedkin.errors import BadInput, require
from fedkin.runs import files
from fedkin.runs.facts import versions
from fedkin.sites import allowed
from fedkin.sites.client import Client
from fedkin.sites.guard import Book, demanded
from fedkin.sites.letters import Answer, Request
from fedkin.sites.own_secret import DIGEST, PROOF, own_secret
from fedkin.sites.samples import Samples, Unreadable
from fedkin.sites.versions import Versions


class Site:
    """One client. It may be made anew for every request: all it must remember lies in its folder.

    `model` makes the network that a server may ask for as 'given'; `modules` are those whose parts it may ask for,
    besides fedkin's own. With `dp`, as "noise=0.8,epsilon=8", it refuses runs with less noise, and more releases than
    cost it that epsilon in all runs together (`guard.Demand`). `warn` gets what the people at the site should read.
    """

    def __init__(
        self,
        name: str,
        folder: Path | str,
        samples: Samples,
        *,
        model: Callable[[], nn.Module] | None = None,
        modules: Sequence[str] = (),
        dp: str | None = None,
        warn: Callable[[str], None] = print,
    ):
        require(name, "A site has a name; say it in the site's own configuration.")
        self.name, self.folder, self.samples = name, Path(folder), samples
        self.model, self.modules, self.warn = model, tuple(modules), warn
        self.book = Book(self.folder, None if dp is None else demanded(dp))

    def answer(self, request: Request) -> Answer:
        """Do what is asked, or refuse it in a sentence that both sides read."""
        known = {"introduce": self.introduce, "refused": self.refused, "go back": self.go_back, "work": self.work}
        try:
            require(request.do in known, f"A site does not know how to do '{request.do}'.")
            found = known[request.do](request.value())
        except BadInput as error:
            self.warn(f"Site {self.name} refused what it was asked: {error}")
            found = {"refused": error.told if isinstance(error, Unreadable) else str(error)}
        return Answer.of(self.name, request.id, found)

    # who it is

    def introduce(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Tell who this site is, and what the server may know of its samples.

        `proof` is a secret that no other site knows, so that none can speak in this one's name. The check sum of the
        samples is keyed by another one, which stays here: whoever knew it could try guesses of the samples.
        """
        proof, key = own_secret(self.folder, PROOF, 16), own_secret(self.folder, DIGEST)
        told = {"name": self.name, "proof": proof.hex(), "fedkin": versions()["fedkin"]}
        return told | {"data": self.samples.told() | {"digest": self.samples.digest(key)}}

    def refused(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Let the people here read why the server does not take this site."""
        self.warn(f"The server does not take site {self.name}: {asked.get('why')}")
        return {}

    # what it keeps, and what it does

    def versions(self, run: Any) -> Versions:
        """Return what this site keeps to itself in a run."""
        return Versions(self.folder / "runs" / allowed.run_name(run))

    def go_back(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Forget what came after a round of a run, so that it goes on from there."""
        held, kept = allowed.whole(asked.get("held"), "A round"), self.versions(asked.get("run"))
        kept.check(held)
        kept.go_back(held)
        return {"held": held}

    def work(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Score models, then train for a round, each as far as it is asked for."""
        require(isinstance(asked.get("run"), dict), "A request to work says of which run it is.")
        kept = self.versions(asked["run"].get("id"))
        client = Client(asked["run"], kept, self.samples, self.model, self.modules, self.book)
        try:
            with files.alone(self.folder):
                return client.work(asked)
        except (KeyError, TypeError) as error:
            raise BadInput(f"The request does not say what it must ({type(error).__name__}: {error}).") from error
        finally:
            client.close()
