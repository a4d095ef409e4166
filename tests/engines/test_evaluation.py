"""How models are scored: by hand, whatever the blocks in which samples are looked at."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from small import network

from fedkin import evaluate
from fedkin import round as rounds
from fedkin.collaborate import Mean
from fedkin.core import tree
from fedkin.engines import Score, Simulation, Stacked, scoring
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.runs.recorder import averages
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (4, 4, 5, 6, 3, 8), (7, 0, 1, 30, 2, 7)
METHOD = Method("fedavg", Uniform(count=3), SGD(eta=0.1, steps=2, batch=4), Everyone(), Mean())


def models(like: dict[str, torch.Tensor], n: int) -> dict[str, torch.Tensor]:
    gen = torch.Generator().manual_seed(0)
    return {name: torch.randn(n, *value.shape, generator=gen) for name, value in like.items()}


@pytest.mark.parametrize("evaluated", [1, 150, 700, 2**24])
def test_each_on_its_own_samples(federate: Any, start: Any, monkeypatch: pytest.MonkeyPatch, evaluated: int) -> None:
    monkeypatch.setattr(scoring, "HELD", evaluated)
    federation = federate(TRAIN, TEST)
    engine, _, _ = start(Stacked, METHOD, federation, network())
    stack = models(engine.network.model, 6)
    for ids in (torch.arange(6), torch.tensor([1, 3, 5]), torch.tensor([1])):
        score = engine.score(tree.rows(stack, ids), ids, "test")
        for k, client in enumerate(ids.tolist()):
            rows = federation.test[client]
            out = engine.network.logits(tree.row(stack, client), {"x": federation.x[rows]})
            assert int(score.correct[k]) == int((out.argmax(1) == federation.y[rows]).sum())
            assert int(score.count[k]) == TEST[client]
            assert float(score.loss[k]) == pytest.approx(
                float(F.cross_entropy(out, federation.y[rows], reduction="sum")) if TEST[client] else 0.0, rel=1e-5
            )


@pytest.mark.parametrize("evaluated", [1, 150, 2**24])
def test_one_model_on_all(federate: Any, start: Any, monkeypatch: pytest.MonkeyPatch, evaluated: int) -> None:
    monkeypatch.setattr(scoring, "HELD", evaluated)
    federation = federate(TRAIN, TEST)
    engine, _, _ = start(Stacked, METHOD, federation, network())
    model = tree.row(models(engine.network.model, 1), 0)
    one = engine.score_one(model, "test")
    each = engine.score(tree.repeated(model, 6), torch.arange(6), "test")
    assert one.correct.tolist() == each.correct.tolist()
    assert one.count.tolist() == each.count.tolist() == list(TEST)
    torch.testing.assert_close(one.loss, each.loss, rtol=1e-5, atol=1e-5)


def test_a_model_that_is_not_finite_is_never_right(federate: Any, start: Any) -> None:
    federation = federate(TRAIN, TEST)
    engine, _, _ = start(Stacked, METHOD, federation, network())
    stack = models(engine.network.model, 6)
    stack["2.bias"][3, 0] = torch.nan
    stack["2.bias"][0, 1] = torch.inf
    score = engine.score(stack, torch.arange(6), "test")
    assert score.correct[[0, 3]].tolist() == [0, 0]
    assert score.correct[[2, 4, 5]].sum() > 0


def test_kinds(federate: Any, start: Any) -> None:
    """Validation samples and a common test set have scores of their own."""
    federation = federate(TRAIN, TEST, common=11, validation=3)
    engine, task, state = start(Stacked, METHOD, federation, network())
    state, _ = rounds.play(METHOD, task, engine, state)
    found = evaluate.score_models(METHOD, task, engine, state)
    assert set(found) == {"global", "post", "global/validation", "post/validation", "test"}
    assert found["global/validation"].count.tolist() == [3] * 6
    assert found["test"].count.tolist() == [11]
    out = engine.network.logits(state.collaborate["model"], {"x": federation.x[federation.common]})
    assert found["test"].correct.tolist() == [int((out.argmax(1) == federation.y[federation.common]).sum())]


@pytest.mark.parametrize(("name", "value"), [("BLOCK", 4), ("HELD", 4 * 4 * 39 + 1), ("HELD", 1)])
def test_many_clients_are_judged_in_blocks(
    federate: Any, start: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    """Of so many clients, or of as many as have so many bytes of models."""
    federation = federate(TRAIN, TEST)
    engine, task, state = start(Stacked, METHOD, federation, network())
    whole = evaluate.score_models(METHOD, task, engine, state)
    monkeypatch.setattr(evaluate, name, value)
    sizes: list[int] = []
    whole_of = evaluate.personal_models

    def counted(method: Method, task: Any, engine: Simulation, state: Any, ids: torch.Tensor) -> Any:
        sizes.append(len(ids))
        return whole_of(method, task, engine, state, ids)

    monkeypatch.setattr(evaluate, "personal_models", counted)
    blocks = evaluate.score_models(METHOD, task, engine, state)
    assert sizes == ([1] * 6 if value == 1 else [4, 2])
    assert whole["post"].correct.tolist() == blocks["post"].correct.tolist()
    torch.testing.assert_close(whole["post"].loss, blocks["post"].loss)


def test_averages() -> None:
    """macro: over clients that have samples; micro: over samples."""
    score = Score(torch.tensor([1, 0, 9]), torch.zeros(3), torch.tensor([2, 0, 10]))
    assert averages(score) == {"macro": pytest.approx((0.5 + 0.9) / 2), "micro": pytest.approx(10 / 12)}
    nobody = Score(torch.zeros(2), torch.zeros(2), torch.zeros(2))
    assert averages(nobody) == {"macro": None, "micro": None}
