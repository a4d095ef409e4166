"""How often a run is scored where nobody says it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from small import forget_checksums

import fedkin as fk
from fedkin.runs import files
from fedkin.runs.setup import set_up


def dear(federate, rounds: int) -> fk.Experiment:
    """An experiment whose scoring costs much: 6,000 samples are looked at, and one client trains."""
    fed = federate((4, 5, 6), test=2000)
    return fk.Experiment(fk.methods.fedavg(count=1, steps=1), fed, "dnn:100", rounds, threads=1)


def scored(run: fk.Run) -> list[int]:
    return [line["round"] for line in run.lines if "accuracy" in line]


@pytest.mark.parametrize("rounds", [1, 2, 11, 12, 13, 23, 24, 30, 100])
def test_a_run_has_twelve_points_at_least_evenly_spread_and_the_last_round(federate, rounds: int) -> None:
    points = scored(fk.run(dear(federate, rounds)))
    assert len(points) >= min(12, rounds)
    assert points[-1] == rounds
    gaps = {after - before for before, after in pairwise([0, *points[:-1]])}
    assert len(gaps) <= 1, "all points but the last are equally far apart"
    assert points[-1] - ([0, *points][-2]) <= max(gaps, default=1)


def test_what_costs_much_to_score_is_scored_no_more_often_than_that(federate) -> None:
    def every(rounds: int) -> int:
        experiment = dear(federate, rounds)
        return set_up(experiment, experiment.data).evaluate_every

    eighth = every(10_000_000)
    assert 50 < eighth < 500, "in a long run an eighth of the time decides"
    assert [every(rounds) for rounds in (24, 30, 600, 100_000)] == [2, 2, 50, eighth]


def test_what_costs_little_to_score_is_scored_more_often(federate) -> None:
    fed = federate((40, 50, 60), test=1)
    experiment = fk.Experiment(fk.methods.local(), fed, "mlr", rounds=100_000, threads=1)
    assert set_up(experiment, fed).evaluate_every == 1, "far below an eighth of the time"


def test_a_run_of_an_older_version_goes_on_at_its_own_cadence(federate, tmp_path: Path) -> None:
    asked = dear(federate, 30)
    fk.run(dear(federate, 15), tmp_path)
    forget_checksums(tmp_path)
    # the older rule scored such a run once, in its last round
    stored = files.read_json(tmp_path / "experiment.json")
    assert stored["evaluate_every"] is None
    assert stored["resolved"]["evaluate_every"] == 1
    stored["resolved"]["evaluate_every"] = 15
    files.write_json(tmp_path / "experiment.json", stored)
    gone_on = fk.run(asked, tmp_path, resume=True, warn=lambda _: None)
    assert scored(gone_on) == [*range(1, 16), 30]
    assert gone_on.summary["evaluate_every"] == 15
    assert files.read_json(tmp_path / "experiment.json")["resolved"]["evaluate_every"] == 15
