"""What the final models say of the test samples is stored, and it is what was scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import Until, same_runs, tiny

import fedkin as fk
from fedkin.engines import scoring
from fedkin.runs import ending

METHODS = {name: tiny(fk.methods.named(name)) for name in ("fedavg", "fedmcsa", "ditto", "apfl", "local")}
METHODS["pfedre"] = fk.methods.named("pfedre")
METHODS["apfl output"] = tiny(fk.methods.apfl(), mix="output")  # its personal model is two networks together


def experiment(federation: Any, method: fk.Method, **more: Any) -> fk.Experiment:
    return fk.Experiment(method, federation, "dnn:4", rounds=4, evaluate_every=2, threads=1, **more)


def accuracies(found: dict[str, np.ndarray], kind: str, n: int) -> np.ndarray:
    right = found[kind].argmax(1) == found["y"]
    return np.array([right[found["client"] == i].mean() if (found["client"] == i).any() else np.nan for i in range(n)])


@pytest.mark.parametrize("held", [300, 2**24])
@pytest.mark.parametrize("engine", ["stacked", "plain"])
@pytest.mark.parametrize("name", METHODS)
def test_predictions_are_those_of_the_models_that_were_scored(
    federate: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, engine: str, held: int
) -> None:
    monkeypatch.setattr(scoring, "HELD", held)
    fed = federate((5, 9, 6, 12, 7), test=(30, 0, 11, 40, 25))
    fk.run(experiment(fed, METHODS[name], engine=engine), tmp_path / "run")
    run = fk.Run(tmp_path / "run")
    found = run.predictions
    assert found is not None
    assert found["rows"].tolist() == fed.test.rows.tolist()
    assert found["y"].tolist() == fed.y[fed.test.rows].tolist()
    assert np.bincount(found["client"], minlength=5).tolist() == [30, 0, 11, 40, 25]
    kinds = {"post", "global"} & set(run.accuracies)
    assert set(found) == {"rows", "client", "y"} | kinds
    for kind in kinds:
        assert found[kind].shape == (106, 3)
        np.testing.assert_array_equal(accuracies(found, kind, 5), run.accuracies[kind])


def test_a_resumed_run_predicts_the_same_and_so_does_one_in_memory(federate: Any, tmp_path: Path) -> None:
    fed = federate((5, 9, 6, 12, 7), test=7)
    for name, method in METHODS.items():
        asked = experiment(fed, method)
        whole = fk.run(asked, tmp_path / name / "whole")
        fk.run(asked, tmp_path / name / "stopped", callbacks=[Until(1)])
        assert not (tmp_path / name / "stopped" / "predictions.safetensors").exists(), "the run is not done"
        fk.run(asked, tmp_path / name / "stopped", resume=True)
        same_runs(tmp_path / name / "whole", tmp_path / name / "stopped")
        stored = fk.Run(tmp_path / name / "whole").predictions
        assert stored is not None
        assert whole.predictions is not None
        assert {k: v.tobytes() for k, v in stored.items()} == {k: v.tobytes() for k, v in whole.predictions.items()}


def test_a_run_that_goes_on_forgets_its_predictions(federate: Any, tmp_path: Path) -> None:
    fed = federate((5, 9, 6), test=7)
    fk.run(experiment(fed, METHODS["fedavg"]), tmp_path)
    longer = fk.Experiment(METHODS["fedavg"], fed, "dnn:4", rounds=6, threads=1)
    fk.run(longer, tmp_path, resume=True, callbacks=[Until(5)])
    assert fk.Run(tmp_path).predictions is None


def test_what_is_not_scored_or_too_large_is_not_kept(
    federate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed = federate((5, 9, 6), test=7)
    found = fk.run(experiment(fed, METHODS["fedavg"], score=("global",)), tmp_path / "one").predictions
    assert found is not None
    assert set(found) == {"rows", "client", "y", "global"}
    monkeypatch.setattr(ending, "PREDICTED", 21 * 3 - 1)
    assert fk.run(experiment(fed, METHODS["fedavg"]), tmp_path / "two").predictions is None
    assert not (tmp_path / "two" / "predictions.safetensors").exists()
    assert fk.Run(tmp_path / "two").predictions is None
    without = federate((5, 9, 6), test=0)
    assert fk.run(experiment(without, METHODS["fedavg"])).predictions is None
