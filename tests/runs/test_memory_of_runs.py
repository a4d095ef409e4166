"""A run that has ended holds none of the engine's copies of the samples."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import fedkin as fk
from fedkin.engines.simulation import Simulation


@pytest.mark.parametrize("method", ["fedavg", "fedacs"])
def test_an_engine_is_gone_with_its_run_without_a_garbage_collection(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines: list[weakref.ref[Simulation]] = []
    build = Simulation.__init__

    def noted(self: Simulation, *given: Any, **named: Any) -> None:
        build(self, *given, **named)
        engines.append(weakref.ref(self))

    monkeypatch.setattr(Simulation, "__init__", noted)
    gc.disable()
    try:
        fk.run(fk.Experiment(getattr(fk.methods, method)(), fk.Data("digits", clients=5), "mlr", rounds=1))
        assert [engine() for engine in engines] == [None]
    finally:
        gc.enable()
