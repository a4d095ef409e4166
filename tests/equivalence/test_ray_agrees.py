"""The engine `ray` with two actors is the engine `stacked`: the same selections, batches and picks, and the same
models, scores and outputs to last digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from seen import agree, played
from test_engines_agree import EVERY, SIZES, mlp

from fedkin.core import tree
from fedkin.engines import Ray, Score, Stacked
from fedkin.engines.cluster.reply import Apart
from fedkin.messages import Reply, Sent
from fedkin.parts import Train
from fedkin.privacy import Guard, Privacy, protected
from fedkin.train import APFL, SGD, TwoStreams

NAMED = (
    "fedavg",
    "fedmcsa",
    "fedacs",
    "adafl",
    "pfedre",
    "scaffold",
    "ditto",
    "fedmix",
    "apfl",
    "perfedavg",
    "pooled",
    "kin",
)
IDS = torch.tensor([0, 2, 3, 5, 8])
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11, "equal_nan": True}


@pytest.mark.parametrize("name", NAMED)
def test_two_actors_are_stacked(ray_here: Any, federate: Any, start: Any, name: str) -> None:
    method, federation = EVERY[name], federate(SIZES, shape=(6,))
    options = {"chunk": 4, "dtype": torch.float64}
    stacked = played(start(Stacked, method, federation, mlp(), **options), method, evaluates=True)
    actors = played(start(Ray, method, federation, mlp(), actors=2, **options), method, evaluates=True)
    agree(stacked, actors, 1e-7)


@pytest.mark.parametrize("name", ["scaffold", "fedmcsa"])
def test_two_actors_draw_the_noise_of_stacked(ray_here: Any, federate: Any, start: Any, name: str) -> None:
    privacy = Privacy(clip=0.5, noise=0.8)
    method, federation = protected(EVERY[name], privacy), federate(SIZES, shape=(6,))
    options = {"chunk": 4, "dtype": torch.float64, "guard": Guard(privacy, b"3")}
    stacked = played(start(Stacked, method, federation, mlp(), **options), method)
    actors = played(start(Ray, method, federation, mlp(), actors=2, **options), method)
    agree(stacked, actors, 1e-7)


@pytest.fixture
def both(ray_here: Any, federate: Any, start: Any) -> Any:
    """`both(part)`: a stacked engine, the same with two actors, and a message with a model for each of the clients."""

    def build(part: Train, **more: Any) -> tuple[Stacked, Ray, Sent]:
        federation = federate(SIZES, test=(2, 0, 4, 1, 3, 3, 5, 2, 6), validation=2, common=7, shape=(6,))
        federation = replace(federation, target_scale=torch.arange(1.0, 10.0), clients=tuple("abcdefghi"))
        options = {"chunk": 2, "dtype": torch.float64} | more
        method = replace(EVERY["fedavg"], train=part)
        engines = [start(Stacked, method, federation, mlp(), **options)[0]]
        engines += [start(Ray, method, federation, mlp(), actors=2, **options)[0]]
        gen = torch.Generator().manual_seed(3)
        drawn = [
            tree.mapped(lambda v: torch.randn(v.shape, generator=gen, dtype=v.dtype), engines[0].network.model)
            for _ in IDS
        ]
        return *engines, Sent(IDS, own={"model": tree.stacked(drawn)})  # type: ignore[return-value]

    return build


def same(one: Any, other: Any) -> None:
    if isinstance(one, Score):
        assert torch.equal(one.correct, other.correct)
        assert torch.equal(one.count, other.count)
        one, other = {"loss": one.loss, **one.values}, {"loss": other.loss, **other.values}
    torch.testing.assert_close(one, other, **CLOSE)


def test_every_question_gets_the_same_answer(both: Any) -> None:
    part = APFL(eta=0.2, steps=2, batch=4, mix="output", adapt="every")
    stacked, actors, sent = both(part)
    models, one = sent.own["model"], tree.row(sent.own["model"], 1)
    replies = [engine.train(part, sent, torch.arange(9), 1, IDS[1:], ("loss",)) for engine in (stacked, actors)]
    same(replies[0].ids, replies[1].ids)
    same(replies[0].report, replies[1].report)
    same(replies[0].upload, replies[1].upload)
    questions: list[Any] = [lambda engine: engine.current(IDS, "model")]
    questions += [lambda engine: engine.private(), lambda engine: engine.personal(part, sent, IDS, 1)]
    questions += [lambda engine: engine.survey(part, sent, IDS, ("loss",)).report]
    questions += [lambda engine: engine.gradients(models, IDS), lambda engine: engine.score_common(one)]
    for split in ("train", "test", "validation"):
        questions += [lambda engine, split=split: engine.score(models, IDS, split)]
        questions += [lambda engine, split=split: engine.score_one(one, split)]
        questions += [lambda engine, split=split: engine.outputs(models, IDS, split)]
        questions += [lambda engine, split=split: engine.outputs_one(one, split)]
    personal = stacked.personal(part, sent, IDS, 1)
    questions += [lambda engine: engine.score(personal, IDS, "test", part)]
    for question in questions:
        same(question(stacked), question(actors))
    assert actors.splits == stacked.splits
    assert actors.has_common_test


def test_a_mean_moves_partial_sums_and_no_uploads(both: Any) -> None:
    part = SGD(eta=0.1, steps=3, batch=4)
    stacked, actors, sent = both(part)
    one, apart = (engine.train(part, sent, IDS, 1) for engine in (stacked, actors))
    weight = torch.tensor([1.0, 0.0, 2.0, 0.5, 3.0])
    assert isinstance(apart, Apart)
    same(one.mean("model", weight), apart.mean("model", weight))
    same(one.finite(), apart.finite())
    assert one.size() == apart.size()
    assert "upload" not in vars(apart), "nobody looked at single uploads"
    same(one.upload, apart.upload)
    same(one.mean("model", weight), apart.mean("model", weight))
    some = apart.only(torch.tensor([True, False, True, True, False]))
    assert type(some) is Reply
    same(some.upload["model"], tree.rows(one.upload["model"], torch.tensor([0, 2, 3])))


def test_a_model_that_is_not_finite_is_dropped(both: Any) -> None:
    part = TwoStreams(eta=0.1, steps=2, batch=4)
    stacked, actors, sent = both(part)
    broken = tree.mapped(lambda value: value.index_fill(0, torch.tensor([1]), torch.nan), sent.own["model"])
    replies = [engine.train(part, Sent(IDS, own={"model": broken}), IDS, 1) for engine in (stacked, actors)]
    for reply in replies:
        assert reply.broken == (2,)
        assert reply.finite().tolist() == [True, False, True, True, True]
    same(stacked.private(), actors.private())


def test_what_was_private_comes_back(both: Any) -> None:
    part = TwoStreams(eta=0.1, steps=2, batch=4)
    stacked, actors, sent = both(part)
    actors.train(part, sent, IDS, 1)
    kept = tree.each(lambda model: tree.mapped(torch.clone, model), actors.private())
    actors.train(part, sent, IDS[1:4], 2)
    stacked.restore(kept)
    actors.restore(kept)
    same(kept, actors.private())
    for engine in (stacked, actors):
        engine.train(part, sent, IDS[2:], 2)
        engine.train(part, sent, IDS, 3, keep=False)
    same(stacked.private(), actors.private())
