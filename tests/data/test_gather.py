"""Whole datasets, bundled or real."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from fedkin.data import NAMES, Data, load
from fedkin.data.catalogue import CATALOGUE
from fedkin.errors import BadInput

Real = Callable[[str], Path]


def sizes(data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    federation = load(data, progress=False)
    return federation.train.sizes, federation.train.sizes + federation.test.sizes


def test_digits() -> None:
    federation = load(Data("digits"))
    assert federation.n == 20
    assert federation.shape == (1, 8, 8)
    assert len(federation.y) == 1797
    assert federation.classes == 10
    assert abs(float(federation.x.mean())) < 1e-5
    assert int((federation.train.sizes + federation.test.sizes).min()) >= 10


def test_every_name_is_accepted() -> None:
    assert set(NAMES) == set(CATALOGUE)
    assert all(Data(name).dataset == name for name in NAMES)


def test_images_have_no_natural_clients() -> None:
    with pytest.raises(BadInput, match="digits does not say whose"):
        load(Data("digits", "natural"))
    with pytest.raises(BadInput, match="digits cannot be divided by 'writer': it has no column of clients"):
        load(Data("digits", "natural:writer"))


def test_more_clients_than_samples() -> None:
    for partition in ("iid", "dirichlet:0.5", "classes:2", "shards:1"):
        with pytest.raises(BadInput, match="1798 clients cannot share 1797 samples"):
            load(Data("digits", partition, 1798))


def test_real_mnist(real: Real) -> None:
    real("ylecun/mnist")
    train, total = sizes(Data("mnist", "pfedme"))
    assert (int(train.min()), int(train.max()), int(total.sum())) == (1905, 3834, 70_000)
    train, total = sizes(Data("mnist", "pfedme-overlap"))
    assert (int(train.min()), int(train.max()), int(total.sum())) == (1165, 3834, 69_969)
    train, total = sizes(Data("mnist", "fedmcsa"))
    assert (int(train.min()), int(train.max()), int(total.sum())) == (1167, 3834, 70_000)

    start = time.perf_counter()
    federation = load(Data("mnist", "shards:2", holdout="official"), progress=False)
    assert time.perf_counter() - start < 3  # under one on a quiet machine; decoding takes ten or more
    assert federation.train.sizes.tolist() == [600] * 100
    assert federation.common is not None
    assert len(federation.common) == 10_000
    assert int(federation.test.sizes.sum()) == 10_000
    assert federation.y.bincount().tolist() == [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]
    assert abs(float(federation.x.mean())) < 1e-4
    assert np.isfinite(federation.x.numpy()).all()


def test_real_shakespeare(real: Real) -> None:
    real("local/shakespeare_pd")
    federation = load(Data("shakespeare", clients=132, samples=100), progress=False)
    assert federation.n == 132
    assert len(federation.y) == 3_873_267
    assert int(federation.train.sizes.max()) == 100
    owned = federation.x[federation.train.rows]
    assert int(owned.max()) < 81
    assert (owned == 0).float().mean() < 0.001  # hardly a character is unknown
