"""PFedRe's presets: who is irrelevant, who is compared, and with what each method was told."""

from __future__ import annotations

import pytest

from fedkin import presets
from fedkin.keep import Alignment, Oracle, Relevance, UpdateDistance
from fedkin.presets import Preset
from fedkin.presets.preset import Cell
from fedkin.select import Active, Dismiss, Shapley, Uniform

FIGURES = tuple(f"pfedre/figure{n}" for n in (1, 3, 4, 5, 6))


def at(preset: Preset, row: str, column: str) -> Cell:
    return next(cell for cell in preset.cells if (cell.row, cell.column) == (row, column))


@pytest.mark.parametrize("scale", presets.SCALES)
def test_irrelevant_clients_are_those_of_each_figure(scale: str) -> None:
    wanted = {
        "figure1": {"odd_even:6,4"},
        "figure3": {"flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4"},
        "figure5": {"flip:0.1"},
        "figure6": {"flip:0.1,0.2"},
    }
    for name in FIGURES:
        preset = presets.named(name, scale)
        assert (preset.seeds, preset.vary) == (3, ("seed", "data"))
        assert not any(cell.published for cell in preset.cells), "the paper prints no numbers"
        found = {cell.experiment.data.irrelevant for cell in preset.cells}
        if preset.place == "figure4":
            assert all(one.startswith("ood:0.1,") for one in found)
        else:
            assert found == wanted[preset.place]


def test_all_rows_of_a_column_have_the_same_data_model_and_training() -> None:
    for name in FIGURES:
        for scale in presets.SCALES:
            preset = presets.named(name, scale)
            for column in preset.columns:
                runs = [cell.experiment for cell in preset.cells if cell.column == column]
                trains = {(r.method.train.eta, r.method.train.epochs, r.method.train.batch) for r in runs}
                assert len({(repr(run.data), run.model, run.rounds) for run in runs}) == len(trains) == 1


def test_who_takes_part_and_whose_updates_count() -> None:
    preset = presets.named("pfedre/figure4")
    methods = {row: at(preset, row, "MNIST").experiment.method for row in preset.rows}
    half = {"AFL": Active(fraction=0.5), "S-FedAvg": Shapley(fraction=0.5), "FedAvg, half": Uniform(fraction=0.5)}
    assert {row: m.select for row, m in methods.items()} == dict.fromkeys(methods, Uniform(fraction=1.0)) | half
    keep = methods["PFedRe"].keep
    assert isinstance(keep, Relevance)
    assert (keep.samples, keep.iterations, keep.rate) == (1, 50, 0.1)
    assert isinstance(methods["Oracle"].keep, Oracle)
    assert all(cell.experiment.data.server for cell in preset.cells), "or S-FedAvg has no samples to value clients by"


def test_controls_of_figure_3_differ_by_their_score_only() -> None:
    preset = presets.named("pfedre/figure3")
    keeps = {row: type(at(preset, row, "FMNIST 30 %: auc").experiment.method.keep) for row in preset.rows}
    assert keeps == {"PFedRe": Relevance, "L1 of updates": UpdateDistance, "Alignment": Alignment}
    assert len({repr(at(preset, row, "MNIST 10 %: auc").experiment.method.train) for row in preset.rows}) == 1


def test_figure_6_drops_clients_half_way() -> None:
    for scale, after in (("small", 20), ("full", 10_000)):
        preset = presets.named("pfedre/figure6", scale)
        for row, who in (("drop irrelevant", "irrelevant"), ("drop relevant", "relevant")):
            run = at(preset, row, preset.columns[0]).experiment
            assert run.method.select == Dismiss(after, who, Uniform(fraction=1.0))
            assert run.rounds == 2 * after
        assert at(preset, "keep all", preset.columns[0]).experiment.method.select == Uniform(fraction=1.0)


def test_full_scale_has_the_datasets_and_models_of_the_paper() -> None:
    preset = presets.named("pfedre/figure4", "full")
    runs = {column: at(preset, "PFedRe", column).experiment for column in preset.columns}
    found = {column: (run.data.clients, run.model, run.rounds) for column, run in runs.items()}
    assert found == {
        "EMNIST": (500, "resnet50", 1000),
        "CIFAR100": (100, "vgg11", 1000),
        "Shakespeare": (132, "lstm", 1000),
        "Sentiment140": (1503, "lstm", 1000),
    }
