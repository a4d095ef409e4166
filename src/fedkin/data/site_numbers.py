"""Fits the numbers of many sites at once: to the last digit what scikit-learn gives for each of them.

scikit-learn takes milliseconds for a site, and there may be a hundred thousand of them. Sites with equally many rows
are computed together, in the same order of additions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def medians(table: np.ndarray, sizes: np.ndarray) -> np.ndarray:  # (n, features)
    """The median of each feature at each site, without missing values; 0 where a site has no value.

    table: the rows of all sites, one site after another, nan where a value is missing. sizes: the rows of each site.
    """
    found = np.zeros((len(sizes), table.shape[1]))
    for sites, values in of_equal_size(table, sizes):  # (m, features, k)
        ordered = np.sort(values, axis=2)  # nan come last
        count = values.shape[2] - np.isnan(values).sum(2)
        low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[2] - 1)
        ends = [np.take_along_axis(ordered, at[:, :, None], axis=2)[:, :, 0] for at in (low, high)]
        found[sites] = np.where(count > 0, (ends[0] + ends[1]) / 2.0, 0.0)
    return found


def means_and_scales(table: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (n, features) each
    """The mean of each feature at each site, and its standard deviation, 1 where a feature is constant. None is nan.

    The variance is that of the corrected two-pass algorithm (Chan, Golub and LeVeque), as in scikit-learn, and so is
    the bound below which a variance is nothing but rounding.
    """
    mean, scale = np.zeros((len(sizes), table.shape[1])), np.ones((len(sizes), table.shape[1]))
    eps = np.finfo(np.float64).eps
    for sites, values in of_equal_size(table, sizes):
        k = float(values.shape[2])
        middle = values.sum(2) / k
        apart = values - middle[:, :, None]
        rounding = apart.sum(2)
        apart **= 2
        variance = (apart.sum(2) - rounding**2 / k) / k
        constant = variance <= k * eps * variance + (k * middle * eps) ** 2
        mean[sites], scale[sites] = middle, np.where(constant, 1.0, np.sqrt(np.maximum(variance, 0.0)))
    return mean, scale


def of_equal_size(table: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the sites with equally many rows, and their values; each feature's values lie one after another."""
    start = np.cumsum(sizes) - sizes
    for k in np.unique(sizes):
        sites = np.flatnonzero(sizes == k)
        rows = start[sites][:, None] + np.arange(k)  # (m, k)
        yield sites, np.ascontiguousarray(table[rows].transpose(0, 2, 1))  # (m, features, k)
