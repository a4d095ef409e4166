"""What a run chooses by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import fedkin as fk
from fedkin.data.loading import load
from fedkin.engines import Stacked
from fedkin.runs.setup import default_threads, set_up


def test_a_run_takes_no_more_threads_than_torch_was_given() -> None:
    assert torch.get_num_threads() == 1
    assert default_threads() == 1
    torch.set_num_threads(3)
    try:
        assert default_threads() == 3
    finally:
        torch.set_num_threads(1)


def test_a_run_goes_on_with_the_chunk_that_it_was_begun_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured may be another number tomorrow."""
    experiment = fk.Experiment(fk.methods.fedavg(), fk.Data("digits", clients=5), "mlr", rounds=2)
    heard: list[str] = []
    monkeypatch.setattr(Stacked, "default_chunk", staticmethod(lambda network: 2))
    fk.run(experiment, tmp_path / "run")
    monkeypatch.setattr(Stacked, "default_chunk", staticmethod(lambda network: 3))
    fk.run(replace(experiment, rounds=4), tmp_path / "run", resume=True, warn=heard.append)
    assert json.loads((tmp_path / "run" / "experiment.json").read_text())["resolved"]["chunk"] == 2
    assert not [sentence for sentence in heard if "chunk" in sentence]


def test_how_often_a_run_is_scored_does_not_depend_on_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    data = fk.Data("digits", clients=20)
    experiment = fk.Experiment(fk.methods.fedavg(count=2), data, "dnn:30", rounds=500)
    found = set()
    for chunk in (1, 200):
        monkeypatch.setattr(Stacked, "default_chunk", staticmethod(lambda network, chunk=chunk: chunk))
        setup = set_up(experiment, load(data))
        found.add(setup.evaluate_every)
        assert setup.chunk == chunk
    assert len(found) == 1
