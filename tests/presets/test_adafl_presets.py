"""AdaFL's presets: their rows are what the paper says, and their numbers are those that it prints."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fedkin as fk
from fedkin import presets
from fedkin.presets import Preset
from fedkin.presets.adafl_rows import TABLE_2, TABLE_4
from fedkin.presets.preset import Cell
from fedkin.select.schedule import Constant, cost, scheduled

TABLES = ("figure3", "table1", "table2", "table3", "table4")
MISPRINTED = {  # costs that do not follow from their rounds (A-D5)
    ("AdaFL+FedProx", "MNIST"): 21050,
    ("AdaFL+SCAFFOLD", "CIFAR"): 14880,
    ("Attn-0.5", "CIFAR 73 %"): 31750,
}


def at(preset: Preset, row: str, column: str) -> Cell:
    return next(cell for cell in preset.cells if (cell.row, cell.column) == (row, column))


@pytest.mark.parametrize("name", ["adafl/table2", "adafl/table4"])
def test_published_costs_are_those_of_the_schedules(name: str) -> None:
    """Uploads follow from rounds and schedule, so that a wrong number, schedule or T would show."""
    preset = presets.named(name, "full")
    recomputed = []
    for row in preset.rows:
        for column in [c.removesuffix(", rounds") for c in preset.columns if c.endswith(", rounds")]:
            rounds, uploads = (at(preset, row, f"{column}, {word}") for word in ("rounds", "cost"))
            if rounds.published is None:
                continue
            select, ran = rounds.experiment.method.select, rounds.experiment.rounds
            schedule = scheduled(getattr(select, "fraction"))  # noqa: B009 - a selection need not have one
            found = cost(schedule, 100, ran, int(rounds.published))
            assert found == MISPRINTED.get((row, column), uploads.published), (row, column)
            assert ran >= rounds.published, "or the target cannot be reached"
            if not isinstance(schedule, Constant) and (row, column) not in MISPRINTED:
                recomputed.append(found)
    wanted = {"adafl/table2": [6690, 18440, 15320, 20040, 44250, 26120], "adafl/table4": [16840, 22600, 15920, 19760]}
    assert recomputed == wanted[name]
    assert len(TABLE_2) + len(TABLE_4) == 15


def test_numbers_are_those_of_the_paper() -> None:
    spots = {
        ("table1", "AdaFL", "MNIST avg"): 91.13,
        ("table1", "Attn-0.5", "CIFAR avg"): 74.42,
        ("table1", "FedAvg-0.5", "CIFAR best"): 75.31,
        ("table1", "Dyn-FedAvg less FedAvg-0.1", "MNIST avg"): 1.65,
        ("table2", "FedAvg-0.1", "MNIST 91 %, rounds"): 2528,
        ("table2", "Attn-0.5", "CIFAR 73 %, cost"): 31570,
        ("table3", "AdaFL+SCAFFOLD", "CIFAR avg"): 74.98,
        ("table3", "FedMix-0.1", "MNIST best"): 90.61,
        ("table4", "FedProx-0.5", "CIFAR, rounds"): 658,
        ("table4", "SCAFFOLD-0.5", "MNIST, cost"): 51700,
    }
    for (place, row, column), number in spots.items():
        assert at(presets.named(f"adafl/{place}", "full"), row, column).published == number


@pytest.mark.parametrize("scale", presets.SCALES)
def test_rows_are_as_the_paper_describes_them(scale: str) -> None:
    small = scale == "small"
    seen = set()
    for place in TABLES:
        preset = presets.named(f"adafl/{place}", scale)
        assert (preset.seeds, preset.vary) == (3, ("seed", "data"))
        for cell in preset.cells:
            run, train = cell.experiment, cell.experiment.method.train
            mnist = run.data.name == "mnist"
            data = fk.Data("mnist", partition="shards:2", clients=100, holdout="official")
            data = data if mnist else replace(data, name="cifar10", partition="iid")
            assert run.data == (replace(data, samples=100) if small else data)
            assert run.model == (("mlp:64", "mlp:200,200") if mnist else ("lenet", "cnn:fedmix"))[not small]
            assert (run.evaluate_every, run.score) == (1, ("test",))
            assert (train.epochs, train.steps, train.batch, train.eta, train.momentum) == (5, None, 10, 0.01, 0.5)
            assert train.rate_decay == (1.0 if mnist else 0.99)
            seen.add(cell.row)
            if small:
                assert run.rounds == (150 if mnist else 30)
    assert {f"AdaFL+{base}" for base in ("FedProx", "FedMix", "SCAFFOLD")} < seen
    alphas = {
        row: at(presets.named("adafl/table1", scale), row, "MNIST avg").experiment.method.select for row in TABLE_2
    }
    assert {row: getattr(select, "alpha", None) for row, select in alphas.items()} == (
        {"AdaFL": 0.9, "Attn-0.1": 0.9, "Attn-0.5": 0.9, "Dyn-FedAvg": 1.0, "FedAvg-0.1": None, "FedAvg-0.5": None}
    )


def test_rounds_at_full_scale() -> None:
    first, second = (presets.named(f"adafl/table{n}", "full") for n in (1, 2))
    rounds = {row: at(first, row, "MNIST avg").experiment.rounds for row in TABLE_2}
    assert rounds == dict.fromkeys(TABLE_2, 1000) | {"Dyn-FedAvg": 1500}
    assert at(second, "AdaFL", "MNIST 91 %, cost").experiment.rounds == 1000
    assert at(second, "FedAvg-0.1", "MNIST 91 %, cost").experiment.rounds == 3000
    assert at(second, "FedAvg-0.1", "MNIST avg").experiment.rounds == 1000, "own targets are those of T rounds"


def test_the_first_300_rounds_of_figure_3_have_the_fractions_of_500() -> None:
    preset = presets.named("adafl/figure3", "full")
    alone = preset.with_columns([column for column in preset.columns if column.startswith("first 300 rounds")])
    assert alone.rows == ["AdaFL", "FedAvg-0.1"]
    assert {one.rounds for _, one in alone.experiments()} == {300}
    part, whole = (at(preset, "AdaFL", column).experiment for column in ("first 300 rounds: avg", "avg"))
    assert whole.rounds == 500
    ours, theirs = (scheduled(one.method.select.fraction) for one in (part, whole))  # type: ignore[attr-defined]
    assert [ours.at(t, 300) for t in range(1, 301)] == pytest.approx([theirs.at(t, 500) for t in range(1, 301)])


def test_small_tables_share_their_runs() -> None:
    """Tables 2 and 4 and figure 3 need no run that tables 1 and 3 have not."""
    runs = {name: [one for _, one in presets.named(f"adafl/{name}").experiments()] for name in TABLES}
    assert all(run in runs["table1"] for name in ("table2", "figure3") for run in runs[name])
    assert all(run in runs["table3"] for run in runs["table4"])
    assert (len(runs["table1"]), len(runs["table3"])) == (36, 27)
