"""Odd digits are what the federation learns, and clients with even ones are irrelevant."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.stats import chisquare

from fedkin.data import Data
from fedkin.data.samples import Samples
from fedkin.data.scenarios import odd_even, random_clients
from fedkin.errors import BadInput

from .conftest import pictures


def images(train: int = 400, test: int = 100) -> Samples:
    """The one pixel of an image is its row; classes come in turn."""
    count = train + test
    return Samples(
        x=torch.arange(count, dtype=torch.float32).reshape(-1, 1, 1, 1),
        y=torch.arange(count) % 10,
        classes=10,
        official=train,
    )


def test_odd_digits_are_learned_and_even_ones_are_not() -> None:
    made = odd_even(images(), Data("mnist", irrelevant="odd_even"))
    assert made.irrelevant is not None
    assert made.classes == 5
    assert made.n == 10
    assert int(made.irrelevant.sum()) == 4
    assert torch.equal(made.irrelevant, random_clients(10, 4, 0))
    digit = made.x[:, 0, 0, 0].long() % 10
    for client, foreign in enumerate(made.irrelevant.tolist()):
        rows = made.train[client]
        assert (rows < 400).all()
        assert len(rows) == 50 if foreign else len(rows) in (33, 34)
        assert (digit[rows] % 2 == (0 if foreign else 1)).all()
        if not foreign:
            assert torch.equal(digit[rows], 2 * made.y[rows] + 1)
        own = made.test[client]
        assert len(own) == 5
        assert torch.equal(digit[own], 2 * made.y[own] + 1)
    assert len(made.train.rows.unique()) == 400
    assert made.common is not None
    assert made.common.tolist() == list(range(401, 500, 2))
    assert sorted(made.test.rows.tolist()) == made.common.tolist()
    assert made.source["labels"] == [1, 3, 5, 7, 9]
    assert made.source["irrelevant"] == "odd_even:6,4"


def test_labels_of_even_digits_are_uniform() -> None:
    made = odd_even(images(20_000), Data("mnist", irrelevant="odd_even"))
    digit = made.x[:, 0, 0, 0].long() % 10
    for number in (0, 2, 4, 6, 8):
        rows = made.train.rows[digit[made.train.rows] == number]
        assert chisquare(torch.bincount(made.y[rows], minlength=5)).pvalue > 0.001


def test_odd_and_even_with_caps_and_held_out_samples() -> None:
    data = Data("mnist", irrelevant="odd-even:3,2", samples=20, validation=0.1, server=10, seed=4)
    made = odd_even(images(), data)
    assert made.irrelevant is not None
    assert made.validation is not None
    assert made.server is not None
    assert made.train.sizes.tolist() == [20] * 5
    assert made.test.sizes.tolist() == [10] * 5
    assert len(made.server) == 10
    assert sorted(made.validation.sizes.tolist()) == [0, 0, 7, 7, 7]
    assert (made.validation.sizes[made.irrelevant] == 0).all()
    held = torch.cat([made.server, made.validation.rows])
    assert torch.equal(made.x[held].flatten().long() % 10, 2 * made.y[held] + 1)
    everything = torch.cat([held, made.train.rows, made.test.rows])
    assert len(everything.unique()) == len(everything)
    again, other = odd_even(images(), data), odd_even(images(), replace(data, seed=5))
    assert torch.equal(made.y, again.y)
    assert torch.equal(made.train.rows, again.train.rows)
    assert not torch.equal(made.y, other.y)
    assert not torch.equal(made.train.rows, other.train.rows)


def test_odd_and_even_need_enough_samples() -> None:
    with pytest.raises(BadInput, match="10 classes and an official test split"):
        odd_even(replace(images(), classes=47), Data("emnist", irrelevant="odd_even"))
    with pytest.raises(BadInput, match="10 classes and an official test split"):
        odd_even(replace(images(), official=None), Data("mnist", irrelevant="odd_even"))
    with pytest.raises(BadInput, match="201 clients cannot share 200 even samples of mnist"):
        odd_even(images(), Data("mnist", irrelevant="odd_even:6,201"))


def test_real_mnist_has_the_sizes_of_the_example(real: Callable[[str], Path]) -> None:
    """They depend on the labels alone, so no image is decoded."""
    tables = [pq.read_table(file, columns=["label"]) for file in sorted(real("ylecun/mnist").glob("t*.parquet"))[::-1]]
    assert [len(table) for table in tables] == [60_000, 10_000]
    y = torch.from_numpy(np.concatenate([table.column("label").to_numpy() for table in tables]))
    made = odd_even(Samples(torch.zeros(70_000, 1, 1, 1), y, 10, 60_000), Data("mnist", irrelevant="odd_even"))
    assert made.irrelevant is not None
    assert made.common is not None
    assert int(made.train.sizes[~made.irrelevant].sum()) == 30_508
    assert int(made.train.sizes[made.irrelevant].sum()) == 29_492
    assert set(made.train.sizes[~made.irrelevant].tolist()) == {5084, 5085}
    assert made.train.sizes[made.irrelevant].tolist() == [7373] * 4
    assert len(made.common) == 5_074
    assert set(made.test.sizes.tolist()) == {507, 508}
    assert made.y[made.common].bincount().tolist() == [1135, 1010, 892, 1028, 1009]


def test_tiny_odd_and_even_images_are_trained_on(fedkin, tmp_path: Path, tiny: Callable[..., Path]) -> None:
    labels = [i % 10 for i in range(200)]
    tiny("ylecun/mnist", train=pictures(labels, 10), test=pictures(labels[:100], 10, seed=1))
    code, _, err = fedkin(
        *("run", "sfedavg", "--data", "mnist", "--irrelevant", "odd-even", "--server-validation", "20"),
        *("--validation", "0.2", "--samples", "8", "--rounds", "2", "--out", "run"),
    )
    assert code == 0, err
    folder = tmp_path / "run" / "sfedavg" / "seed-0"
    clients = json.loads((folder / "clients.json").read_text())
    assert sum(clients["irrelevant"]) == 4
    assert clients["test"] == [5] * 10
    assert clients["train"] == [8] * 10
    assert json.loads((folder / "experiment.json").read_text())["resolved"]["classes"] == 5
