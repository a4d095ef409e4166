"""A tiny preset on digits: two rows of which one learns slowly, in two columns."""

from __future__ import annotations

from dataclasses import replace

import fedkin as fk
from fedkin.presets.claims import Claim, above, below
from fedkin.presets.preset import Cell, Curve, Preset
from fedkin.presets.readings import Reaches, Score, Steadiness

LAST = Score("global", "micro", "last10")


def experiment(name: str, eta: float, clients: int = 6, validation: float = 0.0) -> fk.Experiment:
    method = replace(fk.methods.fedavg(count=3, eta=eta), name=name)
    data = fk.Data("digits", clients=clients, validation=validation)
    return fk.Experiment(method, data, rounds=12, evaluate_every=1, score=("global",), threads=1)


def tiny(scale: str = "small") -> Preset:
    fast, slow = experiment("fast", 0.05), experiment("slow", 0.002)
    other = experiment("fast", 0.05, clients=5)
    grid = tuple(experiment(f"grid{eta}", eta, validation=0.2) for eta in (0.0001, 0.05))
    reached = Reaches(0.0, "rounds", "global", over=("slow", "accuracy"))
    return Preset(
        name="tiny/table1",
        title="A tiny table",
        cells=(
            Cell("fast", "accuracy", fast, LAST, 91.5, 0.25),
            Cell("slow", "accuracy", slow, LAST),
            Cell("fast", "lead", fast, LAST, 10.0, less=slow),
            Cell("fast", "rounds", fast, reached, 7),
            Cell("slow", "rounds", slow, reached),
            Cell("slow", "cost", slow, replace(reached, unit="client_rounds")),
            Cell("slow", "deviation", slow, Steadiness("global")),
            Cell("slow", "never", slow, Reaches(99.9, "rounds", "global")),
            Cell("fast", "five clients", other, LAST),
            Cell("tuned", "accuracy", grid[0], Score("global", "micro", "validated"), candidates=grid),
        ),
        claims=(
            Claim("Fast is above slow.", above("fast", "slow", ["accuracy"])),
            Claim("Slow takes fewer rounds.", below("slow", "fast", ["rounds"]), missing="inf"),
        ),
        curves=(Curve("fast", "accuracy", fast, LAST),),
        scale=scale,
        seeds=2,
        vary=("seed", "data"),
        note="Nothing to be learned here.",
    )
