import numpy as np
import torch

from fedkin.data import Data, load
from fedkin.data.synthetic import synthetic


def reference(alpha: float, beta: float, clients: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The published recipe, step by step, with the legacy generator's own multivariate normal."""
    stream = np.random.RandomState(seed)
    sizes = (stream.lognormal(4, 2, clients).astype(int) + 50) * 5
    u, b = stream.normal(0, alpha, clients), stream.normal(0, beta, clients)
    v = [stream.normal(b[i], 1, 60) for i in range(clients)]
    sigma = np.diag([(j + 1) ** -1.2 for j in range(60)])
    xs, ys = [], []
    for i in range(clients):
        w, bias = stream.normal(u[i], 1, (60, 10)), stream.normal(u[i], 1, 10)
        x = stream.multivariate_normal(v[i], sigma, sizes[i])
        xs.append(x)
        ys.append((x @ w + bias).argmax(1))
    return xs, ys


def test_sizes_are_the_published_ones() -> None:
    federation = load(Data())
    train, test = federation.train.sizes, federation.test.sizes
    total = train + test
    assert federation.n == 100
    assert (int(total.min()), int(total.max()), int(total.sum())) == (250, 25_810, 205_795)
    assert float(total.double().quantile(0.5)) == 577.5
    assert (int(train.sum()), int(test.sum())) == (154_314, 51_481)


def test_samples_are_those_of_the_recipe() -> None:
    xs, ys = reference(0.5, 1.0, 4, 3)
    samples = synthetic(0.5, 1.0, 4, 3)
    np.testing.assert_array_equal(samples.x.numpy(), np.concatenate(xs).astype(np.float32))
    np.testing.assert_array_equal(samples.y.numpy(), np.concatenate(ys))
    assert samples.owner is not None
    assert np.bincount(samples.owner).tolist() == [len(x) for x in xs]
    assert samples.x.dtype == torch.float32


def test_clients_are_as_alike_as_published() -> None:
    """The card's diagnosis of the task: the majority class of a client has 0.82 of its samples on average."""
    samples = synthetic(0.5, 0.5, 100, 0)
    assert samples.owner is not None
    shares = [np.bincount(samples.y.numpy()[samples.owner == i]).max() / (samples.owner == i).sum() for i in range(100)]
    assert abs(np.mean(shares) - 0.82) < 0.01


def test_other_arguments_seeds_and_numbers_of_clients() -> None:
    thirty = load(Data("synthetic(0, 1)", clients=30))
    assert thirty.n == 30
    assert thirty.source["id"] == "synthetic(0.0, 1.0)"
    assert not torch.equal(thirty.train.sizes, load(Data("synthetic(0, 1)", clients=30, seed=1)).train.sizes)


def test_it_can_be_divided_otherwise() -> None:
    federation = load(Data("synthetic", partition="iid", clients=10))
    assert federation.n == 10
    assert int((federation.train.sizes + federation.test.sizes).sum()) == 205_795
