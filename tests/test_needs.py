"""What parts need of each other, and what a collaborate part gives to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.collaborate import ComponentAttention, Mean, MeanBefore, Nothing, SimilarityThreshold
from fedkin.core.tree import Batch, Message, Model
from fedkin.evaluate import KINDS, kinds_of
from fedkin.keep import Everyone, Krum, Oracle
from fedkin.messages import Objective, Slot
from fedkin.parts import Gives, Method, Needs, redefines
from fedkin.select import Active, Attention, Constant, Dismiss, Shapley, Steps, Uniform
from fedkin.train import APFL, MAML, SGD, Moreau, Prox

TASK = fk.Task(
    4,
    torch.tensor([1, 2, 3, 4]),
    2,
    {"w": torch.ones(3)},
    lambda model, batch: torch.zeros(()),
    validation={"x": torch.zeros(7, 1), "y": torch.zeros(7)},
)


def method(
    select: fk.Select, collaborate: fk.Collaborate, keep: fk.Keep | None = None, train: fk.Train | None = None
) -> Method:
    return Method("toy", select, train or SGD(), keep or Everyone(), collaborate)


def test_needs_are_merged() -> None:
    assert Needs() | Needs() == Needs()
    one, other = Needs(replies=True, reports=("loss", "size")), Needs(truth=True, reports=("norm", "loss"))
    assert one | other == Needs(replies=True, truth=True, reports=("loss", "size", "norm"))


def test_a_method_needs_what_its_parts_need() -> None:
    whole = method(Attention(0.9, Steps()), ComponentAttention(), Oracle(), Prox(start="own"))
    assert whole.needs == Needs(replies=True, rounds=True, truth=True, current=True, own_model=True, start=True)
    assert method(Uniform(count=1), Nothing()).needs == Needs()
    assert method(Active(), Mean()).needs == Needs(replies=True, reports=("loss",), survey=True)


@pytest.mark.parametrize(
    ("part", "needs"),
    [
        (Attention(0.9, 0.1), Needs(replies=True, start=True)),
        (Attention(0.9, Constant()), Needs(replies=True, start=True)),
        (Shapley(), Needs(replies=True, common_model=True, whole_model=True, start=True, classes=True)),
        (Krum(), Needs(replies=True, start=True)),
        (Everyone(), Needs()),
        (Oracle(), Needs(replies=True, truth=True)),
        (Prox(), Needs()),
        (MeanBefore(), Needs(current=True)),
    ],
)
def test_needs_of_single_parts(part: Any, needs: Needs) -> None:
    assert part.needs == needs


@pytest.mark.parametrize(
    ("part", "gives"),
    [
        (Mean(), Gives(common_model=True)),
        (MeanBefore(), Gives(common_model=True, own_model=True)),
        (ComponentAttention(), Gives(own_model=True)),
        (Nothing(), Gives(replies=False, own_model=True)),
    ],
)
def test_what_a_collaborate_part_gives(part: fk.Collaborate, gives: Gives) -> None:
    assert part.gives == gives


def test_a_users_part_with_a_model_gives_it() -> None:
    @dataclass(frozen=True)
    class Same(fk.Collaborate):
        def model(self, slot: Slot) -> Model:
            return {}

    assert Same().gives == Gives(common_model=True)
    method(Shapley(), Same())


@pytest.mark.parametrize("base", [Attention(), Active()])
def test_dismiss_needs_replies_where_its_base_does(base: fk.Select) -> None:
    for select in (base, Dismiss(base=base)):
        with pytest.raises(fk.BadInput, match="nothing is ever sent"):
            method(select, Nothing())
        method(select, Mean())


def test_dismiss_passes_on_the_cautions_of_its_base() -> None:
    said = Dismiss(base=Shapley()).cautions(TASK)
    assert said == Shapley().cautions(TASK)
    assert "7 clean samples" in said[0]
    assert Dismiss(base=Uniform(count=2)).cautions(TASK) == []


@pytest.mark.parametrize("collaborate", [MeanBefore(), ComponentAttention(), Nothing()])
def test_a_common_model_is_one_that_no_client_holds_alone(collaborate: fk.Collaborate) -> None:
    with pytest.raises(fk.BadInput, match="needs one common model"):
        method(Shapley(), collaborate)


def test_any_train_part_may_need_models_of_the_clients() -> None:
    @dataclass(frozen=True)
    class Mine(SGD):
        @property
        def needs(self) -> Needs:
            return Needs(own_model=True)

    method(Uniform(count=1), ComponentAttention(), train=Mine())
    with pytest.raises(fk.BadInput, match="clients cannot start from their own model, because Mean gives them none"):
        method(Uniform(count=1), Mean(), train=Mine())


def test_what_a_train_part_says_itself() -> None:
    @dataclass(frozen=True)
    class Own(SGD):
        def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
            return carry

    said = {kind: (kind().steps_by_descent, kind().has_personal_model, kind().predicts_itself) for kind in (SGD, Own)}
    assert said == {SGD: (True, False, False), Own: (False, False, False)}
    assert (APFL().has_personal_model, APFL().predicts_itself) == (True, False)
    assert APFL(mix="output").predicts_itself
    assert (MAML().steps_by_descent, MAML().has_personal_model, MAML().predicts_itself) == (False, True, False)
    assert Moreau().steps_by_descent
    assert redefines(Own(), fk.Train.step)
    assert not redefines(Own(), Own.step)


def test_kinds_of_accuracy() -> None:
    found = [method(Uniform(count=1), part) for part in (Mean(), MeanBefore(), ComponentAttention(), Nothing())]
    assert [kinds_of(one, common=True) for one in found] == [
        ("post", "global", "test"),
        KINDS,
        ("post", "recv"),
        ("post",),
    ]
    assert [kinds_of(one, common=False) for one in found][:2] == [("post", "global"), ("post", "global", "recv")]


# who learns from whom travels with what is sent


@pytest.mark.parametrize("part", [SimilarityThreshold(0.5), SimilarityThreshold(0.5, pool="all"), MeanBefore()])
def test_who_learns_from_whom_is_what_was_mixed(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gen, calls = torch.Generator().manual_seed(0), []
    similarities = type(part).similarities
    monkeypatch.setattr(type(part), "similarities", lambda self, *rest: calls.append(1) or similarities(self, *rest))
    slot, ids = part.init(TASK), torch.tensor([0, 1, 3])
    slot["kept"][1] = 0.25
    if "seen" in slot:
        slot["seen"][2] = True
        slot["cache"] = {"w": torch.randn(4, 3, generator=gen, dtype=torch.float64)}
    current = {"w": torch.randn(3, 3, generator=gen, dtype=torch.float64)}
    sent, _ = part.send(slot, TASK, ids, current)
    assert len(calls) == 1, "similarities are computed once"
    kin = sent.kin
    assert kin.ids.tolist() == ids.tolist()
    assert kin.sources.tolist() == ([0, 1, 2, 3] if "seen" in slot else [0, 1, 3])
    models = slot["cache"]["w"].index_copy(0, ids, current["w"]) if "seen" in slot else current["w"]
    torch.testing.assert_close(sent.own["model"]["w"], kin.weights["model"] @ models)
    assert ("threshold" in kin.numbers) == isinstance(part, SimilarityThreshold)
    assert ("threshold" in kin.log()) == isinstance(part, SimilarityThreshold)


def test_no_number_is_recorded_of_a_broken_model() -> None:
    part = SimilarityThreshold(0.5)
    current = {"w": torch.tensor([[1.0, 0.0, 0.0], [1.0, torch.nan, 0.0], [1.0, 1.0, 0.0]])}
    sent, _ = part.send(part.init(TASK), TASK, torch.tensor([0, 1, 3]), current)
    assert sent.kin is not None
    assert sent.kin.numbers == {}
    weights: Tensor = sent.kin.weights["model"]
    assert weights[[0, 2], 1].tolist() == [0.0, 0.0]


def test_one_common_model_is_nobodys_mixture() -> None:
    for part in (Mean(), Nothing()):
        sent, _ = part.send(part.init(TASK), TASK, torch.tensor([0, 1]), None)
        assert sent.kin is None
