"""Our LSTM without autograd: the same gradients, steps and outputs as its module has, on both ways."""

from __future__ import annotations

import copy
import platform
import subprocess
import sys
from typing import Any

import pytest
import torch
from small import LENGTH, TOKENS, learnable
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.engines import Stacked, recurrence
from fedkin.engines.fused_lstm import FusedLSTM
from fedkin.engines.network import Network, StackedObjective
from fedkin.engines.recurrence import Batched, Looped, Way
from fedkin.messages import Sent
from fedkin.models import build
from fedkin.models.recurrent import LSTM
from fedkin.train import SGD, Moreau, Prox, Scaffold, TwoStreams

CLIENTS, BATCH, TIMES, VOCABULARY, CLASSES = 3, 4, 7, 9, 5
ONEDNN = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
WAYS = [  # and the relative error that rounding may make
    pytest.param(Batched(), torch.float64, 1e-10, id="batched"),
    pytest.param(Batched(), torch.float32, 1e-5, id="batched in float32"),
    pytest.param(Looped(), torch.float32, 1e-5, id="looped", marks=ONEDNN),
]


def network(layers: int, dtype: torch.dtype, way: Way | None = None, classes: int = CLASSES) -> Network:
    module = build(f"lstm:6,{layers},3", (TIMES,), classes, 0, VOCABULARY).to(dtype)
    found = Network(module, torch.ones(TIMES, dtype=torch.int64), BATCH)
    assert isinstance(found.fused, FusedLSTM)
    found.fused.cells = way or found.fused.cells
    return found


def fused(net: Network) -> FusedLSTM:
    assert isinstance(net.fused, FusedLSTM)
    return net.fused


def models(net: Network) -> Model:
    """Large enough for every gate to be open at some times and shut at others."""
    gen = torch.Generator().manual_seed(3)
    draw = lambda value: torch.randn(CLIENTS, *value.shape, generator=gen, dtype=torch.float64)  # noqa: E731
    return {name: (0.7 * draw(value)).to(value.dtype) for name, value in net.model.items()}


def texts(padded: bool) -> Tensor:
    """Padded: samples that begin early and late, one that is nothing but padding, and an unknown token in the middle.
    All samples of the first client begin late."""
    x = torch.randint(1, VOCABULARY, (CLIENTS, BATCH, TIMES), generator=torch.Generator().manual_seed(1))
    if padded:
        x[0, :, :2], x[0, 3, :5], x[1, 0, :3], x[1, 2], x[2, 1, :1], x[2, 3, 4] = 0, 0, 0, 0, 0, 0
    return x


def batch_of(padded: bool, weighted: bool, dtype: torch.dtype) -> Batch:
    batch = {"x": texts(padded), "y": torch.arange(CLIENTS * BATCH).view(CLIENTS, BATCH) % CLASSES}
    if weighted:
        batch["weight"] = torch.tensor([[1, 2, 0.5, 1], [1, 1, 0, 0], [0, 0, 0, 3]], dtype=dtype)
    return batch


def doubled(values: Model) -> Model:
    return {name: value.double() if value.is_floating_point() else value for name, value in values.items()}


def by_autograd(net: Network, model: Model, batch: Batch) -> Model:
    """The gradients of the module itself, in float64 and client by client."""
    module = copy.deepcopy(net.module).double().requires_grad_()
    exact = Network(module, torch.ones(TIMES, dtype=torch.int64), BATCH)
    rows = [(tree.row(doubled(model), i), tree.row(doubled(batch), i)) for i in range(len(batch["x"]))]
    return tree.stacked([exact.grad(*row) for row in rows])


