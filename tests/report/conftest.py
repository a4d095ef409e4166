"""Runs with rounds that a test chooses, recorded by the framework itself; and what the page shows of a study."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.data.federation import Federation, Index
from fedkin.engines import Score
from fedkin.keep import Everyone
from fedkin.log import Log, Traffic
from fedkin.messages import Reply, Slot
from fedkin.parts import Keep, Method, Select
from fedkin.report import scripts
from fedkin.report.page import SECTIONS, merged
from fedkin.report.study import Study, studied
from fedkin.runs import session
from fedkin.select import Uniform

go = pytest.importorskip("plotly.graph_objects")

ODD = "<b>&\"ward' 7</b></script>"
ByRound = Mapping[int, Any]  # round -> (n,)


@dataclass(frozen=True)
class Scored(Uniform):
    """A selection whose scores, where its slot has any, are shown in pictures."""

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return slot


@dataclass(frozen=True)
class Judging(Everyone):
    """A filter whose divergences, where its slot has any, are shown in pictures."""

    @property
    def needs(self) -> fk.Needs:
        return fk.Needs(replies=True)

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return slot


def federation(names: Sequence[str], irrelevant: Sequence[bool] | None) -> Federation:
    """Clients with a training sample and a test sample each."""
    n = len(names)
    train, test = (Index(torch.arange(k * n, (k + 1) * n), torch.arange(n + 1)) for k in (0, 1))
    truth = None if irrelevant is None else torch.tensor(np.asarray(irrelevant), dtype=torch.bool)
    x, y = torch.ones(2 * n, 1), torch.arange(2 * n) % 2
    return Federation("made up", x, y, 2, train, test, clients=tuple(names), irrelevant=truth)


def rounds_of(ids: Sequence[Any], kept: Sequence[Any], score: ByRound, divergence: ByRound) -> Callable[..., Any]:
    """A loop over these rounds, in the place of the loop that trains."""

    def slot(name: str, values: ByRound, r: int) -> Slot:
        return {name: torch.as_tensor(values[r])} if r in values else {}

    def loop(method: Method, task: Any, engine: Any, state: Any, watcher: Any) -> Any:
        for r, (who, far) in enumerate(zip(ids, kept, strict=True), 1):
            selected = torch.tensor(np.asarray(who), dtype=torch.int64)
            weights = torch.tensor(np.asarray(far), dtype=torch.float32)
            reply, m = Reply(selected[~weights.isnan()], {}, {}), len(who)
            replied = len(reply.ids)
            traffic = Traffic(replied, m, 40 * replied, 40 * m)
            state = replace(state, round=r, select=slot("score", score, r), keep=slot("divergence", divergence, r))
            if not watcher.played(state, Log(r, selected, weights, traffic=traffic, reply=reply)):
                break
        return state

    return loop


def scores_of(rounds: int, post: np.ndarray | None) -> Callable[..., dict[str, Score]]:
    """Scores in the place of those of the models: a common model that gets better, and `post`."""

    def scored(method: Method, task: Any, engine: Any, state: Any, *_: Any) -> dict[str, Score]:
        count = torch.full((task.n,), 10_000)
        found = {"global": torch.full((task.n,), state.round / rounds)} | ({} if post is None else {"post": post})
        accuracy = {kind: torch.as_tensor(v, dtype=torch.float64) for kind, v in found.items()}
        return {kind: Score((v * count).round().long(), v, count, {"accuracy": v}) for kind, v in accuracy.items()}

    return scored


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`recorded(folder, n, ids)`: a run in which these clients were selected, a list of ids a round."""

    def run(
        folder: Path,
        n: int,
        ids: Sequence[Any],
        *,
        kept: Sequence[Any] | None = None,  # how far each counted, nan without a reply; 1 where not given
        irrelevant: Sequence[bool] | None = None,
        score: ByRound | None = None,  # what the selection thinks of clients
        divergence: ByRound | None = None,  # what the filter thinks of clients
        name: str = "fedavg",
        names: Sequence[str] | None = None,
        post: Any = None,  # clients' accuracies in every scored round
        seed: int = 0,
        every: int = 1,
        asked: int | None = None,  # rounds, of which only those of `ids` are played
    ) -> Path:
        select: Select = Scored(count=n)
        keep: Keep = Everyone() if kept is None and divergence is None else Judging()
        method = replace(fk.methods.fedavg(), name=name, select=select, keep=keep)
        if name == "local":
            method = fk.methods.local()
        silent = np.nan if name == "local" else 1.0
        far = kept if kept is not None else [np.full(len(who), silent) for who in ids]
        fed = federation(names or [str(i) for i in range(n)], irrelevant)
        experiment = fk.Experiment(method, fed, model="mlr", rounds=asked or len(ids), seed=seed, evaluate_every=every)
        with monkeypatch.context() as patch:
            patch.setattr(session, "loop", rounds_of(ids, far, score or {}, divergence or {}))
            patch.setattr(session, "score_models", scores_of(len(ids), post))
            fk.run(experiment, folder)
        return folder

    return run


@dataclass(frozen=True)
class Shown:
    """The sections of a page."""

    html: str
    figures: dict[str, Any]
    stores: dict[str, dict[str, Any]]

    @property
    def words(self) -> str:
        """What a reader sees before any script runs."""
        return plain(self.html)

    @property
    def rounds(self) -> dict[str, Any]:
        return self.stores["rounds"]

    @property
    def kin(self) -> dict[str, Any]:
        return self.stores["kin"]


def plain(html: str) -> str:
    return unescape(re.sub("<[^>]*>", " ", html)).replace("\u00a0", " ")


@pytest.fixture
def shown() -> Callable[[Path | Study], Shown]:
    """The sections of the page of a folder or a study; plotly can draw their figures."""

    def show(source: Path | Study) -> Shown:
        study = studied(source) if isinstance(source, Path) else source
        sections = [section for section in (make(study) for make in SECTIONS) if section]
        texts = merged(sections)
        stores = {name: {id: json.loads(text) for id, text in found.items()} for name, found in texts.items()}
        figures = stores.pop("figures")
        for figure in figures.values():
            go.Figure(figure)  # raises on an unknown property
        return Shown("".join(section.html for section in sections), figures, stores)

    return show


@pytest.fixture(scope="session")
def script() -> Callable[..., Any]:
    """`script("file.js", "function", *arguments)`: what a function of the page's scripts returns."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")

    def call(asset: str, function: str, *arguments: Any) -> Any:
        code = f"{scripts.asset(asset)}\nconsole.log(JSON.stringify({function}(...{json.dumps(arguments)})))"
        done = subprocess.run([node, "-"], input=code, capture_output=True, text=True, check=True, timeout=60)
        return json.loads(done.stdout)

    return call
