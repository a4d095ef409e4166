"""The presets of four hospitals: FLamby's protocol and numbers, and gains over staying alone on random splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedkin as fk
from fedkin import presets
from fedkin.data import load
from fedkin.methods import METHODS
from fedkin.presets import heart


@pytest.mark.parametrize("name", ["heart/flamby", "heart/ranking", "heart/splits"])
def test_every_run_has_flambys_budget(name: str) -> None:
    preset = presets.named(name, "full")
    assert preset.columns == list(heart.BOTH if preset.place == "ranking" else heart.COLUMNS)
    for _, one in preset.experiments():
        train = one.method.train
        assert (train.steps, train.epochs, train.batch, one.rounds, one.model) == (100, None, 4, 15, "mlr")
        assert (one.data.name, one.data.test) == ("heart_flamby", 0.34)
        assert one.method.select.count == 4 or one.method.select.fraction == 1.0
    assert (preset.paper, preset.place) == tuple(name.split("/"))


def test_columns_are_the_hospitals_in_their_order() -> None:
    names = load(fk.Data("heart_flamby")).clients
    for column, name in zip(heart.HOSPITALS, names, strict=True):
        assert name.startswith(column.lower().replace(".", "")[:5])
    cells = {(cell.row, cell.column): cell for cell in heart.flamby().cells}
    for client, column in enumerate(heart.HOSPITALS):
        assert (cells["FedAvg", column].reading.client, cells["FedAvg", column].reading.kind) == (client, "global")
        assert cells[heart.RECEIVED, column].reading.kind == "recv"
        assert cells[heart.TUNED, column].reading.kind == "post"


def test_published_numbers_stand_where_the_rate_is_flambys() -> None:
    preset = heart.flamby()
    assert preset.seeds == 5
    printed = {cell.row: cell.experiment.method.train.eta for cell in preset.cells if cell.published is not None}
    pooled = {"Pooled": 0.01} if "pooled" in METHODS else {}
    slow = {f"{row}{heart.SLOW}": 0.0005 for row in ("FedAvg", "FedProx", "SCAFFOLD")}
    assert printed == {"Local": 0.01} | slow | pooled
    for row, (numbers, _) in heart.PUBLISHED.items():
        assert np.mean(numbers[:4]) == pytest.approx(numbers[4], abs=0.01), row


def test_gains_are_over_local_on_the_same_split() -> None:
    full, small = heart.splits("full"), heart.splits("small")
    assert (full.seeds, small.seeds, full.vary) == (30, 10, ("split",))
    alone = next(cell.experiment for cell in full.cells if cell.row == "Local")
    for cell in full.cells:
        assert cell.less == alone
        assert cell.less_reading == heart.reading(cell.column, "post")
        assert cell.published is None
    splits = [one.data.split for _, one in full.experiments() if one.method.name == "local"]
    assert splits == list(range(30))
    shared = {repr(one.described()) for _, one in small.experiments()}
    assert shared < {repr(one.described()) for _, one in full.experiments()}


def test_ranking_reads_the_same_runs_by_auc() -> None:
    ranking, splits = heart.ranking(), heart.splits()
    runs = [{repr(one.described()) for _, one in preset.experiments()} for preset in (ranking, splits)]
    assert runs[0] == runs[1]
    assert {(cell.reading.metric, cell.less_reading.metric) for cell in ranking.cells} == {("auc", "auc")}
    assert [cell.reading.client for cell in ranking.cells[:3]] == [0, 1, 3]


def test_flambys_rate_is_half_of_its_own_with_two_outputs() -> None:
    """One output with a sigmoid at 0.001 and two with a softmax at 0.0005 go the same way."""
    data = replace(fk.Data("heart_flamby"), without=("hungarian", "switzerland", "va"))
    federation = load(data)
    x, y = federation.x[federation.train[0]].double(), federation.y[federation.train[0]].double()
    two = np.zeros((2, 13))
    one = np.zeros(13)
    for _ in range(50):
        ill = 1 / (1 + np.exp(-(x.numpy() @ (two[1] - two[0]))))
        slope = ((ill - y.numpy())[:, None] * x.numpy()).mean(0)
        two -= 0.0005 * np.stack([-slope, slope])
        ill = 1 / (1 + np.exp(-(x.numpy() @ one)))
        one -= 0.001 * ((ill - y.numpy())[:, None] * x.numpy()).mean(0)
    np.testing.assert_allclose(two[1] - two[0], one)
