"""S-FedAvg's valuation: Shapley values against their definition, and what the part does with them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations, permutations
from math import factorial
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

import fedkin as fk
from fedkin.core.tree import Batch, Model
from fedkin.errors import BadInput
from fedkin.messages import Reply, Sent, Task
from fedkin.select import Shapley
from fedkin.select.shapley import shapley

Coalition = frozenset[int]


def subsets(players: range) -> list[Coalition]:
    return [frozenset(s) for s in chain.from_iterable(combinations(players, k) for k in range(len(players) + 1))]


def exact(value: Any, m: int) -> list[float]:
    """sum over S without i of |S|! (m - |S| - 1)! / m! (v(S + i) - v(S))."""
    found = []
    for i in range(m):
        total = 0.0
        for s in subsets(range(m)):
            if i not in s:
                total += factorial(len(s)) * factorial(m - len(s) - 1) / factorial(m) * (value(s | {i}) - value(s))
        found.append(total)
    return found


def game(seed: int, m: int = 4) -> Any:
    draws = torch.rand(2**m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).tolist()
    table = dict(zip(subsets(range(m)), draws, strict=True))
    return table.__getitem__


ALL = [list(order) for order in permutations(range(4))]


@pytest.mark.parametrize("seed", range(5))
def test_all_orders_are_the_definition(seed: int) -> None:
    value = game(seed)
    found = shapley(value, ALL)
    assert len(ALL) == 24
    assert found == pytest.approx(exact(value, 4), abs=1e-12)
    everyone, nobody = frozenset(range(4)), frozenset()
    assert sum(found) == pytest.approx(value(everyone) - value(nobody), abs=1e-12)


def test_known_games() -> None:
    assert shapley(lambda s: float(len(s) ** 2), ALL) == pytest.approx([4.0] * 4)
    assert shapley(lambda s: 2.0 * (0 in s) + 3.0 * (2 in s), ALL) == pytest.approx([2.0, 0.0, 3.0, 0.0])
    glove = shapley(lambda s: float(0 in s and (1 in s or 2 in s)), [list(o) for o in permutations(range(3))])
    assert glove == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def test_one_order_is_its_marginal_gains() -> None:
    value = game(9)
    order = [2, 0, 3, 1]
    joined = [frozenset(order[:k]) for k in range(5)]
    wanted = {player: value(joined[k + 1]) - value(joined[k]) for k, player in enumerate(order)}
    assert shapley(value, [order]) == pytest.approx([wanted[i] for i in range(4)])


# the part, on a model with one number a sample: whether it is classified rightly


WIDTH = 40


def task(n: int, counted: list[Model] | None = None, validation: bool = True) -> Task:
    def logits(model: Model, batch: Batch) -> Tensor:
        if counted is not None:
            counted.append(model)
        return torch.stack([torch.zeros_like(model["w"]), model["w"]], 1)

    batch = {"x": torch.zeros(WIDTH, 1), "y": torch.ones(WIDTH, dtype=torch.int64)} if validation else None
    start = {"w": torch.linspace(-1.0, 0.5, WIDTH, dtype=torch.float64)}
    return Task(n, torch.full((n,), 5), 3, start, lambda model, batch: torch.zeros(()), batch, logits)


def right(w: Tensor) -> float:
    return sum(1.0 for value in w.tolist() if value > 0) / WIDTH


IDS = torch.tensor([1, 2, 4, 6])
UPLOADS = torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def worth(setting: Task) -> Any:
    """acc_V(W + mean of the updates of X)."""
    start = setting.model["w"]

    def value(s: Coalition) -> float:
        if not s:
            return right(start)
        change = sum((UPLOADS[i] - start for i in s), torch.zeros(WIDTH, dtype=torch.float64)) / len(s)
        return right(start + change)

    return value


def observed(part: Shapley, setting: Task, phi: Tensor, gen: torch.Generator) -> Tensor:
    sent = Sent(IDS, shared={"model": setting.model})
    reply = Reply(IDS, {"model": {"w": UPLOADS}}, {"size": torch.full((4,), 5.0, dtype=torch.float64)})
    kept = torch.ones(4, dtype=torch.float64)
    result: Tensor = part.observe({"phi": phi}, setting, sent, reply, kept, setting.model, gen)["phi"]
    return result


def test_the_update_of_phi_by_the_same_orders() -> None:
    """phi_i <- 0.75 phi_i + 0.25 s_i for the selected."""
    setting = task(8)
    phi = torch.linspace(0.0, 0.7, 8, dtype=torch.float64)
    found = observed(Shapley(), setting, phi, torch.Generator().manual_seed(5))
    gen = torch.Generator().manual_seed(5)
    orders = [torch.randperm(4, generator=gen).tolist() for _ in range(10)]
    value, wanted = worth(setting), phi.tolist()
    for k, i in enumerate(IDS.tolist()):
        gains = []
        for order in orders:
            before = frozenset(order[: order.index(k)])
            gains.append(value(before | {k}) - value(before))
        wanted[i] = 0.75 * wanted[i] + 0.25 * sum(gains) / 10
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)
    assert found[IDS].tolist() != pytest.approx((0.75 * phi[IDS]).tolist(), abs=1e-4)


def test_many_orders_come_near_the_exact_values() -> None:
    setting = task(8)
    wanted = exact(worth(setting), 4)
    assert max(wanted) - min(wanted) > 0.02
    part = Shapley(alpha=0.0, beta=1.0, permutations=4000)
    found = observed(part, setting, torch.zeros(8, dtype=torch.float64), torch.Generator().manual_seed(6))
    assert found[IDS].tolist() == pytest.approx(wanted, abs=0.01)
    assert found[[0, 3, 5, 7]].tolist() == [0.0] * 4
    assert float(found.sum()) == pytest.approx(worth(setting)(frozenset(range(4))) - right(setting.model["w"]))


@pytest.mark.parametrize("permutations", [1, 10, 500])
def test_a_coalition_is_scored_once(permutations: int) -> None:
    seen: list[Model] = []
    observed(Shapley(permutations=permutations), task(8, seen), torch.zeros(8).double(), torch.Generator())
    assert len(seen) == len({tuple(model["w"].tolist()) for model in seen})
    assert len(seen) <= min(2**4, 1 + 4 * permutations)
    assert permutations == 10 or len(seen) == {1: 5, 500: 16}[permutations]


def test_phi_starts_even_and_draws_by_its_softmax() -> None:
    setting, part = task(4), Shapley(fraction=0.25)
    slot = part.init(setting)
    assert slot["phi"].tolist() == [0.25] * 4
    phi = torch.tensor([0.0, 0.01, 0.02, -0.01], dtype=torch.float64)
    gen, counts = torch.Generator().manual_seed(2), [0] * 4
    for _ in range(4000):
        ids, _ = part({"phi": phi}, setting, 1, gen)
        counts[int(ids)] += 1
    odds = [1.0, 2.718281828459045, 2.718281828459045**2, 1 / 2.718281828459045]  # a point is a factor e
    assert stats.chisquare(counts, [4000 * x / sum(odds) for x in odds]).pvalue > 1e-3


def test_how_many() -> None:
    setting = task(8)
    ids, _ = Shapley(fraction=0.5)(Shapley().init(setting), setting, 1, torch.Generator())
    assert len(ids) == 4
    assert Shapley(fraction=0.5).share(setting) == 0.5


# refusals


def test_it_needs_a_validation_set() -> None:
    with pytest.raises(BadInput, match="--server-validation") as caught:
        Shapley().init(task(4, validation=False))
    assert "\n" not in str(caught.value)


def test_a_run_without_one_is_refused_and_with_one_goes(federate: Any) -> None:
    short = fk.methods.sfedavg()
    with pytest.raises(BadInput, match="samples of the server's own"):
        fk.run(fk.Experiment(short, federate((4, 5, 6)), "mlr", 2))
    data = fk.Data("digits", clients=5, server=50, seed=1)
    result = fk.run(fk.Experiment(short, data, "mlr", 2))
    assert result.federation.server is not None
    assert len(result.federation.server) == 50
    taken = {*result.federation.train.rows.tolist(), *result.federation.test.rows.tolist()}
    assert not taken & set(result.federation.server.tolist())


def test_a_method_without_a_common_model_is_refused_when_it_is_built() -> None:
    """Issue 4, bad input: 'a base method that has no single global model where one is needed ... when the method is
    built'."""
    with pytest.raises(BadInput, match="common model"):
        replace(fk.methods.fedmcsa(), select=Shapley())