def near(found: Model, wanted: Model, error: float) -> None:
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        for one, other in zip(found[name].double(), value.double(), strict=True):
            assert (one - other).norm() <= error * other.norm(), name


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("way", "dtype", "error"), WAYS)
def test_the_gradient_is_autograds(
    monkeypatch: pytest.MonkeyPatch,
    way: Way,
    dtype: torch.dtype,
    error: float,
    layers: int,
    padded: bool,
    weighted: bool,
) -> None:
    net = network(layers, dtype, way)
    model, batch = models(net), batch_of(padded, weighted, dtype)
    wanted = by_autograd(net, model, batch)
    monkeypatch.setattr(torch.autograd, "grad", None)
    found = StackedObjective(net).grad(model, batch)
    assert list(found) == list(model)
    near(found, wanted, error)


@pytest.mark.parametrize("keep", [1.0, 0.9])
@pytest.mark.parametrize(("way", "dtype", "error"), WAYS)
def test_the_gradient_is_added_to_the_model_itself_or_to_another(
    way: Way, dtype: torch.dtype, error: float, keep: float
) -> None:
    net = network(2, dtype, way)
    model, batch = models(net), batch_of(True, True, dtype)
    slope = by_autograd(net, model, batch)
    for start in (model, tree.mapped(lambda value: value.flip(0).contiguous(), model)):
        into = tree.mapped(torch.clone, start)
        StackedObjective(net).add_grad(into, keep, -0.5, into if start is model else model, batch)
        near(into, tree.mapped(lambda v, g: keep * v.double() - 0.5 * g, start, slope), error)


@pytest.mark.parametrize(("way", "dtype", "error"), WAYS)
def test_samples_that_are_embedded_already_and_numbers_as_targets(way: Way, dtype: torch.dtype, error: float) -> None:
    """The embedding is not read then, so its gradient is zero."""
    net = network(2, dtype, way, classes=1)
    gen = torch.Generator().manual_seed(5)
    x, y = torch.randn(CLIENTS, BATCH, TIMES, 3, generator=gen), torch.randn(CLIENTS, BATCH, generator=gen)
    model, batch = models(net), {"x": x.to(dtype), "y": y.to(dtype)}
    found = fused(net).grad(model, batch)
    assert not found["embedding.weight"].any()
    near(found, by_autograd(net, model, batch), error)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("way", "dtype", "error"), WAYS)
def test_outputs_without_autograd_are_the_modules(way: Way, dtype: torch.dtype, error: float, padded: bool) -> None:
    net = network(2, dtype, way)
    model, batch = models(net), {"x": texts(padded)}
    wanted = torch.stack([net.logits(tree.row(model, i), tree.row(batch, i)) for i in range(CLIENTS)])
    with torch.no_grad():
        found = net.stacked_logits(model, batch)
        shared = net.stacked_logits(tree.repeated(tree.row(model, 1), CLIENTS), batch)[1]
    near({"logits": found}, {"logits": wanted}, error)
    assert torch.equal(shared, found[1])
    leaves = tree.mapped(lambda value: value.clone().requires_grad_(), model)
    assert net.stacked_logits(leaves, batch).requires_grad


@pytest.mark.parametrize(("way", "dtype", "error"), WAYS)
def test_a_clients_bits_do_not_depend_on_its_chunk(way: Way, dtype: torch.dtype, error: float) -> None:
    net = network(2, dtype, way)
    model, batch = models(net), batch_of(True, False, dtype)
    whole = fused(net).grad(model, batch)
    for at in (slice(0, 1), slice(1, 2), slice(1, 3)):
        found = fused(net).grad(*(tree.mapped(torch.clone, tree.rows(stack, at)) for stack in (model, batch)))
        assert all(torch.equal(found[name], value[at]) for name, value in whole.items())


@ONEDNN
def test_times_at_which_all_samples_are_padding_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    net, seen, real = network(1, torch.float32, Looped()), [], Looped.run

    def seeing(way: Looped, layer: Any, x: Tensor, begun: Tensor | None) -> Any:
        seen.append((x.shape[1], begun is not None))
        return real(way, layer, x, begun)

    monkeypatch.setattr(Looped, "run", seeing)
    x = texts(padded=True)
    x[1] = 0
    fused(net).grad(models(net), batch_of(True, False, torch.float32) | {"x": x})
    assert seen == [(TIMES - 2, True), (TIMES, True), (TIMES, True)]  # the second has nothing but padding


