"""FedMCSA's table 1: every method with the best of a grid of settings, chosen by validation samples.

`fedkin tune METHOD --grid` does the same search for one method, through Optuna.
"""

from dataclasses import replace
from itertools import product

from fedkin.data import Data
from fedkin.parts import Method
from fedkin.presets.claims import Claim, above
from fedkin.presets.fedmcsa import ALONE, COLUMNS, experiment, methods
from fedkin.presets.preset import Cell, Preset
from fedkin.presets.readings import Score
from fedkin.runs.experiment import Experiment
from fedkin.runs.settings import with_settings

TABLE_1 = {
    "FedAvg": (78.04, 84.30, 92.39, 96.86, 84.56, 85.80, 38.43, 46.10),
    "FedProx": (77.51, 84.01, 92.42, 96.89, 84.45, 85.68, 38.35, 45.92),
    "Per-FedAvg": (85.15, 88.50, 94.18, 98.15, 98.82, 99.31, 57.79, 81.64),
    "pFedMe(GM)": (76.37, 82.70, 92.08, 96.81, 83.55, 84.30, 36.21, 46.89),
    "pFedMe(PM)": (84.97, 87.01, 97.24, 98.93, 99.20, 99.30, 66.70, 84.05),
    "HeurFedAMP": (84.42, 84.00, 98.33, 98.42, 99.19, 99.13, 72.18, 82.41),
    "FedMCSA": (95.27, 96.26, 98.87, 99.58, 99.33, 99.39, 75.91, 84.40),
}
SPREADS = {
    "FedAvg": (0.21, 0.03, 0.02, 0.01, 0.01, 0.04, 0.25, 0.14),
    "FedProx": (0.22, 0.06, 0.03, 0.02, 0.01, 0.10, 0.41, 0.16),
    "Per-FedAvg": (0.06, 0.07, 0.05, 0.01, 0.04, 0.01, 0.08, 0.09),
    "pFedMe(GM)": (0.18, 0.28, 0.01, 0.03, 0.11, 0.12, 0.11, 0.39),
    "pFedMe(PM)": (0.08, 0.08, 0.01, 0.01, 0.01, 0.01, 0.09, 0.13),
    "HeurFedAMP": (0.05, 0.06, 0.03, 0.01, 0.01, 0.02, 0.03, 0.03),
    "FedMCSA": (0.01, 0.02, 0.01, 0.01, 0.01, 0.01, 0.02, 0.05),
}
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {  # four settings of each method; the paper's are not given
    "FedAvg": {"train.eta": (0.01, 0.02, 0.05, 0.1)},
    "FedProx": {"train.eta": (0.02, 0.1), "train.lam": (0.1, 1.0)},
    "Per-FedAvg": {"train.eta": (0.02, 0.1), "train.alpha": (0.02, 0.1)},
    "pFedMe(GM)": {"train.lam": (10.0, 15.0), "train.eta_p": (0.01, 0.1)},
    "pFedMe(PM)": {"train.lam": (10.0, 15.0), "train.eta_p": (0.01, 0.1)},
    "HeurFedAMP": {"train.eta": (0.02, 0.1), "train.lam": (0.5, 5.0)},
    "FedMCSA": {"train.eta": (0.02, 0.1), "train.lam": (0.5, 5.0)},
    ALONE: {"train.eta": (0.01, 0.02, 0.05, 0.1)},
}
SMALL = ("Syn MLR", "Syn DNN")


def candidates(row: str, column: str, rounds: int) -> tuple[Experiment, ...]:
    """The experiments of a grid, with a tenth of each client's samples for validation."""
    method, _ = methods(column)[row]
    several = [[f"{path}={value}" for value in values] for path, values in GRIDS[row].items()]
    return tuple(validating(with_settings(method, list(chosen)), column, rounds) for chosen in product(*several))


def validating(method: Method, column: str, rounds: int) -> Experiment:
    one = experiment(method, column, rounds)
    assert isinstance(one.data, Data)
    return replace(one, data=replace(one.data, validation=0.1))


def table1(scale: str = "full") -> Preset:
    """Table 1: the best settings of every method."""
    columns, rounds = (COLUMNS, 800) if scale == "full" else (SMALL, 100)
    cells = []
    for i, column in enumerate(COLUMNS):
        if column not in columns:
            continue
        for row in (*TABLE_1, ALONE):
            grid = candidates(row, column, rounds)
            reading = Score(methods(column)[row][1].kind, "micro", "validated")
            value, spread = (TABLE_1[row][i], SPREADS[row][i]) if row in TABLE_1 else (None, None)
            cells.append(Cell(row, column, grid[0], reading, value, spread, candidates=grid))
    others = [row for row in TABLE_1 if row != "FedMCSA"]
    shorter = "100 rounds in place of 800, and Synthetic only. " if scale == "small" else ""
    return Preset(
        name="fedmcsa/table1",
        title="Accuracy (%) of every method with the best settings of a grid",
        cells=tuple(cells),
        claims=(
            Claim("FedMCSA is best in every column.", above("FedMCSA", others, columns)),
            Claim("FedMCSA is better than training alone, tuned too.", above("FedMCSA", ALONE, columns), by="us"),
        ),
        scale=scale,
        note=shorter + "A tenth of each client's samples is for validation; settings and round are chosen by it. Each "
        "method has a grid of four settings. Local, which trains alone, is ours.",
    )
