"""Similarities of many clients: in blocks, by sketches, and with few neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fedkin.collaborate import (
    ComponentAttention,
    HeuristicMessagePassing,
    MessagePassing,
    SimilarityThreshold,
)
from fedkin.collaborate.mixing import Mixing, components
from fedkin.core import geometry, tree
from fedkin.core.tree import Model

PARTS: list[Any] = [
    ComponentAttention(sigma=5.0),
    ComponentAttention(sigma=30.0, granularity="tensor", size_weighted=True),
    ComponentAttention(sigma=9.0, tau=4.0),
    SimilarityThreshold(p=0.8),
    SimilarityThreshold(p=None, alpha=0.4),
    SimilarityThreshold(p=0.31, similarity="update"),
    MessagePassing(alpha=1.0, sigma=9.0),
    MessagePassing(alpha=500.0, sigma=20.0, granularity="layer"),
    HeuristicMessagePassing(self_weight=0.2, sigma=5.0),
]
NAMES = [repr(part) for part in PARTS]
SHAPES = {"1.weight": (3, 4), "1.bias": (3,), "3.weight": (2, 3), "3.bias": (2,)}
M = 23


def drawn(m: int = M, seed: int = 0, shapes: dict[str, tuple[int, ...]] | None = None) -> Model:
    gen = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=gen).double() + torch.randn(m, *shape, generator=gen).double()
        for name, shape in (shapes or SHAPES).items()
    }


def arguments(stack: Model, seed: int = 0) -> dict[str, Any]:
    """Sizes, how far each client counts, of whom one does not, and a first model."""
    gen, m = torch.Generator().manual_seed(seed + 50), len(next(iter(stack.values())))
    kept = torch.rand(m, generator=gen).double()
    kept[m // 2] = 0.0
    return {"kept": kept, "sizes": torch.randint(1, 90, (m,), generator=gen), "origin": tree.row(drawn(1, 99), 0)}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows and columns, and a sample of few pairs."""
    monkeypatch.setattr(geometry, "BLOCK", 70)
    monkeypatch.setattr(geometry, "SAMPLE", 60)


