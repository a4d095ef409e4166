"""What is computed for many clients at once is to the last digit what a loop over them gives."""

from __future__ import annotations

import gc
from zlib import crc32

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

import fedkin as fk
from fedkin.data.federation import Index
from fedkin.data.fitting import fitted_numbers, fitted_sites
from fedkin.data.partition import natural
from fedkin.data.seeds import keyed_generator
from fedkin.data.site_numbers import means_and_scales


@pytest.mark.parametrize("standardise", ["site", "none"])
@pytest.mark.parametrize("largest", [3, 30, 1000])
@pytest.mark.parametrize("features", [1, 2, 7])
def test_sites_are_fitted_as_scikit_learn_fits_each(standardise: str, largest: int, features: int) -> None:
    rng = np.random.default_rng([largest, features])
    sizes = rng.integers(1, largest, 12)
    table = rng.normal(size=(sizes.sum(), features)) * 10 ** rng.uniform(-3, 5, features)
    table += 1e6 * rng.normal(size=features)  # far from zero, so that rounding matters
    table[rng.random(table.shape) < 0.3] = np.nan
    table[: sizes[0], 0] = np.nan  # a site without a value,
    table[sizes[0] : sizes[0] + sizes[1], 0] = 0.1  # and one in which all are the same
    measured = np.arange(features) != 5
    table[:, ~measured] = 1.0
    common = fitted_numbers(table, measured, standardise)
    found = fitted_sites(table, sizes, measured, standardise, common)
    for mine, rows in zip(found, np.split(table, np.cumsum(sizes)[:-1]), strict=True):
        assert mine == fitted_numbers(rows, measured, standardise, common)


def test_targets_are_scaled_as_scikit_learn_scales_each() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 500, 2, 17])
    y = rng.normal(30, 5, sizes.sum()).astype(np.float32).astype(np.float64)
    mean, scale = means_and_scales(y[:, None], sizes)
    for site, values in enumerate(np.split(y, np.cumsum(sizes)[:-1])):
        scaler = StandardScaler().fit(values[:, None])
        assert (mean[site, 0], scale[site, 0]) == (scaler.mean_[0], scaler.scale_[0])


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**40 + 3])
def test_generators_are_those_of_default_rng(seed: int) -> None:
    expected = np.random.default_rng([seed, crc32(b"split"), crc32(b"site 9")])
    assert keyed_generator(seed, "split", "site 9").permutation(50).tolist() == expected.permutation(50).tolist()


def test_natural_shares() -> None:
    found = natural(np.array([3, 0, 3, 1, 0]), 6)
    assert [rows.tolist() for rows in found] == [[1, 4], [3], [], [0, 2], [], []]


def test_an_index_of_lists_arrays_and_tensors() -> None:
    index = Index.of([[3, 1], np.array([2]), torch.tensor([5, 4]), []])
    assert index.rows.tolist() == [3, 1, 2, 5, 4]
    assert index.start.tolist() == [0, 2, 3, 5, 5]
    assert index.rows.dtype == index.start.dtype == torch.int64
    assert len(Index.of([])) == 0


def test_who_has_a_feature_that_is_not_finite_is_named() -> None:
    x, y = np.zeros((4, 3)), np.array([0, 1, 0, 1])
    bad = x.copy()
    bad[2, 1] = np.inf
    with pytest.raises(fk.BadInput, match="Client third has a feature that is not a finite number"):
        fk.from_clients({"first": (x, y), "second": (x, y), "third": (bad, y)})
    with pytest.raises(fk.BadInput, match="Client second has a feature that is not a finite number"):
        fk.from_clients({"first": (x, y), "second": {"train": (x, y), "test": (bad, y)}})


def test_what_was_handed_over_is_not_changed_later() -> None:
    x, y = np.zeros((4, 3), dtype=np.float32), np.array([0, 1, 0, 1])
    federation = fk.from_clients({"only": (x, y)})
    federation.x.fill_(7.0)
    assert not x.any()


def test_garbage_is_collected_again_afterwards() -> None:
    made = {"a": (np.zeros((4, 3)), np.array([0, 1, 0, 1]))}
    fk.from_clients(made)
    assert gc.isenabled()
    with pytest.raises(fk.BadInput):
        fk.from_clients({})
    assert gc.isenabled()
    gc.disable()
    try:
        fk.from_clients(made)
        assert not gc.isenabled()
    finally:
        gc.enable()
