"""Rounds and uploads until a target is reached."""

from __future__ import annotations

from typing import Any

import pytest

from fedkin import BadInput
from fedkin.runs.targets import Target, checked_targets, outcome, read_target

ARMS = ["local", "fedavg", "fedprox@lam=0.1", "a-1"]


class Played:
    """A run with these accuracies of the common model, and as many uploads a round."""

    metric, name = "accuracy", "played"

    def __init__(self, values: list[float], uploads: int = 10, before: int = 0, metric: str = "accuracy") -> None:
        self.metric = metric
        kinds = {"global": {"micro": None}, "post": {"micro": None}}
        self.lines = [
            {
                "loss": {},
                "accuracy": {kind: {"micro": value} for kind in kinds},
                "metrics": {"log_loss": {kind: {"micro": value} for kind in kinds}},
                "uploads": uploads,
                "replied": uploads // 2,
            }
            for value in values
        ]
        last = {kind: {"micro": {"last10": sum(values[-10:]) / len(values[-10:])}} for kind in kinds}
        sent = {"uploads": uploads * len(values) + before, "client_rounds": uploads // 2 * len(values)}
        self.summary = {"accuracy": last, "metrics": {"log_loss": last}, "cost": sent}


def test_what_a_target_may_be() -> None:
    assert read_target(0.9, ARMS) == Target("0.9", 0.9)
    assert read_target("90%", ARMS) == Target("90%", 0.9)
    assert read_target("fedavg", ARMS) == Target("fedavg", 0.0, "fedavg")
    assert read_target("fedavg+0.01", ARMS) == Target("fedavg+0.01", 0.01, "fedavg")
    assert read_target("fedprox@lam=0.1-.5", ARMS) == Target("fedprox@lam=0.1-.5", -0.5, "fedprox@lam=0.1")
    assert read_target("a-1", ARMS) == Target("a-1", 0.0, "a-1")
    assert read_target("a-1+1", ARMS).over == "a-1"
    assert read_target("post:fedavg+0.01", ARMS) == Target("post:fedavg+0.01", 0.01, "fedavg", "post")
    for wrong in ("fedav+0.1", "", "many", "fedavg+"):
        with pytest.raises(BadInput, match="arm"):
            read_target(wrong, ARMS)
    kinds = {"local": ["post"], "fedavg": ["post", "global"]}
    assert checked_targets([0.9, "0.9", "fedavg"], kinds, "accuracy") == ("0.9", "fedavg")
    with pytest.raises(BadInput, match=r"0\.9 or 90%, not 90"):
        checked_targets(["90"], kinds, "accuracy")
    assert checked_targets(["90"], kinds, "rmse") == ("90",)
    for wrong in ("test:0.9", "global:local"):
        with pytest.raises(BadInput, match="scored by it"):
            checked_targets([wrong], kinds, "accuracy")


def test_rounds_and_uploads_are_counted_run_by_run() -> None:
    """The mean of rounds 3 to 7 is the first above 0.5; what was sent before round 1 counts too."""
    slow, never = Played([0.1, 0.1, 0.4, 0.5, 0.5, 0.6, 0.7, 0.9], before=3), Played([0.1] * 8)
    runs: Any = {"local": [Played([0.9] * 8, 0)] * 2, "fedavg": [slow, never]}
    found = outcome(read_target("0.5", list(runs)), runs)
    assert (found["kind"], found["level"]) == ("global", 0.5)
    assert found["rows"]["fedavg"] == {"rounds": [7, None], "uploads": [73, None], "client_rounds": [35, None]}
    assert found["rows"]["local"]["rounds"] == [5, 5]


def test_a_target_may_follow_an_arm_and_its_last_ten_rounds() -> None:
    runs: Any = {"fedavg": [Played([0.4] * 12), Played([0.6] * 12)], "other": [Played([0.52] * 12)]}
    assert outcome(read_target("fedavg+0.01", list(runs)), runs)["level"] == pytest.approx(0.51)
    rows = outcome(read_target("fedavg+0.01", list(runs)), runs)["rows"]
    assert (rows["other"]["rounds"], rows["fedavg"]["rounds"]) == ([5], [None, 5])


def test_where_lower_is_better_a_target_is_reached_from_above() -> None:
    runs: Any = {"fedavg": [Played([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], metric="log_loss")]}
    found = outcome(read_target("0.65", list(runs)), runs)
    assert found["rows"]["fedavg"]["rounds"] == [6]


def test_every_round_must_be_scored() -> None:
    run = Played([0.5] * 6)
    del run.lines[2]["loss"], run.lines[2]["accuracy"]
    runs: Any = {"fedavg": [run]}
    with pytest.raises(BadInput, match="--evaluate-every 1"):
        outcome(read_target("0.4", list(runs)), runs)
