"""Attention whose cosines are measured in deviations of their own, so that one sigma means the same everywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedkin as fk
from fedkin.collaborate import ComponentAttention
from fedkin.core.tree import Model

M = 6
PART = ComponentAttention(sigma=1.5, standardise=True, granularity="model")


def models(apart: float) -> Model:
    """Models of a common start, which went so far from it in directions of their own."""
    gen = torch.Generator().manual_seed(0)
    start, way = torch.ones(4, 5).double(), torch.randn(M, 4, 5, generator=gen).double()
    return {"1.weight": start + apart * way}


def attention(part: ComponentAttention, stack: Model, start: Model | None = None) -> np.ndarray:
    [found] = part.similarities(stack, torch.ones(M), torch.ones(M), start).of.values()
    assert isinstance(found, torch.Tensor)
    return found.numpy()


@pytest.mark.parametrize("similarity", ["model", "update"])
def test_it_is_the_softmax_of_deviations_of_pairs_of_different_clients(similarity: str) -> None:
    """By loops and scalars: the median and the quartiles of all cosines but those of a client with itself."""
    stack, start = models(0.3), {"1.weight": torch.full((4, 5), 0.9).double()}
    vectors = stack["1.weight"] - (start["1.weight"] if similarity == "update" else 0.0)
    flat = [vector.flatten().numpy() for vector in vectors]
    cosine = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in flat] for a in flat]
    others = [cosine[i][k] for i in range(M) for k in range(M) if i != k]
    low, middle, high = np.quantile(others, [0.25, 0.5, 0.75])
    expected = np.zeros((M, M))
    for i in range(M):
        z = [(cosine[i][k] - middle) / ((high - low) / 1.349) for k in range(M)]
        z[i] = max(z[k] for k in range(M) if k != i)
        grown = [np.exp(1.5 * value) for value in z]
        expected[i] = [value / sum(grown) for value in grown]
    found = attention(replace(PART, similarity=similarity), stack, start)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_one_sigma_means_the_same_however_near_the_models_are() -> None:
    """Cosines of 1 - 1e-6 and less are weighed as sharply as cosines far from 1; as they are, they would be no
    different."""
    near, far = attention(PART, models(1e-3)), attention(PART, models(0.3))
    assert np.ptp(near[0]) == pytest.approx(np.ptp(far[0]), rel=0.3)
    plain = replace(PART, standardise=False)
    assert np.ptp(attention(plain, models(1e-3))) < 1e-4


def test_a_large_sigma_is_a_client_and_its_nearest() -> None:
    found = attention(replace(PART, sigma=1e4), models(0.3))
    assert np.allclose(np.diag(found), 0.5)
    assert ((found > 0.49).sum(1) == 2).all()


def test_clients_that_are_all_alike_are_mixed_evenly() -> None:
    stack = {"1.weight": torch.ones(M, 4, 5).double()}
    np.testing.assert_allclose(attention(PART, stack), 1 / M)


def test_it_is_a_setting_of_fedmcsa() -> None:
    method = fk.methods.fedmcsa()
    assert isinstance(method.collaborate, ComponentAttention)
    with pytest.raises(fk.BadInput, match="standardise"):
        replace(method.collaborate, tau=1.0, standardise=True)