@ONEDNN
def test_onednn_is_used_where_it_can_be() -> None:
    assert isinstance(fused(network(1, torch.float32)).cells, Looped)
    assert isinstance(fused(network(1, torch.float64)).cells, Batched)


class Own(LSTM):
    """A user's LSTM, which may do anything."""


class OwnHead(nn.Linear):
    """A user's last layer, which may do anything."""


def test_only_our_lstm_fits() -> None:
    sizes = (VOCABULARY, 3, 6, 1, CLASSES)
    frozen, without_bias, other = LSTM(*sizes), LSTM(*sizes), LSTM(*sizes)
    frozen.embedding.weight.requires_grad_(False)
    without_bias.head, other.head = nn.Linear(6, CLASSES, bias=False), OwnHead(6, CLASSES)
    for module in (Own(*sizes), frozen, without_bias, other):
        assert Network(module, torch.ones(TIMES, dtype=torch.int64), BATCH).fused is None


PARTS = [SGD(steps=2, batch=3, momentum=0.5), Prox(steps=2, batch=3), Moreau(steps=2, batch=3)]
PARTS += [Scaffold(steps=2, batch=3), TwoStreams(steps=2, batch=3)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_parts_that_descend_use_it_on_the_stacked_engine(
    monkeypatch: pytest.MonkeyPatch, part: SGD, dtype: torch.dtype
) -> None:
    """In chunks of any size, to the bit."""
    federation = learnable(text=True)
    module, ids = build("lstm:6,2,4", (LENGTH,), federation.classes, 0, TOKENS), torch.arange(3)
    monkeypatch.setattr(torch.autograd, "grad", None)
    replies = []
    for chunk in (1, 2, 3):
        engine = Stacked(federation, module, part, 0, chunk=chunk, dtype=dtype)
        assert engine.divisible
        sent = dict.fromkeys(("model", "control"), engine.network.model)
        replies.append(engine.train(part, Sent(ids, shared=sent), ids, 1).upload["model"])
        for name, value in replies[-1].items():
            assert not torch.equal(value, engine.network.model[name].expand_as(value)), name
    assert all(torch.equal(one[name], value) for one in replies[1:] for name, value in replies[0].items())


def test_scoring_does_without_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    federation = learnable(text=True)
    engine = Stacked(federation, build("lstm:6,2,4", (LENGTH,), federation.classes, 0, TOKENS), SGD(), 0)
    model, ids = engine.network.model, torch.arange(3)
    own = tree.mapped(lambda value: torch.stack([value * (1 + client) for client in range(3)]), model)
    samples = [{"x": federation.x[rows]} for rows in federation.test.lists()]
    one = torch.cat([engine.network.logits(model, batch) for batch in samples])
    each = torch.cat([engine.network.logits(tree.row(own, i), batch) for i, batch in enumerate(samples)])
    monkeypatch.setattr(LSTM, "forward", None)
    torch.testing.assert_close(engine.scoring.outputs_one(model, federation.test), one)
    torch.testing.assert_close(engine.scoring.outputs(own, ids, federation.test), each)


FAULTS = """
import resource, torch
from fedkin.engines.recurrence import keep_freed_memory

keep_freed_memory()
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.ones(3 * 2**20) for _ in range(4)]  # 48 MB
    del held
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep freed memory as they like")
def test_freed_memory_is_used_again() -> None:
    """A page that the system hands out is a fault. The second time there are 12,000 of them, as many as the first time,
    where memory was returned to the system, and 3,000 at most where it was kept."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 6000


@ONEDNN
def test_onednn_finds_the_memory_of_the_step_before(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(recurrence, "keep_freed_memory", lambda: asked.append(1))
    network(1, torch.float32)
    assert asked == [1]
