"""The sites of a run: how they are found, and what is known of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, get_args
from uuid import uuid4

import torch

from fedkin.data.federation import Federation, Index
from fedkin.data.natural_order import natural_order
from fedkin.errors import BadInput, Unfinished, require, unknown
from fedkin.sites.agreement import agree, agreement_lines
from fedkin.sites.allowed import RUN
from fedkin.sites.letters import Request, Transport
from fedkin.sites.uploads import TooLarge

PAUSE = 2.0  # seconds before sites that are not there are asked again


@dataclass(frozen=True)
class Sites:
    """The sites of a run, sorted as people do. A site's place among them is its client number.

    An exchange takes at most `timeout` seconds; where nobody answers, it is repeated for `patience` seconds. `largest`
    is how many times as large as the others' a model may be; None: as large as it likes. One that is larger does not
    count, or is shortened to the median of the others (`too_large`, "drop" or "clip"). `warn` gets what the people at
    the server should read.
    """

    transport: Transport
    names: tuple[str, ...]
    told: tuple[dict[str, Any], ...]  # what each said when it introduced itself
    agreed: dict[str, Any]
    timeout: float = 600.0
    patience: float = 3600.0
    pause: float = PAUSE
    largest: float | None = 50.0
    too_large: TooLarge = "drop"
    warn: Callable[[str], None] = print
    notes: tuple[str, ...] = field(default=())  # who was not taken, and why

    def federation(self) -> Federation:
        """Return all that the server has of the sites' samples: how many there are. It holds none of them."""
        sizes = [one["data"]["sizes"] for one in self.told]
        shape, words, regress = self.agreed["shape"], self.agreed["vocabulary"], self.agreed["task"] == "regress"
        require(0 not in shape, "The columns that sites agree on leave nothing to learn from.")
        digests = {name: one["data"]["digest"] for name, one in zip(self.names, self.told, strict=True)}
        validated = any(one.get("validation") for one in sizes)
        return Federation(
            name="sites",
            x=torch.zeros(1, *shape, dtype=torch.float32 if words is None else torch.int64),
            y=torch.zeros(1, dtype=torch.float32 if regress else torch.int64),
            classes=self.agreed["classes"],
            train=absent([one.get("train", 0) for one in sizes]),
            test=absent([one.get("test", 0) for one in sizes]),
            validation=absent([one.get("validation", 0) for one in sizes]) if validated else None,
            clients=self.names,
            vocabulary=words,
            task=self.agreed["task"],
            labels=tuple(self.agreed.get("labels", ())),
            source={"kind": "sites", "digests": digests, "agreed": self.agreed},
            notes=self.notes,
            elsewhere=True,
        )


def absent(sizes: list[int]) -> Index:
    """Return the lists of so many samples of each client that are not here; the one row there is stands for them."""
    start = torch.tensor([0, *sizes]).cumsum(0)
    return Index(torch.zeros(int(start[-1]), dtype=torch.int64), start)


def meet(
    transport: Transport,
    sites: int | Collection[str] = 2,
    *,
    wait: float = 600.0,
    timeout: float = 600.0,
    patience: float = 3600.0,
    pause: float = PAUSE,
    largest: float | None = 50.0,
    too_large: TooLarge = "drop",
    warn: Callable[[str], None] = print,
) -> Sites:
    """Wait until so many sites, or those with these names, have introduced themselves, and let them agree.

    A site that does not fit is told why, and left out; with names given, no other site is taken.
    """
    if too_large not in get_args(TooLarge):
        raise unknown("way with models that are too large", too_large, get_args(TooLarge))
    wanted, end, said = None if isinstance(sites, int) else set(sites), time.monotonic() + wait, ""
    told: dict[str, str] = {}
    while True:
        found, refused = introduced(transport, timeout, wanted)
        fit = {name: found[name] for name in natural_order(found)}
        agreed, wrong = agree(fit) if fit else ({}, {})
        refused |= wrong
        tell(transport, {name: why for name, why in refused.items() if told.get(name) != why}, timeout)
        told |= refused
        fit = {name: one for name, one in fit.items() if name not in wrong}
        missing = max(sites - len(fit), 0) if isinstance(sites, int) else len(set(sites) - set(fit))
        if not missing:
            break
        here = f"{len(fit)} sites are here ({', '.join(fit) or 'nobody'}), and {missing} more are waited for"
        if time.monotonic() > end:
            why = "".join(f" {name} was not taken: {sentence}" for name, sentence in refused.items())
            raise Unfinished(f"{here}, but did not come in {wait:.0f} s; start them, and begin again.{why}")
        if here != said:
            warn(f"{here}.")
        said = here
        time.sleep(pause)
    for line in agreement_lines(agreed):
        warn(line)
    notes = tuple(f"Site {name} was not taken: {sentence}" for name, sentence in refused.items())
    options: dict[str, Any] = {"patience": patience, "pause": pause, "largest": largest, "too_large": too_large}
    options |= {"warn": warn, "notes": notes}
    return Sites(transport, tuple(fit), tuple(fit.values()), agreed, timeout, **options)


def introduced(
    transport: Transport, timeout: float, wanted: Collection[str] | None
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return what each site that is there said of itself, and why some are not taken."""
    request = Request.of(uuid4().hex, "introduce", {})
    found: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    for answer in transport.gather(request, timeout):
        said = answer.facts  # nobody introduces himself with tensors
        if answer.to != request.id:
            continue
        proved = isinstance(said.get("proof"), str) and RUN.fullmatch(said["proof"]) is not None
        if said.get("refused") or said.get("name") != answer.site or not proved:
            refused[answer.site] = str(said.get("refused", "It does not say who it is."))
        elif wanted is not None and answer.site not in wanted:
            refused[answer.site] = "It is not among the sites of this run."
        elif answer.site in found and found[answer.site]["proof"] != said["proof"]:
            raise BadInput(f"Two sites say that they are '{answer.site}'; give each its own name.")
        else:
            found[answer.site] = said
    return found, refused


def tell(transport: Transport, refused: dict[str, str], timeout: float) -> None:
    """Tell sites that are not taken why."""
    letters = {name: Request.of(uuid4().hex, "refused", {"why": why}) for name, why in refused.items()}
    if letters:
        transport.exchange(letters, timeout)
