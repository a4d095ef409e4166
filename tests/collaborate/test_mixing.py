"""What must hold of every mixture, whatever the shapes, norms and sizes (sections 1, 2 and 5 of the properties)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedkin as fk
from fedkin.collaborate import (
    CollaborationGraph,
    ComponentAttention,
    HeuristicMessagePassing,
    MeanBefore,
    MessagePassing,
    SimilarityThreshold,
)
from fedkin.collaborate import mixing as module
from fedkin.collaborate.mixing import Mixing
from fedkin.core import geometry, tree
from fedkin.core.geometry import Pairs, cosines, distances, gram
from fedkin.core.tree import Model

PARTS = [
    ComponentAttention(sigma=5.0),
    ComponentAttention(sigma=200.0, granularity="tensor"),
    ComponentAttention(sigma=5.0, granularity="model", size_weighted=True),
    SimilarityThreshold(p=0.5),
    SimilarityThreshold(p=None),
    SimilarityThreshold(p=0.9, alpha=0.4),
    SimilarityThreshold(p=0.3, similarity="update"),
    ComponentAttention(sigma=2.0, standardise=True),
    ComponentAttention(sigma=0.5, standardise=True, similarity="update"),
    MessagePassing(alpha=1.0, sigma=1.0),
    MessagePassing(alpha=50.0, sigma=3.0),
    HeuristicMessagePassing(self_weight=0.2, sigma=5.0),
    MeanBefore(),
    CollaborationGraph(lam=0.3),
    CollaborationGraph(lam=5.0, same=0.5),
]
NAMES = [repr(part) for part in PARTS]


@st.composite
def stacks(draw: st.DrawFn, least: int = 1) -> tuple[Model, torch.Tensor]:
    """Stacked models of two layers with random shapes and norms, some zero, and sizes."""
    m, into, out = draw(st.integers(least, 7)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    gen = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    scale = torch.tensor(draw(st.lists(st.sampled_from([0.0, 1e-8, 1.0, 1.0, 1e4]), min_size=m, max_size=m)))
    shapes = {"1.weight": (out, into), "1.bias": (out,), "3.weight": (2, out), "3.bias": (2,)}
    model = {name: torch.randn(m, *s, generator=gen).double() for name, s in shapes.items()}
    model = {name: value * scale.double().reshape(m, *(1,) * (value.dim() - 1)) for name, value in model.items()}
    sizes = torch.tensor(draw(st.lists(st.integers(1, 1000), min_size=m, max_size=m)))
    return model, sizes


def origin(stack: Model) -> Model:
    gen = torch.Generator().manual_seed(1)
    return {name: torch.randn(value.shape[1:], generator=gen).double() for name, value in stack.items()}


def parts(part: Mixing, stack: Model, sizes: torch.Tensor, kept: torch.Tensor | None = None):
    kept = torch.ones(len(sizes)) if kept is None else kept
    arguments = (stack, kept, sizes, origin(stack))
    return part.weights(*arguments), part.mix(*arguments)


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
@settings(max_examples=20, deadline=None)
@given(drawn=stacks())
def test_rows_are_convex_and_the_mixture_is_what_they_say(part: Mixing, drawn: tuple[Model, torch.Tensor]) -> None:
    stack, sizes = drawn
    weights, mixed = parts(part, stack, sizes)
    for component, psi in weights.items():
        assert psi.shape == (len(sizes), len(sizes))
        assert (psi >= 0).all()
        np.testing.assert_allclose(psi.sum(1), 1.0, rtol=1e-9)
        for name in module.components(stack, part.granular())[component]:
            by_hand = sum(
                psi[:, k].reshape(-1, *(1,) * (stack[name].dim() - 1)) * stack[name][k] for k in range(len(sizes))
            )
            torch.testing.assert_close(mixed[name], by_hand, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
@settings(max_examples=15, deadline=None)
@given(drawn=stacks(2), seed=st.integers(0, 1000))
def test_permuting_clients_permutes_mixtures(part: Mixing, drawn: tuple[Model, torch.Tensor], seed: int) -> None:
    stack, sizes = drawn
    if isinstance(part, SimilarityThreshold) and part.similarity == "update":
        still = (tree.vector(stack).abs() < 1e-6).all(1).sum()
        assume(still < 2)  # rounding decides on which side of the quantile the cosines of equal updates lie
    order = torch.randperm(len(sizes), generator=torch.Generator().manual_seed(seed))
    _, mixed = parts(part, stack, sizes)
    _, permuted = parts(part, tree.rows(stack, order), sizes[order])
    for name, value in mixed.items():
        torch.testing.assert_close(permuted[name], value[order], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
@settings(max_examples=15, deadline=None)
@given(drawn=stacks(2), bad=st.sampled_from([float("nan"), float("inf"), -float("inf")]), seed=st.integers(0, 1000))
def test_a_broken_client_reaches_nobody(part: Mixing, drawn: tuple[Model, torch.Tensor], bad: float, seed: int) -> None:
    stack, sizes = drawn
    broken = seed % len(sizes)
    spoiled = {name: value.clone() for name, value in stack.items()}
    spoiled["3.bias"][broken, 0] = bad
    weights, mixed = parts(part, spoiled, sizes)
    others = torch.arange(len(sizes)) != broken
    for psi in weights.values():
        assert psi.isfinite().all()
        assert (psi[others, broken] == 0).all()
    for value in mixed.values():
        assert value[others].isfinite().all()


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
@settings(max_examples=15, deadline=None)
@given(drawn=stacks(2))
def test_kept_is_for_others_and_nobody_left_is_identity(part: Mixing, drawn: tuple[Model, torch.Tensor]) -> None:
    stack, sizes = drawn
    m = len(sizes)
    weights, mixed = parts(part, stack, sizes, torch.zeros(m))
    for psi in weights.values():
        torch.testing.assert_close(psi, torch.eye(m, dtype=psi.dtype))
    for name, value in mixed.items():
        torch.testing.assert_close(value, stack[name])
    one_out = torch.ones(m)
    one_out[0] = 0.0
    weights, _ = parts(part, stack, sizes, one_out)
    for psi in weights.values():
        assert (psi[1:, 0] == 0).all()
        np.testing.assert_allclose(psi.sum(1), 1.0, rtol=1e-9)


def random_stack(m: int = 6, seed: int = 0) -> Model:
    gen = torch.Generator().manual_seed(seed)
    shapes = {"1.weight": (3, 4), "1.bias": (3,), "3.weight": (2, 3), "3.bias": (2,)}
    return {name: torch.randn(m, *shape, generator=gen, dtype=torch.float64) for name, shape in shapes.items()}


class TestComponentAttention:
    def test_sigma_zero_is_the_uniform_mean(self) -> None:
        stack = random_stack()
        mixed = ComponentAttention(sigma=0.0).mix(stack, torch.ones(6))
        for name, value in stack.items():
            torch.testing.assert_close(mixed[name], value.mean(0).expand_as(value))

    @pytest.mark.parametrize("granularity", ["layer", "tensor"])
    def test_scaling_a_component_leaves_its_attention(self, granularity: str) -> None:
        stack = random_stack()
        scaled = {name: value.clone() for name, value in stack.items()}
        for name in ("3.weight", "3.bias"):
            scaled[name][2] *= 7.5
        part = ComponentAttention(sigma=3.0, granularity=granularity)
        before, after = part.weights(stack, torch.ones(6)), part.weights(scaled, torch.ones(6))
        assert before.keys() == after.keys()
        for component in before:
            torch.testing.assert_close(before[component], after[component])
        whole = ComponentAttention(sigma=3.0, granularity="model")
        assert not torch.allclose(
            whole.weights(stack, torch.ones(6))["model"], whole.weights(scaled, torch.ones(6))["model"]
        )

    def test_one_layer_is_the_whole_model(self) -> None:
        stack = {name: value for name, value in random_stack().items() if name.startswith("1")}
        layer = ComponentAttention(sigma=3.0).mix(stack, torch.ones(6))
        model = ComponentAttention(sigma=3.0, granularity="model").mix(stack, torch.ones(6))
        for name in stack:
            torch.testing.assert_close(layer[name], model[name])

    def test_a_large_sigma_does_not_overflow(self) -> None:
        psi = ComponentAttention(sigma=1e5).weights(random_stack(), torch.ones(6))["1"]
        torch.testing.assert_close(psi, torch.eye(6, dtype=torch.float64))

    def test_blocks_change_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stack = random_stack()
        whole = ComponentAttention(sigma=3.0).mix(stack, torch.ones(6))
        monkeypatch.setattr(geometry, "BLOCK", 12)
        blocked = ComponentAttention(sigma=3.0).mix(stack, torch.ones(6))
        for name in stack:
            torch.testing.assert_close(whole[name], blocked[name])


class TestSimilarityThreshold:
    @pytest.mark.parametrize("m", [1, 2, 3, 11])
    def test_p_one_is_training_alone(self, m: int) -> None:
        psi = SimilarityThreshold(p=1.0).weights(random_stack(m), torch.ones(m))["model"]
        torch.testing.assert_close(psi, torch.eye(m, dtype=torch.float64))

    @pytest.mark.parametrize("p", [0.0, 0.5, 0.9, 1.0])
    def test_equal_models_keep_their_own(self, p: float) -> None:
        """Round 1 with a common first model."""
        stack = tree.mapped(lambda v: v[:1].expand_as(v).clone(), random_stack())
        psi = SimilarityThreshold(p=p).weights(stack, torch.ones(6))["model"]
        torch.testing.assert_close(psi, torch.eye(6, dtype=torch.float64))

    def test_the_threshold_is_the_interpolated_quantile_with_the_diagonal(self) -> None:
        s = torch.tensor([[1.0, 0.2, 0.6], [0.2, 1.0, -0.3], [0.6, -0.3, 1.0]])
        ordered = sorted(s.flatten().tolist())  # nine entries, so p = 0.4 lies at 0.4 * 8 = 3.2
        expected = ordered[3] + 0.2 * (ordered[4] - ordered[3])
        part, of = SimilarityThreshold(p=0.4), Pairs({}, [], "cosine", None, torch.ones(3), s)
        assert part.threshold(of) == pytest.approx(expected)
        assert part.mask(s, torch.eye(3, dtype=torch.bool), part.threshold(of)).tolist() == [
            [True, False, True],
            [False, True, False],
            [True, False, True],
        ]

    def test_it_says_how_much_clients_keep_and_which_p_gives_neighbours(self) -> None:
        def said(p: float, m: int) -> list[str]:
            return SimilarityThreshold(p=p).cautions(fk.Task(m, torch.ones(m), 1, {}, lambda *_: torch.zeros(())), 1.0)

        [sentence] = said(0.9, 12)
        assert "keeps about 91.7 % of its own model" in sentence
        assert "p=0.83 for about one neighbour or p=0.75 for about two" in sentence
        for p, neighbours in ((0.83, 1), (0.75, 2)):
            assert said(p, 12) == []
            psi = SimilarityThreshold(p=p).weights(random_stack(12, 0), torch.ones(12))["model"]
            assert float((psi > 0).double().sum(1).mean()) - 1 == pytest.approx(neighbours, abs=0.35)
        psi = SimilarityThreshold(p=0.9).weights(random_stack(12, 0), torch.ones(12))["model"]
        assert float(psi.diagonal().mean()) == pytest.approx(0.917, abs=0.04)

    @pytest.mark.parametrize(("p", "m", "warns"), [(0.9, 11, True), (0.9, 12, False), (0.5, 3, True), (None, 2, False)])
    def test_it_warns_when_no_two_can_ever_meet(self, p: float | None, m: int, warns: bool) -> None:
        task = fk.Task(m, torch.ones(m), 1, {}, lambda *_: torch.zeros(()))
        said = " ".join(SimilarityThreshold(p=p).cautions(task, 1.0))
        assert ("this is training alone" in said) == warns
        if warns:
            for seed in range(20):
                psi = SimilarityThreshold(p=p).weights(random_stack(m, seed), torch.ones(m))["model"]
                torch.testing.assert_close(psi, torch.eye(m, dtype=torch.float64))


class TestMessagePassing:
    def test_weights_are_the_derivative_of_the_attention_function(self) -> None:
        stack, alpha, sigma = random_stack(), 0.3, 20.0
        psi = MessagePassing(alpha, sigma).weights(stack, torch.ones(6))["model"]
        rows = tree.vector(stack).numpy()
        for i in range(6):
            others = [alpha * np.exp(-((rows[i] - rows[j]) ** 2).sum() / sigma) / sigma for j in range(6) if j != i]
            np.testing.assert_allclose([psi[i, j] for j in range(6) if j != i], others, rtol=1e-8)
            assert float(psi[i, i]) == pytest.approx(1 - sum(others))

    def test_far_apart_is_training_alone(self) -> None:
        stack = tree.mapped(lambda v: v * 1e3, random_stack())
        psi = MessagePassing().weights(stack, torch.ones(6))["model"]
        torch.testing.assert_close(psi, torch.eye(6, dtype=torch.float64))

    def test_a_single_client_keeps_its_model(self) -> None:
        stack = random_stack(1)
        for part in (HeuristicMessagePassing(), MessagePassing(), MessagePassing(50.0, 1.0), ComponentAttention()):
            assert all(torch.equal(value, stack[name]) for name, value in part.mix(stack, torch.ones(1)).items())


def test_cosines_have_the_cards_edge_cases() -> None:
    stack = {"1.weight": torch.tensor([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])}
    expected = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    products = gram(stack, ["1.weight"])
    assert cosines(products).tolist() == expected
    assert distances(products)[0].tolist() == [0.0, 1.0, 1.0, 10.0]


def test_huge_values_do_not_overflow_in_float32() -> None:
    stack = {name: (value * 1e25).float() for name, value in random_stack().items()}
    for part in (ComponentAttention(), SimilarityThreshold(p=0.5), HeuristicMessagePassing()):
        assert all(value.isfinite().all() for value in part.mix(stack, torch.ones(6)).values())


def test_clients_have_the_same_tensors() -> None:
    with pytest.raises(fk.BadInput, match="same tensors"):
        ComponentAttention().mix({"a": torch.ones(2, 3), "b": torch.ones(3, 3)}, torch.ones(2))
