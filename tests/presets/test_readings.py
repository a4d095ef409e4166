"""What cells read of runs, on runs made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fedkin.presets.readings import Reaches, Score
from fedkin.reproduce.outcome import validated


def test_a_target_above_a_cell_that_was_not_run_is_no_target() -> None:
    run: Any = SimpleNamespace(rounds_to=lambda target, kind: 5)
    reading = Reaches(0.0, "rounds", "global", over=("slow", "accuracy"))
    assert reading.read(run, None) is None
    assert reading.read(run, 80.0) == 5


def test_a_target_is_above_the_mean_of_its_cell() -> None:
    asked: list[float] = []
    run: Any = SimpleNamespace(rounds_to=lambda target, kind: asked.append(target))
    Reaches(0.5, over=("slow", "accuracy")).read(run, 80.0)
    Reaches(90.0).read(run, None)
    assert asked == [0.805, 0.9]


def test_settings_are_chosen_by_validation_samples_where_test_samples_say_otherwise() -> None:
    def run(test: float, check: float) -> Any:
        return SimpleNamespace(
            scored=[{"accuracy": {"global": {"micro": test}, "global/validation": {"micro": check}}}]
        )

    reading = Score("global", "micro", "validated")
    assert validated(run(test=0.9, check=0.2), reading) == 0.2
    assert validated(run(test=0.1, check=0.3), reading) == 0.3
