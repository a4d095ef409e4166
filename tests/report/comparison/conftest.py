"""A small comparison that was really run, and its page as a reader finds it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.report import page
from fedkin.report.study import Study, studied

ODD = "<b>&\"ward' 7</b></script>"


@pytest.fixture(scope="session")
def clinics() -> fk.Federation:
    """Eight clients that share one task, with 12 to 68 samples; the first has a name that must be escaped."""
    gen = np.random.default_rng(0)
    weights = gen.normal(size=(5, 3))
    clients = {}
    for i in range(8):
        x = gen.normal(size=(12 + 8 * i, 5)).astype(np.float32)
        clients[ODD if i == 0 else f"clinic {i}"] = (x, (x @ weights).argmax(1))
    return fk.from_clients(clients, name="clinics")


@pytest.fixture(scope="session")
def compared(clinics: fk.Federation) -> Callable[..., dict[str, Any]]:
    """`compared(folder, methods, seeds)`: a comparison as the command line makes it, and its summary; with `stop` that
    method's seed ends after round 2, and all after it are not begun."""

    def run(
        folder: Path, methods: list[fk.Method], seeds: list[int], stop: tuple[str, int] | None = None
    ) -> dict[str, Any]:
        experiment = fk.Experiment(methods[0], clinics, rounds=4, evaluate_every=2)
        found = small.compared(folder, experiment, methods, seeds, stop)
        return {} if found is None else found.summary

    return run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, compared: Any) -> tuple[Path, dict[str, Any]]:
    """Local, FedAvg of four a round and FedProx under a name that must be escaped; two seeds. And their summary."""
    folder = tmp_path_factory.mktemp("runs") / "trio"
    fedavg, fedprox = fk.methods.fedavg(count=4), fk.methods.fedprox(count=4)
    return folder, compared(folder, with_local([fedavg, replace(fedprox, name="<i>prox")]), [0, 1])


@pytest.fixture
def trio(made: tuple[Path, dict[str, Any]]) -> Study:
    """A study of it that a test may change."""
    return studied(made[0])


class Page(HTMLParser):
    """The tags of a page with their attributes, its scripts by id, and the text outside of scripts and styles."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.inside: list[str] = []
        self.scripts: dict[str, str] = {}
        self.html = text
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style", "h1"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside[-1:] == ["script"]:
            name = self.tags[-1][1].get("id") or f"script {len(self.tags)}"
            self.scripts[name] = self.scripts.get(name, "") + data
        elif self.inside[-1:] != ["style"]:
            self.words.append(data)
            if self.inside[-1:] == ["h1"]:
                self.scripts["h1"] = data

    @property
    def text(self) -> str:
        return " ".join(self.words).replace("\u00a0", " ")

    @property
    def headline(self) -> str:
        return self.scripts["h1"]

    @property
    def figures(self) -> dict[str, Any]:
        return dict(json.loads(self.scripts["figures"]))


@pytest.fixture
def read() -> Callable[[Path | Study], Page]:
    """The page of a folder or a study."""
    return lambda source: Page(page.page(studied(source) if isinstance(source, Path) else source))
