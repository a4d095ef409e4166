"""Chooses the run whose model is used, where a folder holds several methods or seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedkin import metrics
from fedkin.answers.site import ALONE, JOIN
from fedkin.errors import require, unknown
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.run import Run
from fedkin.runs.several import finished_runs

WHOSE = {"global": "by their common models", "judged": "for all clients"}


@dataclass(frozen=True)
class Choice:
    """A run, which one it is of several of its method, and why it is this method; empty where nothing was to choose."""

    run: Run
    which: str = ""
    why: str = ""

    @property
    def called(self) -> str:
        """The run in words, to stand within a sentence."""
        return f"{self.run.method}{self.which}{self.why}"

    @property
    def said(self) -> str:
        """The sentence that says which run it is; empty where there was nothing to choose."""
        return f"This is {self.called}." if self.which or self.why else ""


def choose(
    folder: Path | str,
    client: str | None = None,
    method: str | None = None,
    seed: int | None = None,
    kinds: Sequence[str] = ("global",),
) -> Choice:
    """Return the run of a folder to take a model from, as `Chooser` chooses it."""
    return Chooser(Path(folder)).choose(client, method, seed, kinds)


@dataclass(frozen=True)
class Chooser:
    """Chooses among the finished runs of a folder."""

    folder: Path

    @cached_property
    def runs(self) -> list[Run]:
        """The runs with the first seed of the data: another one has other clients."""
        found = finished_runs(self.folder)
        return [run for run in found if run.data_seed == found[0].data_seed]

    @cached_property
    def names(self) -> list[str]:
        """The methods, each once."""
        return list(dict.fromkeys(run.method for run in self.runs))

    @cached_property
    def sites(self) -> list[dict[str, Any]]:
        """What the comparison answers to each site; empty where it is none."""
        return list(CommandFolder(self.folder).summary().get("sites", {}).get("sites", []))

    def choose(
        self,
        client: str | None = None,
        method: str | None = None,
        seed: int | None = None,
        kinds: Sequence[str] = ("global",),
    ) -> Choice:
        """Return the run to take a model from.

        Of several methods it is the one that a comparison recommends to the client or, if it is not clear which, the
        best one: on the test samples of the client or, without a client, on those of all clients that do not look
        mislabelled, by the first of these `kinds` of model that any method has. Of several seeds and splits it is the
        first: the best one of them would only be the luckiest.
        """
        if method is not None and method not in self.names:
            raise unknown("method in this folder", method, self.names)
        why = ""
        if method is None:
            found = self.recommended(client)
            method, why = found or self.best_method(client, ("judged",) if client is not None else kinds)
        mine = self.of(method)
        seeds = sorted({run.seed for run in mine})
        known = ", ".join(map(str, seeds))
        sentence = f"{self.folder} has no run of {method} with seed {seed}; there are {known}."
        require(seed is None or seed in seeds, sentence)
        run = next(run for run in mine if seed is None or run.seed == seed)
        which = f" with seed {run.seed}, the first of {len(mine)} runs" if len(mine) > 1 and seed is None else ""
        return Choice(run, which, why)

    def of(self, method: str) -> list[Run]:
        return [run for run in self.runs if run.method == method]

    def recommended(self, client: str | None) -> tuple[str, str] | None:
        """Return the method that a comparison recommends to a client, and that it does; None where it recommends
        none."""
        for site in self.sites:
            name = {JOIN: site["method"], ALONE: site["against"]}.get(site["verdict"])
            if site["site"] == client and name is not None:
                return name, f", as the comparison recommends to {client} ({site['verdict']})"
        return None

    def best_method(self, client: str | None, kinds: Sequence[str]) -> tuple[str, str]:
        """Return the method with the best models of the first kind that any method has, and why it is this one.

        A method that pools everybody's samples is taken only where there is no other."""
        names = [name for name in self.names if not self.of(name)[0].pools] or self.names
        for kind in kinds:
            scores = {name: score_of(self.of(name), kind, self.judging(client)) for name in names}
            known = {name: score for name, score in scores.items() if not np.isnan(score)}
            if known:
                whose = f"on the test samples of {client}" if client is not None else WHOSE[kind]
                why = f", the best of {len(known)} methods {whose}" if len(known) > 1 else ""
                return max(known, key=lambda name: known[name]), why
        if client is None and "judged" not in kinds and len(names) > 1:
            names = [name for name in names if "global" in self.of(name)[0].models]
            require(names, "No method in this folder has a common model; name a client with --client.")
        return names[0], f", the first of {len(names)} methods, which were not scored" if len(names) > 1 else ""

    def judging(self, client: str | None) -> list[int]:
        """Return the clients whose test samples decide: this one or, without one, all that do not look mislabelled."""
        if client is not None:
            return [self.runs[0].number(client)]
        wrong = {site["site"] for site in self.sites if site.get("looks") == "mislabelled"}
        every = self.runs[0].about_clients["names"]
        return [i for i, name in enumerate(every) if name not in wrong] or list(range(len(every)))


def score_of(runs: list[Run], kind: str, clients: Sequence[int]) -> float:
    """Return the mean score of these clients over runs by this kind of model; nan where there is none."""
    kind = runs[0].judged if kind == "judged" else kind
    better = 1.0 if metrics.METRICS[runs[0].metric].higher_is_better else -1.0
    each = [better * run.last()[kind][list(clients)] for run in runs if kind in run.last()]
    if not each:
        return float("nan")
    values = np.stack(each)  # (runs, clients)
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")
