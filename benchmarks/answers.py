"""How honest the answers are: false joins and coverage of the intervals, and whether the right sites look mislabelled.

python benchmarks/answers.py [sites a row] [tables of hospitals]
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import fedkin as fk
from fedkin.answers.bootstrap import gains
from fedkin.answers.held_out import held_out_at, with_predictions
from fedkin.runs.run import Repetition

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.answers.simulated import against, site, true_gain
from tests.hospitals import MISLABELLED, hospitals


def intervals(sites: int) -> None:
    """Simulated sites whose gains are known. A family is a site with all its methods."""
    for lift in (0.0, 0.6):
        truth = true_gain(lift)
        for splits, methods, rows in ((s, m, r) for s in (1, 3, 10) for m in (1, 5) for r in (60, 400)):
            rng, wins, best, every = np.random.default_rng(0), 0, 0, 0
            for i in range(sites):
                one = site(rng, rows, splits, methods, lift)
                found = gains(one, against(methods), "accuracy", np.random.default_rng(i), 500).values()
                chosen = max(found, key=lambda gain: gain.gain)
                wins += any(gain.low > 0 for gain in found)
                best += chosen.low <= truth <= chosen.high
                every += all(gain.low <= truth <= gain.high for gain in found)
            print(
                f"true gain {truth:.3f}, {splits:2} splits, {methods} methods, {rows} rows: said to gain "
                f"{wins / sites:.3f}, the best covered {best / sites:.3f}, all covered {every / sites:.3f}",
                flush=True,
            )


def same_training(tables: int) -> None:
    """Local with other seeds as 'methods': nobody should join."""
    wrong = total = 0
    for seed in range(tables):
        with TemporaryDirectory() as folder:
            data = table(folder, seed, ())
            runs = fk.compare(["local"], data, "dnn:16", rounds=8, seeds=4, splits=5, warn=lambda _: None).runs["local"]
            arms = {f"seed {s}": {Repetition(0, k.split): r for k, r in runs.items() if k.seed == s} for s in range(4)}
            stored = with_predictions(arms)
            assert stored is not None
            others = {name: "seed 0" for name in arms if name != "seed 0"}
            for name in next(iter(runs.values())).about_clients["names"]:
                found = gains(held_out_at(name, stored), others, "accuracy", np.random.default_rng(0), 500)
                wrong, total = wrong + any(gain.low > 0 for gain in found.values()), total + 1
    print(f"Local with three other seeds: {wrong} of {total} sites are told to join one")


def mislabelled(tables: int) -> None:
    """Twelve hospitals, two of them with exchanged outcomes; the same with none; the four real ones."""
    kinds = {"two of twelve": MISLABELLED, "none of twelve": ()}
    for word, wrong in kinds.items():
        hit = alarms = 0
        for seed in range(tables):
            with TemporaryDirectory() as folder:
                named = suspects(table(folder, seed, wrong))
            hit, alarms = hit + len(named & set(wrong)), alarms + len(named - set(wrong))
        print(f"{word}: found {hit} of {len(wrong) * tables}, false alarms {alarms} of {(12 - len(wrong)) * tables}")
    real = sum(len(suspects(fk.Data("heart", split=split))) for split in range(tables))
    print(f"heart: false alarms {real} of {4 * tables}")
    skewed = [fk.Data("digits", partition="dirichlet:0.5", clients=12, seed=seed) for seed in range(tables)]
    print(f"digits, dirichlet 0.5: false alarms {sum(len(suspects(one)) for one in skewed)} of {12 * tables}")


def table(folder: str, seed: int, wrong: tuple[str, ...]) -> fk.Data:
    path = Path(folder) / "table.csv"
    hospitals(seed, wrong=wrong).to_csv(path, index=False)
    return fk.Data(str(path), client="hospital", target="outcome")


def suspects(data: fk.Data) -> set[str]:
    sites = fk.compare(["fedavg"], data, rounds=15, evaluate_every=15, warn=lambda _: None).sites()
    return set(sites.index[sites["looks"] == "mislabelled"])


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]] or [300, 12]
    mislabelled(numbers[-1])
    same_training(max(1, numbers[-1] // 4))
    intervals(numbers[0])
