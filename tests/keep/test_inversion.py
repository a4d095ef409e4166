"""What a client's update says of its samples: the target, J and its slopes, and many inversions at once."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedkin.collaborate import Mean
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.engines import Stacked
from fedkin.keep import Everyone, inversion
from fedkin.keep.inversion import TIMES, balanced, inverted, mismatch, recorded, targets
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

FEATURES, CLASSES = 5, 3
Logits = Callable[[Model, dict[str, Tensor]], Tensor]


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(FEATURES, CLASSES),
    "deep": lambda: nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, CLASSES)),
    "bent": lambda: nn.Sequential(nn.Linear(FEATURES, 6), nn.ReLU(), nn.Linear(6, CLASSES)),
    "pictures": lambda: nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, CLASSES)
    ),
}


def shape(name: str) -> tuple[int, ...]:
    return (1, 6, 6) if name == "pictures" else (FEATURES,)


def pure(module: nn.Module) -> Logits:
    return lambda model, batch: functional_call(module, model, (batch["x"],))


def stacked(name: str, m: int, dtype: torch.dtype = torch.float64) -> tuple[Logits, Model]:
    """m networks of this kind, all with other numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        modules = [NETWORKS[name]().to(dtype) for _ in range(m)]
    models = [{key: value.detach().clone() for key, value in module.named_parameters()} for module in modules]
    return pure(modules[0]), tree.stacked(models)


