"""Models as dictionaries of tensors, and stacks of them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkin.core import tree
from fedkin.core.tree import Model


def models(m: int, seed: int = 0) -> Model:
    gen = torch.Generator().manual_seed(seed)
    return {
        "b": torch.randn(m, 2, 3, generator=gen),
        "a": torch.randn(m, 4, generator=gen),
        "c": torch.randn(m, generator=gen),
    }


def test_added_and_update() -> None:
    one, other = models(2), models(2, 1)
    found = tree.added(one, other, -0.5)
    update = tree.update(one, other)
    for name in one:
        torch.testing.assert_close(found[name], one[name] - 0.5 * other[name])
        torch.testing.assert_close(update[name], other[name] - one[name])
        torch.testing.assert_close(tree.added(one, update)[name], other[name])
    assert not any(value.any() for value in tree.zeros(one).values())
    assert list(found) == ["b", "a", "c"]


def test_mapped_goes_by_name_not_by_place() -> None:
    one = {"a": torch.tensor(1.0), "b": torch.tensor(2.0)}
    other = {"b": torch.tensor(20.0), "a": torch.tensor(10.0)}
    assert tree.mapped(torch.add, one, other) == {"a": torch.tensor(11.0), "b": torch.tensor(22.0)}


def test_vector() -> None:
    stack = models(3)
    rows = tree.vector(stack)
    assert rows.shape == (3, 6 + 4 + 1)
    assert rows[1].tolist() == [*stack["b"][1].flatten().tolist(), *stack["a"][1].tolist(), float(stack["c"][1])]


def test_stacks() -> None:
    stack = models(4)
    ones = [tree.row(stack, i) for i in range(4)]
    assert ones[2]["b"].shape == (2, 3)
    assert ones[2]["c"].shape == ()
    for name, value in tree.stacked(ones).items():
        assert torch.equal(value, stack[name])
    for name, value in tree.rows(stack, torch.tensor([3, 0])).items():
        assert torch.equal(value, stack[name][[3, 0]])
    halves = [tree.rows(stack, slice(0, 1)), tree.rows(stack, slice(1, 4))]
    for name, value in tree.joined(halves).items():
        assert torch.equal(value, stack[name])
    assert tree.joined(halves[:1]) is halves[0]
    many = tree.repeated(ones[1], 5)
    assert all(torch.equal(value[4], ones[1][name]) and len(value) == 5 for name, value in many.items())
    assert many["b"].stride(0) == 0  # nothing is copied


def test_each_and_size() -> None:
    message = {"model": models(2), "control": models(2, 1)}
    found = tree.each(tree.update, message, {"control": models(2, 2), "model": models(2, 3)})
    torch.testing.assert_close(found["control"]["a"], models(2, 2)["a"] - models(2, 1)["a"])
    assert tree.size(message.values()) == (2 * 22, 2 * 22 * 4)
    assert tree.size([{"w": torch.zeros(3, dtype=torch.float64)}]) == (3, 24)
    assert tree.size([]) == (0, 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 5), min_size=1, max_size=6).filter(lambda weights: sum(weights) > 0.01), st.integers(0, 9))
def test_weighted(weights: list[float], seed: int) -> None:
    stack = models(len(weights), seed)
    found = tree.weighted(stack, torch.tensor(weights))
    for name, value in stack.items():
        wanted = sum(w * row.double() for w, row in zip(weights, value, strict=True)) / sum(weights)
        assert found[name].dtype == torch.float32
        torch.testing.assert_close(found[name], wanted.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_finite(bad: float) -> None:
    stack = models(4)
    assert tree.finite(stack).tolist() == [True] * 4
    stack["b"][1, 0, 2] = bad
    stack["c"][3] = bad
    assert tree.finite(stack).tolist() == [True, False, True, False]


def test_numbers_that_have_diverged_count_as_not_finite() -> None:
    value = torch.full((3, 4), 1e11)
    assert tree.finite({"a": value, "count": torch.ones(3, dtype=torch.int64)}).tolist() == [True, True, True]
    value[0, 1], value[1, 2] = 3e38, torch.nan
    assert tree.finite({"a": value, "b": torch.ones(3)}).tolist() == [False, False, True]
    assert tree.finite({"count": torch.ones(3, dtype=torch.int64)}).tolist() == [True, True, True]
    both = torch.tensor([[torch.inf, -torch.inf], [1.0, 2.0]])
    assert tree.finite({"a": both}).tolist() == [False, True]


@pytest.mark.parametrize("m", [1, 2, 5, 20, 33, 100])
@pytest.mark.parametrize("width", [7, tree.COLUMNS, tree.COLUMNS + 1, 3 * tree.COLUMNS + 5])
def test_a_mean_in_blocks_is_the_mean_at_once_to_the_bit(m: int, width: int) -> None:
    """The wrong places of a block, or a block of a few columns that is summed in another order, would show."""
    gen = torch.Generator().manual_seed(m)
    stack, weight = {"a": torch.randn(m, 1, width, generator=gen) * 1e3}, torch.rand(m, generator=gen)
    share = weight.double() / weight.double().sum()
    at_once = torch.tensordot(share, stack["a"].double(), dims=1).float()
    assert torch.equal(tree.weighted(stack, weight)["a"], at_once)


def test_flat_and_nested() -> None:
    nested = {"model": {"0.weight": torch.zeros(2), "0.bias": torch.ones(())}, "slot": {"deep": {"x": torch.ones(1)}}}
    flat = tree.flat(nested | {"empty": {}})
    assert list(flat) == ["model/0.weight", "model/0.bias", "slot/deep/x"]
    again = tree.nested(flat)
    assert again.keys() == nested.keys()
    assert again["slot"]["deep"]["x"] is nested["slot"]["deep"]["x"]  # type: ignore[index]
    with pytest.raises(TypeError, match="'slot/n' is a int"):
        tree.flat({"slot": {"n": 3}})
