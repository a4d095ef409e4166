"""The example app, as it lies in examples/flower-app, on nodes in this process."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, RecordDict
from in_process import InProcess

from fedkin.flower import Strategy

APP = Path(__file__).resolve().parents[2] / "examples" / "flower-app"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, ...]]:
    monkeypatch.syspath_prepend(str(APP))
    names = ("client_app", "server_app")
    for name in names:  # those of another app may have been imported
        sys.modules.pop(name, None)
    yield tuple(importlib.import_module(name) for name in names)
    for name in names:  # and other apps have modules of the same names
        sys.modules.pop(name, None)


def test_it_learns(modules: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    client, server = modules
    grid = InProcess()
    for number in range(3):
        grid.add(client.app, **{"partition-id": number, "num-partitions": 3})
    results = []
    start = Strategy.start
    monkeypatch.setattr(Strategy, "start", lambda *given, **more: results.append(start(*given, **more)))
    config = tomllib.loads((APP / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    server.app(grid=grid, context=Context(1, 1, {}, RecordDict(), config))
    (result,) = results
    scores = [record["accuracy"] for record in result.evaluate_metrics_clientapp.values()]
    assert len(scores) == config["num-server-rounds"]
    assert scores[-1] > max(0.85, scores[0])


def test_it_is_short() -> None:
    lines = [line for path in APP.glob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) < 60