# blocks


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_blocks_change_nothing_but_last_digits(part: Mixing, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = drawn()
    weights, mixed = part.weights(stack, **arguments(stack)), part.mix(stack, **arguments(stack))
    monkeypatch.setattr(geometry, "BLOCK", 70)
    monkeypatch.setattr(geometry, "SAMPLE", 60)
    blocked = part.weights(stack, **arguments(stack))
    for component, value in weights.items():
        torch.testing.assert_close(blocked[component], value, rtol=1e-12, atol=1e-14)
    for name, value in part.mix(stack, **arguments(stack)).items():
        torch.testing.assert_close(value, mixed[name], rtol=1e-12, atol=1e-12)


class Seen(TorchDispatchMode):
    """Notes the size of everything that is computed, and how many different places hold as much as a square."""

    def __init__(self, square: int):
        super().__init__()
        self.square, self.largest, self.places = square, 0, {}  # type: ignore[var-annotated]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for value in found if isinstance(found, tuple | list) else [found]:
            if isinstance(value, Tensor):
                self.largest = max(self.largest, value.numel())
                if value.numel() >= self.square:
                    self.places[value.untyped_storage().data_ptr()] = value
        return found


@contextmanager
def watched(m: int) -> Iterator[Seen]:
    with Seen(m * m) as seen:
        yield seen


@pytest.fixture
def hundred(small_blocks: None, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A hundred clients, in small blocks. The sample lets a quantile be looked for in a seventh of all pairs."""
    monkeypatch.setattr(geometry, "SAMPLE", 2000)
    return drawn(100)


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_exact_weights_take_one_square_a_component(part: Mixing, hundred: Model) -> None:
    with watched(100) as seen:
        part.mix(hundred, **arguments(hundred))
    assert len(seen.places) == len(components(hundred, part.granular()))


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
@pytest.mark.parametrize("sketch", [None, 8])
def test_with_few_neighbours_there_is_no_square(part: Any, sketch: int | None, hundred: Model) -> None:
    part = replace(part, neighbours=4, sketch=sketch)
    with watched(100) as seen:
        part.mix(hundred, **arguments(hundred))
    around = 4480  # where the numbers around a quantile are collected
    assert seen.largest <= (around if getattr(part, "p", None) else 100 * 12), "or the largest tensor of the models"


# few neighbours


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("neighbours", [M, 1000])
@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_all_neighbours_are_the_exact_method(part: Any, neighbours: int, blocked: bool, request: Any) -> None:
    stack = drawn()
    exact = part.weights(stack, **arguments(stack)), part.mix(stack, **arguments(stack))
    if blocked:
        request.getfixturevalue("small_blocks")
    every = replace(part, neighbours=neighbours)
    for component, value in every.weights(stack, **arguments(stack)).items():
        torch.testing.assert_close(value, exact[0][component], rtol=1e-10, atol=1e-14)
    for name, value in every.mix(stack, **arguments(stack)).items():
        torch.testing.assert_close(value, exact[1][name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_few_neighbours_are_the_largest_weights(part: Any, k: int, small_blocks: None) -> None:
    stack = drawn()
    few = replace(part, neighbours=k)
    full, found = part.weights(stack, **arguments(stack)), few.weights(stack, **arguments(stack))
    sent = few.weighed(stack, *arguments(stack).values())[2].of
    for component, weights in full.items():
        for i, row in enumerate(weights.tolist()):
            others = sorted((j for j in range(M) if j != i), key=lambda j: -row[j])
            chosen = [i, *others[: k - 1]]
            total = sum(row[j] for j in chosen)
            by_hand = {j: row[j] / total if total > 0 else float(j == i) for j in chosen}
            assert found[component][i].tolist() == pytest.approx([by_hand.get(j, 0.0) for j in range(M)], rel=1e-9)
            assert float(sent[component].dropped[i]) == pytest.approx(1 - total, abs=1e-12)
    mixed = few.mix(stack, **arguments(stack))
    for component, names in components(stack, part.granular()).items():
        for name in names:
            torch.testing.assert_close(mixed[name], torch.tensordot(found[component], stack[name], 1))


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_dropped_weight_bounds_how_far_a_mixture_moves(part: Any) -> None:
    stack = drawn(40)
    few = replace(part, neighbours=6)
    exact, mixed = part.mix(stack, **arguments(stack)), few.mix(stack, **arguments(stack))
    found, moved = few.weighed(stack, *arguments(stack).values())[2].of, 0.0
    for component, names in components(stack, part.granular()).items():

        def flat(models: Model, names: list[str] = names) -> Tensor:
            return tree.vector({name: models[name] for name in names})

        apart = (flat(exact) - flat(mixed)).norm(dim=1)
        bound = found[component].dropped * torch.cdist(flat(stack), flat(stack)).max()
        assert (apart <= bound + 1e-9).all()
        moved += float(apart.sum())
    assert moved > 0, "something was dropped"


def test_a_client_that_is_alone_keeps_its_model() -> None:
    """With one neighbour, itself, also where its weight among all is zero: FedAMP's others may take everything."""
    stack = drawn()
    for part in (MessagePassing(alpha=1e6, sigma=20.0, neighbours=1), ComponentAttention(neighbours=1)):
        for name, value in part.mix(stack, torch.ones(M)).items():
            torch.testing.assert_close(value, stack[name])


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
@pytest.mark.parametrize("sketch", [None, 9])
def test_permuting_clients_permutes_mixtures(part: Any, sketch: int | None, small_blocks: None) -> None:
    part, stack = replace(part, neighbours=5, sketch=sketch), drawn()
    given, order = arguments(stack), torch.randperm(M, generator=torch.Generator().manual_seed(3))
    moved = {"kept": given["kept"][order], "sizes": given["sizes"][order], "origin": given["origin"]}
    mixed, permuted = part.mix(stack, **given), part.mix(tree.rows(stack, order), **moved)
    for name, value in mixed.items():
        torch.testing.assert_close(permuted[name], value[order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_a_broken_client_reaches_nobody(part: Any, bad: float) -> None:
    stack = drawn()
    stack["3.bias"][7, 0] = bad
    part = replace(part, neighbours=5, sketch=9)
    weights, mixed = part.weights(stack, **arguments(stack)), part.mix(stack, **arguments(stack))
    others = torch.arange(M) != 7
    assert all((psi[others, 7] == 0).all() for psi in weights.values())
    assert all(value[others].isfinite().all() for value in mixed.values())


# sketches


def test_larger_sketches_are_less_wrong() -> None:
    """The error of weights falls with the size of a sketch, about as one over its root; a full one has none."""
    stack = drawn(60, shapes={"1.weight": (40, 50), "1.bias": (40,)})
    given = {"kept": torch.ones(60), "origin": tree.mapped(lambda value: value.mean(0) + 1.0, stack)}
    update = SimilarityThreshold(p=None, similarity="update")
    for part in (ComponentAttention(4.0), SimilarityThreshold(p=None), update, HeuristicMessagePassing(sigma=4.0)):
        exact = next(iter(part.weights(stack, **given).values()))
        errors = []
        for k in (64, 256, 1024, 2040):
            found = [replace(part, sketch=k).weights(stack, **given, seed=seed) for seed in range(4)]
            errors.append(float(torch.stack([next(iter(one.values())) - exact for one in found]).norm()))
        assert all(2.6 > more / less > 1.6 for more, less in pairwise(errors[:3])), errors
        assert errors[3] == 0.0, "a component with as many numbers as its sketch is compared as it is"


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_sketches_are_repeated_by_seed_and_by_nothing_else(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = drawn()
    part = replace(part, sketch=3)
    first = part.weights(stack, **arguments(stack), seed=1)
    again, other = (part.weights(stack, **arguments(stack), seed=seed) for seed in (1, 2))
    for component, value in first.items():
        assert torch.equal(again[component], value)
    assert any(not torch.allclose(other[component], value) for component, value in first.items())
    monkeypatch.setattr(geometry, "BLOCK", 70)
    monkeypatch.setattr(geometry, "SAMPLE", 60)
    for component, value in part.weights(stack, **arguments(stack), seed=1).items():
        torch.testing.assert_close(first[component], value, rtol=1e-10, atol=1e-13)


def test_components_have_projections_of_their_own_and_names() -> None:
    """Layers deep in a network keep their names, and two layers with the same numbers get different sketches."""
    weight = drawn(9, shapes={"w": (8, 8)})["w"]
    stack = {"features.0.conv.weight": weight, "features.3.conv.weight": weight}
    for granularity in ("layer", "tensor", "model"):
        part = ComponentAttention(sigma=2.0, granularity=granularity, sketch=6)  # type: ignore[arg-type]
        found = part.weights(stack, torch.ones(9))
        assert found.keys() == components(stack, part.granular()).keys()
        assert len(found) == 1 or not torch.allclose(*found.values())
