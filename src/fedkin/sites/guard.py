"""What stands between a site and the server: noise that only the site knows, and the book of what it has released."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import Any

from torch import Tensor

from fedkin.errors import BadInput, require
from fedkin.privacy import Guard, Privacy, accountant
from fedkin.privacy.privacy import from_text, read
from fedkin.runs import files
from fedkin.sites.own_secret import NOISE, own_secret


@dataclass(frozen=True)
class Demand:
    """What a site demands of every run: at least so much `noise`, and that all runs together cost it at most `epsilon`
    at `delta`. Only with `losses` it tells losses and scores of its samples to a server that asks for them."""

    noise: float
    epsilon: float | None = None
    delta: float = 1e-5
    losses: bool = False

    def __post_init__(self) -> None:
        require(isfinite(self.noise) and self.noise > 0, f"A site demands noise above 0, not {self.noise}.")
        some = self.epsilon is None or self.epsilon > 0
        require(some, f"A site may spend an epsilon above 0, not {self.epsilon}.")
        require(0 < self.delta < 1, f"A site's delta is a probability between 0 and 1, not {self.delta}.")
        if self.epsilon is not None:
            accountant.check_installed()

    def check(self, privacy: Privacy | None) -> None:
        """Refuse a run with less noise than this site demands."""
        enough = f"noise={self.noise:g} or more"
        if privacy is None:
            raise BadInput(f"This site demands --dp with {enough}, and the run has none.")
        require(privacy.noise >= self.noise, f"This site demands --dp with {enough}, not {privacy.noise:g}.")
        told = self.losses or not privacy.losses
        require(told, "This site tells no losses and scores; leave losses=true out of --dp.")


def demanded(text: str) -> Demand:
    """Return what a text as 'noise=0.8,epsilon=8' demands."""
    return from_text(Demand, text, ("noise",), "noise=0.8,epsilon=8")


def asked(value: Any, demand: Demand | None) -> Privacy | None:
    """Return how a server asks for updates to be noised; refuses what is less than the site demands."""
    require(value is None or isinstance(value, str), "A run says --dp as a text.")
    privacy = None if value is None else read(value)
    if demand is not None:
        demand.check(privacy)
    return privacy


class Book:
    """What a site has released in all runs, on its own disk, and the secret that its noise is drawn by.

    The secret is told to nobody. It is not the one by which the site proves to the server who it is.
    """

    def __init__(self, folder: Path, demand: Demand | None):
        self.folder, self.demand = folder, demand

    def secret(self) -> bytes:
        """Return the random bytes that the noise is drawn by."""
        return own_secret(self.folder, NOISE)

    def releases(self) -> dict[str, float]:
        """Return the noise of each release so far, by its mark."""
        path = self.folder / "releases.json"
        return dict(files.read_json(path)) if path.exists() else {}

    def enter(self, mark: str, noise: float) -> None:
        """Note a release; refuses one beyond what the site may spend. The same one again costs nothing."""
        known = self.releases() | {mark: noise}
        if self.demand is not None and self.demand.epsilon is not None:
            spent, most = accountant.epsilon(Counter(known.values()), self.demand.delta), self.demand.epsilon
            within = f"This site may spend epsilon {most:g}, and with this round it would have spent {spent:.3g}"
            require(spent <= most, f"{within}; it takes part no more.")
        files.make_folder(self.folder)
        files.write_json(self.folder / "releases.json", known)


@dataclass(frozen=True)
class SiteGuard(Guard):
    """Clips and noises what a site uploads. Its secret and all that is released decide the noise.

    So a round that is played again in exactly the same way gives the same upload, and tells nothing new; and a server
    that has a round played twice in different ways gets other noise, and cannot take the difference of the two.
    """

    run: str
    book: Book

    def key(self, round: int, client: int, update: Tensor) -> bytes:
        digest = blake2b(f"{self.run}/{round}/{client}/{self.privacy}/".encode(), key=self.secret)
        digest.update(update.contiguous().cpu().numpy().tobytes())
        found = digest.digest()
        self.book.enter(blake2b(found, digest_size=16).hexdigest(), self.privacy.noise)
        return found
