"""Epsilon against the exact one of Gaussian differential privacy."""

from __future__ import annotations

from math import exp, sqrt
from pathlib import Path

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import fedkin as fk
from fedkin.privacy import accountant

pytest.importorskip("opacus")


def exact(mu: float, delta: float) -> float:
    """The epsilon at which delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) is delta; k
    releases with noise z are mu-GDP with mu = sqrt(k) / z (Dong, Roth and Su 2022, theorem 2.7 and corollary 3.3)."""

    def over(epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))) - delta

    return 0.0 if over(0.0) <= 0 else float(brentq(over, 0.0, mu * mu / 2 + 20 * mu + 1))


CASES = [(1, 0.8), (20, 0.8), (20, 4.0), (100, 1.0), (500, 1.0), (100, 10.0), (1, 100.0), (3, 0.5)]


@pytest.mark.parametrize(("count", "noise"), CASES)
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_epsilon_is_never_below_the_exact_one_and_little_above_it(count: int, noise: float, delta: float) -> None:
    right, found = exact(sqrt(count) / noise, delta), accountant.epsilon({noise: count}, delta)
    assert right <= found <= 1.15 * right + 0.02  # what the way by Renyi divergences loses


def test_data_that_are_replaced_count_the_noise_half() -> None:
    assert accountant.epsilon({2.0: 9}, 1e-5, replaced=True) == accountant.epsilon({1.0: 9}, 1e-5)
    assert accountant.epsilon({2.0: 9}, 1e-5) < accountant.epsilon({1.0: 9}, 1e-5)


def test_releases_of_different_noise_add_up() -> None:
    both = accountant.epsilon({1.0: 4, 2.0: 4}, 1e-5)
    assert both == pytest.approx(accountant.epsilon({1.0: 5}, 1e-5))  # 4 + 4 / 2^2
    assert accountant.epsilon({}, 1e-5) == accountant.epsilon({1.0: 0}, 1e-5) == 0.0


def test_without_opacus_a_run_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accountant, "find_spec", lambda name: None)
    experiment = fk.Experiment(fk.methods.fedavg(), fk.Data("digits", clients=4), rounds=1, dp="clip=1,noise=1")
    with pytest.raises(
        fk.BadInput, match=r"Opacus, which is not installed; install it with: pip install 'fedkin\[dp\]'"
    ):
        fk.run(experiment, tmp_path / "run")
    assert not (tmp_path / "run").exists()