def samples(k: int, *shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(k, *shape, generator=gen, dtype=torch.float64)
    return x.to(dtype), torch.randint(CLASSES, (k,), generator=gen)


def gradient(logits: Logits, model: Model, x: Tensor, y: Tensor) -> Model:
    leaves = {name: value.clone().requires_grad_() for name, value in model.items()}
    loss = F.cross_entropy(logits(leaves, {"x": x}), y)
    return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def goals(logits: Logits, models: Model, *shape: int, k: int = 7) -> Model:
    """The gradient of each client's model on samples of its own."""
    rows = []
    for i in range(len(next(iter(models.values())))):
        x, y = samples(k, *shape, seed=50 + i)
        rows.append(gradient(logits, tree.row(models, i), x.to(next(iter(models.values())).dtype), y))
    return tree.stacked(rows)


def problem(name: str, m: int, dtype: torch.dtype = torch.float64) -> tuple[Logits, Model, Model, Tensor, Tensor]:
    """The network, models and targets of m clients, and the samples and labels they all start from."""
    logits, models = stacked(name, m, dtype)
    y = balanced(CLASSES, 2)
    return logits, models, goals(logits, models, *shape(name)), samples(len(y), *shape(name), seed=9, dtype=dtype)[0], y


def same(found: Tensor, wanted: Tensor, atol: float) -> None:
    assert found.shape == wanted.shape
    assert float((found - wanted).abs().max()) <= atol


@pytest.mark.parametrize(
    ("classes", "each", "wanted"), [(3, 1, [0, 1, 2]), (2, 3, [0, 0, 0, 1, 1, 1]), (3, 2, [0, 0, 1, 1, 2, 2])]
)
def test_labels_are_class_by_class(classes: int, each: int, wanted: list[int]) -> None:
    found = balanced(classes, each)
    assert found.dtype == torch.int64
    assert found.tolist() == wanted


# the target (A-R1, A-R2)


def pair(m: int) -> tuple[Model, Model, Tensor, Tensor]:
    before, after = stacked("deep", m)[1], tree.mapped(lambda value: value.flip(0) * 1.5, stacked("deep", m)[1])
    return before, after, torch.linspace(0.1, 0.3, m).double(), torch.arange(1, m + 1).double()


def length(model: Model, i: int) -> float:
    return sqrt(sum(float(value[i].pow(2).sum()) for value in model.values()))


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_targets(scale: float) -> None:
    before, after, rate, steps = pair(4)
    corrected = targets(before, after, rate, steps, scale)
    literal = targets(before, after, rate, steps, scale, literal=True)
    for name, value in before.items():
        for i in range(4):
            up = after[name][i] - value[i]
            same(corrected[name][i], -scale * up / (rate[i] * steps[i]), 1e-12)
            same(literal[name][i], scale * up / steps[i], 1e-12)


@pytest.mark.parametrize("m", [1, 4, 5])
@pytest.mark.parametrize("literal", [False, True])
def test_normalised_targets(m: int, literal: bool) -> None:
    """All are divided by one number, the median of the lengths of whole models; of an even number of them the mean of
    the two in the middle."""
    before, after, rate, steps = pair(m)
    plain = targets(before, after, rate, steps, 3.0, literal=literal)
    found = targets(before, after, rate, steps, 3.0, literal=literal, normalise=True)
    lengths = sorted(length(plain, i) for i in range(m))
    middle = (lengths[(m - 1) // 2] + lengths[m // 2]) / 2
    for name, value in plain.items():
        same(found[name], value / middle, 1e-12)
    again = targets(before, after, rate, steps, 1.0, literal=literal, normalise=True)
    for name, value in found.items():
        same(again[name], value, 1e-12)


def test_who_did_not_move_has_a_target_of_zero() -> None:
    before, _, rate, steps = pair(3)
    for normalise in (False, True):
        found = targets(before, before, rate, steps, normalise=normalise)
        assert all(torch.equal(value, torch.zeros_like(value)) for value in found.values())


def test_targets_keep_the_models_numbers() -> None:
    before, after, rate, steps = pair(3)
    single = [tree.mapped(lambda value: value.float(), model) for model in (before, after)]
    for normalise in (False, True):
        found = targets(*single, rate, steps, normalise=normalise)
        assert {value.dtype for value in found.values()} == {torch.float32}


# J


@pytest.mark.parametrize("name", NETWORKS)
def test_one_step_on_all_samples_is_undone(name: str) -> None:
    """Section 5, item 4: J of the samples themselves is 0 with the sign corrected, and not with the literal one."""
    logits, models = stacked(name, 1)
    x, y = samples(6, *shape(name))
    model, rate = tree.row(models, 0), 0.1
    g = gradient(logits, model, x, y)
    after = {key: (value - rate * g[key])[None] for key, value in model.items()}
    one = torch.ones(1, dtype=torch.float64)
    right = tree.row(targets(models, after, rate * one, one), 0)
    wrong = tree.row(targets(models, after, rate * one, one, literal=True), 0)
    found = mismatch(logits, model, x, y, right)
    assert found.dim() == 0
    assert 0.0 <= float(found) < 1e-20
    square = sum(float(value.pow(2).sum()) for value in g.values())
    assert float(mismatch(logits, model, x, y, wrong)) == pytest.approx((1.0 + rate) ** 2 * square, rel=1e-10)
    assert square > 1e-3
    assert float(mismatch(logits, model, x.flip(0) + 0.1, y, right)) > 1e-6


def test_the_step_of_a_client_is_undone(federate: Any, start: Any) -> None:
    """The same of what an engine's clients upload and report."""
    federation = federate((4, 9, 6), 2, (FEATURES,), CLASSES)
    train = SGD(eta=0.2, epochs=1, steps=None, batch=16, rate_decay=0.5)
    method = Method("tried", Uniform(fraction=1.0), train, Everyone(), Mean())
    play, task, state = start(Stacked, method, federation, NETWORKS["deep"](), dtype=torch.float64)
    everyone = torch.arange(3)
    sent, _ = method.collaborate.send(state.collaborate, task, everyone, None)
    reply = play.train(train, sent, everyone, 3)
    before = sent.to(everyone)["model"]
    assert reply.report["steps"].tolist() == [1.0] * 3
    for literal in (False, True):
        found = targets(before, reply.upload["model"], reply.report["rate"], reply.report["steps"], literal=literal)
        for i in range(3):
            rows = federation.train[i]
            x, y = federation.x[rows].double(), federation.y[rows]
            j = float(mismatch(play.network.logits, task.model, x, y, tree.row(found, i)))
            assert j > 1e-3 if literal else j < 1e-20


@pytest.mark.parametrize("name", NETWORKS)
def test_slopes_of_j_by_central_differences(name: str) -> None:
    logits, models = stacked(name, 2)
    goal = tree.row(goals(logits, models, *shape(name)), 1)
    model = tree.row(models, 0)
    x, y = samples(3, *shape(name))
    x.requires_grad_()
    found = torch.autograd.grad(mismatch(logits, model, x, y, goal), x)[0].flatten()
    flat, eps = x.detach().flatten(), 1e-5
    for k in range(len(flat)):
        step = torch.zeros_like(flat)
        step[k] = eps
        up, down = (float(mismatch(logits, model, at.view(x.shape), y, goal)) for at in (flat + step, flat - step))
        assert float(found[k]) == pytest.approx((up - down) / (2 * eps), rel=1e-5, abs=1e-8)
    assert float(found.abs().max()) > 1e-3


# inversion


@pytest.mark.parametrize("held", [inversion.HELD, 60])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_many_at_once_are_one_at_a_time(
    name: str, dtype: torch.dtype, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once, in chunks and alone. A convolution of many networks is another sum than that of one."""
    monkeypatch.setattr(inversion, "HELD", held)
    atol = 1e-10 if dtype == torch.float64 else 2e-5 if name == "pictures" else 1e-6
    logits, models, goal, start, y = problem(name, 6, dtype)
    found = inverted(logits, models, goal, start, y, 12, 0.1)
    assert found.shape == (6, *start.shape)
    assert found.dtype == start.dtype
    for i in range(0, 6, 2):
        alone = [tree.rows(each, slice(i, i + 1)) for each in (models, goal)]
        same(found[i : i + 1], inverted(logits, *alone, start, y, 12, 0.1), atol)


@pytest.mark.parametrize(("share", "chunks"), [(0.5, [1] * 5), (2.5, [2, 2, 1]), (4.5, [4, 1]), (9.0, [5])])
def test_clients_at_once_take_what_they_may(share: float, chunks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    logits, models, goal, start, y = problem("deep", 5)
    one = tree.row(models, 0)
    each = recorded(logits, one, start, y) + tree.size([one])[1]
    monkeypatch.setattr(inversion, "HELD", int(share * TIMES * each))
    found: list[int] = []
    descended = inversion.descended

    def counted(logits: Logits, model: Model, *rest: Any) -> Tensor:
        found.append(len(next(iter(model.values()))))
        return descended(logits, model, *rest)

    monkeypatch.setattr(inversion, "descended", counted)
    inverted(logits, models, goal, start, y, 1, 0.1)
    assert found == chunks


def test_what_a_backward_pass_keeps() -> None:
    """The input and the log-probabilities of a linear layer, not its weights; the labels are whole numbers."""
    weight = torch.zeros(CLASSES, 500, dtype=torch.float64)
    x, y = torch.zeros(7, 500, dtype=torch.float64), torch.zeros(7, dtype=torch.int64)
    numbers = recorded(lambda model, batch: batch["x"] @ model["w"].mT, {"w": weight}, x, y) / 8
    assert 7 * (500 + CLASSES) <= numbers <= 7 * (500 + CLASSES + 1) + 1


def test_one_model_for_all_is_as_many_copies() -> None:
    logits, models, goal, start, y = problem("deep", 3)
    shared = tree.repeated(tree.row(models, 1), 3)
    copies = tree.mapped(torch.clone, {k: v.contiguous() for k, v in shared.items()})
    same(inverted(logits, shared, goal, start, y, 12, 0.1), inverted(logits, copies, goal, start, y, 12, 0.1), 1e-10)


@pytest.mark.parametrize("name", NETWORKS)
def test_j_falls(name: str) -> None:
    logits, models, goal, start, y = problem(name, 4)
    found = inverted(logits, models, goal, start, y, 100, 0.1)
    for i in range(4):
        model, wanted = tree.row(models, i), tree.row(goal, i)
        before, after = (float(mismatch(logits, model, x, y, wanted)) for x in (start, found[i]))
        assert after < 0.5 * before


def test_nothing_is_changed() -> None:
    logits, models, goal, start, y = problem("deep", 2)
    copies = start.clone(), {k: v.clone() for k, v in models.items()}, {k: v.clone() for k, v in goal.items()}
    found = inverted(logits, models, goal, start, y, 3, 0.1)
    assert torch.equal(start, copies[0])
    assert all(torch.equal(models[k], copies[1][k]) and torch.equal(goal[k], copies[2][k]) for k in models)
    assert all(value.grad is None and not value.requires_grad for value in [start, *models.values(), *goal.values()])
    assert torch.equal(inverted(logits, models, goal, start, y, 3, 0.1), found)
    assert torch.equal(inverted(logits, models, goal, start, y, 0, 0.1), start.expand(2, *start.shape))


def test_a_client_at_its_target_stays() -> None:
    """Samples that give the target already have J = 0 and no slope."""
    logits, models = stacked("deep", 1)
    y = balanced(CLASSES, 2)
    start = samples(len(y), FEATURES)[0]
    goal = tree.stacked([gradient(logits, tree.row(models, 0), start, y)])
    found = inverted(logits, models, goal, start, y, 1, 0.1)
    assert float((found[0] - start).abs().max()) < 1e-6
