"""The slopes of J in closed form are those of differentiating twice, and those of small differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fedkin as fk
from fedkin import round as rounds
from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.engines import Stacked
from fedkin.engines.network import Network
from fedkin.keep import inversion, matching
from fedkin.keep.inversion import closed_slope, descended, general_slope, inverted, mismatch

M, CLASSES, VECTOR, IMAGE = 3, 4, (7,), (2, 9, 8)


def linear(*widths: int) -> list[nn.Module]:
    """Linear layers of these widths with ReLU between them."""
    found: list[nn.Module] = []
    for into, out in pairwise(widths):
        found += [nn.Linear(into, out), nn.ReLU()]
    return found[:-1]


NETWORKS: dict[str, tuple[tuple[int, ...], Callable[[], list[nn.Module]]]] = {
    "mlr": (VECTOR, lambda: linear(7, CLASSES)),
    "mlr of images": (IMAGE, lambda: [nn.Flatten(), *linear(144, CLASSES)]),
    "hidden": (VECTOR, lambda: linear(7, 12, CLASSES)),
    "two hidden": (VECTOR, lambda: [nn.Identity(), *linear(7, 16, 11, CLASSES)]),
    "wide": (IMAGE, lambda: [nn.Flatten(), *linear(144, 40, 30, CLASSES)]),
    "bent at both ends": (VECTOR, lambda: [nn.ReLU(), *linear(7, 12, CLASSES), nn.ReLU()]),
    "convolution": (IMAGE, lambda: [nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), *linear(126, CLASSES)]),
    "pools": (
        IMAGE,
        lambda: [
            *(nn.Conv2d(2, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 3, 2), nn.AvgPool2d(2, 1)),
            *(nn.ReLU(), nn.Flatten(), *linear(12, 6, CLASSES)),
        ],
    ),
    "pools that overlap": (
        IMAGE,
        lambda: [
            *(
                nn.AvgPool2d((2, 1), (1, 1), (1, 0)),
                nn.Conv2d(2, 4, (3, 2), (2, 1), (0, 1), (1, 2)),
                nn.MaxPool2d(3, 2),
            ),
            *(nn.ReLU(), nn.Conv2d(4, 5, 1), nn.MaxPool2d(2, 1, 1), nn.Flatten(), *linear(40, CLASSES)),
        ],
    ),
}


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def problem(name: str, shared: bool, k: int) -> tuple[Network, Model, Model, Tensor, Tensor]:
    """The network, the models and targets of M clients, and k samples with labels."""
    shape, layers = NETWORKS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        network = Network(nn.Sequential(*layers()), torch.zeros(shape, dtype=torch.float64), 3, torch.float64, CLASSES)
    models = tree.repeated(network.model, M)
    if not shared:
        models = {key: value + 0.1 * noise(*value.shape, seed=5) for key, value in models.items()}
    targets = {key: 0.2 * noise(*value.shape, seed=6) for key, value in models.items()}
    return network, models, targets, noise(k, *shape, seed=7), torch.arange(k) % CLASSES


def layers_of(network: Network) -> Any:
    assert network.layers is not None
    return network.layers


def both(name: str, shared: bool, k: int, soft: bool) -> tuple[Batch, Batch]:
    """The slopes by the closed form and by differentiating twice, each client at other samples."""
    network, models, targets, x, y = problem(name, shared, k)
    dummies = {"x": x + 0.5 * noise(M, *x.shape, seed=8)}
    if soft:
        dummies["y"] = F.one_hot(y, CLASSES) + noise(M, k, CLASSES, seed=9)
    with torch.no_grad():
        closed = closed_slope(layers_of(network), models, targets, y)(dummies)
        return closed, general_slope(network.logits, models, targets, y)(dummies)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("k", [1, 6, 41])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_slopes_are_those_of_differentiating_twice(name: str, shared: bool, k: int, soft: bool) -> None:
    """One sample, and more of them than classes; 41 are more than some layers have inputs and outputs."""
    found, wanted = both(name, shared, k, soft)
    assert set(found) == set(wanted) == ({"x", "y"} if soft else {"x"})
    for key, value in wanted.items():
        assert float(value.flatten(1).norm(dim=1).min()) > 1e-4
        torch.testing.assert_close(found[key], value, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", ["wide", "pools"])
@pytest.mark.parametrize("own", ["weight", "bias", "0.", "3."])
def test_clients_may_share_a_part_of_the_model(name: str, own: str) -> None:
    network, models, targets, x, y = problem(name, True, 6)
    models |= {key: value + 0.1 * noise(*value.shape, seed=5) for key, value in models.items() if own in key}
    dummies = {"x": x.repeat(M, *(1,) * x.dim())}
    with torch.no_grad():
        found = closed_slope(layers_of(network), models, targets, y)(dummies)["x"]
        copies = tree.mapped(lambda value: value.contiguous(), models)
        wanted = general_slope(network.logits, copies, targets, y)(dummies)["x"]
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", NETWORKS)
def test_slopes_by_central_differences(name: str) -> None:
    """J itself, at samples and labels that are moved a little, shares none of the closed form's arithmetic."""
    network, models, targets, x, y = problem(name, shared=False, k=3)
    numbers, eps = 1.0 * F.one_hot(y, CLASSES) + noise(3, CLASSES, seed=1), 1e-6
    at = {"x": x.expand(M, *x.shape), "y": numbers.expand(M, *numbers.shape)}
    with torch.no_grad():
        found = closed_slope(layers_of(network), models, targets, y)(at)
    for i in range(M):
        model, target = tree.row(models, i), tree.row(targets, i)
        for seed in range(3):
            move = {"x": noise(*x.shape, seed=20 + seed), "y": noise(*numbers.shape, seed=30 + seed)}
            for key in move:
                ends = []
                for sign in (1, -1):
                    there = {"x": x, "y": numbers} | {key: (x if key == "x" else numbers) + sign * eps * move[key]}
                    ends.append(float(mismatch(network.logits, model, there["x"], there["y"].softmax(-1), target)))
                slope = float((found[key][i] * move[key]).sum())
                assert slope == pytest.approx((ends[0] - ends[1]) / (2 * eps), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_dummies_are_the_same(name: str, shared: bool, soft: bool) -> None:
    network, models, targets, x, y = problem(name, shared, 6)
    numbers = F.one_hot(y, CLASSES).double() if soft else None
    how: Any = (models, targets, x, y, 12, 0.1, lambda share: None, numbers)
    found, wanted = descended(network.logits, *how, layers_of(network)), descended(network.logits, *how)
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        assert float((value[0] - value[1]).abs().max()) > 1e-3
        torch.testing.assert_close(found[key], value, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("name", ["wide", "pools"])
def test_nothing_is_changed_and_nobody_disturbed(name: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose target is not finite has dummies that are not; all others have theirs, also one at a time."""
    network, models, targets, x, y = problem(name, shared=False, k=k)
    first = next(iter(targets))
    targets[first][1] = torch.nan
    given: list[Model] = [models, targets, {"x": x}]
    copies = [tree.mapped(torch.clone, each) for each in given]

    def work(some: slice) -> Tensor:
        rows = tree.rows(models, some), tree.rows(targets, some)
        return inverted(network.logits, *rows, x, y, 5, 0.1, layers=network.layers)

    found = work(slice(None))
    assert not found[1].isfinite().any()
    monkeypatch.setattr(inversion, "CACHED", 1)
    torch.testing.assert_close(found, work(slice(None)), rtol=1e-9, atol=1e-11, equal_nan=True)
    for each, copy in zip(given, copies, strict=True):
        for key in each:
            torch.testing.assert_close(each[key], copy[key], rtol=0, atol=0, equal_nan=True)
    assert found[[0, 2]].isfinite().all()


REFUSED: dict[str, tuple[tuple[int, ...], list[nn.Module]]] = {
    "another bend": (VECTOR, [nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, CLASSES)]),
    "a linear layer on images": (IMAGE, [nn.Linear(8, 2), nn.Flatten(), nn.Linear(36, CLASSES)]),
    "groups": (IMAGE, [nn.Conv2d(2, 4, 3, groups=2), nn.Flatten(), nn.Linear(168, CLASSES)]),
    "norms": (IMAGE, [nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(168, CLASSES)]),
    "no bias": (VECTOR, [nn.Linear(7, CLASSES, bias=False)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_closed_form_here(name: str) -> None:
    shape, layers = REFUSED[name]
    assert not matching.fits([(str(i), layer) for i, layer in enumerate(layers)], shape)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_has_one(name: str) -> None:
    shape, layers = NETWORKS[name]
    assert matching.fits([(str(i), layer) for i, layer in enumerate(layers())], shape)


@pytest.mark.parametrize(("bend", "closed"), [(nn.ReLU(), True), (nn.Tanh(), False)])
@pytest.mark.parametrize("labels", ["fixed", "learned"])
def test_a_round_takes_the_closed_form_where_there_is_one(
    bend: nn.Module, closed: bool, labels: Any, start: Any, federate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = fk.methods.pfedre(epochs=1, batch=4, iterations=2, labels=labels)
    module = nn.Sequential(nn.Linear(5, 6), bend, nn.Linear(6, 3))
    play, task, state = start(Stacked, method, federate((4, 9, 6), 2, (5,), 3), module)
    taken: list[str] = []

    def listening(name: str) -> None:
        made = getattr(inversion, name)
        monkeypatch.setattr(inversion, name, lambda *given: taken.append(name) or made(*given))

    listening("closed_slope")
    listening("general_slope")
    rounds.play(method, task, play, state)
    assert taken == ["closed_slope" if closed else "general_slope"]
