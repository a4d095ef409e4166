"""Tests that need Flower are skipped where it is not installed; they share the sites of tests/sites."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "sites"))
collect_ignore_glob = [] if find_spec("flwr") else ["test_[gs]*.py"]  # test_installed.py says why

from dataclasses import replace  # noqa: E402

import pytest  # noqa: E402
from federation import SIZES, Party  # noqa: E402


@pytest.fixture
def party(federate: Any, tmp_path: Path) -> Party:
    federation = replace(federate(SIZES, test=(5, 2, 6, 3), shape=(6,)), irrelevant=None)
    return Party(tmp_path / "sites", federation)


@pytest.fixture(autouse=True)
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is the ServerApp of a run; Flower sets these in the processes that it starts."""
    if find_spec("flwr") is None:
        return
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
