"""kin against its box in docs/papers/kin.md: experts, shadows and weights by scalars and loops, in float64."""

from __future__ import annotations

from typing import Any

import hand_network as net
import pytest
import torch
from experts_transcribed import PLAIN, SMALL, WHOLE, card, composed, planned, rows, sample, shares
from hand_network import CLASSES, ROUNDS, SEED
from transcribed import Hand, farthest

from fedkin import evaluate
from fedkin.collaborate import ClassifierSimilarity, Mean, MeanOfExperts
from fedkin.engines import Plain, Stacked
from fedkin.errors import BadInput
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.round import begin, play
from fedkin.select import Uniform
from fedkin.train import Calibrated, Experts, LabelShares

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 1, 5, 9, 4)


def close(found: torch.Tensor, wanted: Any) -> None:
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("engine", [Plain, Stacked])
@pytest.mark.parametrize(
    "method",
    [
        composed(1),
        composed(5, strength=3.0, guard=1.0),
        composed(2, folds=3, added=(2.0,), guard=None),
        composed(1, steps=None, epochs=2),
        composed(2, experts=("tuned", "shares"), guard=None),
        composed(1, experts=("common", "alone"), strength=0.0),
        composed(3, WHOLE, folds=3),
        composed(2, WHOLE, experts=("kin", "common"), guard=None),
    ],
)
def test_rounds(federation: Any, engine: Any, method: Method) -> None:
    hand = Hand(federation, method)
    options = {} if engine is Plain else {"chunk": 2}
    played = engine(federation, net.network(), method.train, SEED, dtype=torch.float64, **options)
    state, everyone = begin(method, hand.task), torch.arange(federation.n)
    for server, shadows, mean, own, weights, says in card(hand):
        state, _ = play(method, hand.task, played, state)
        slots = played.slots.read(everyone)
        for name in set(own) & set(slots):
            assert farthest(slots[name], own[name]) < net.CLOSE
        close(slots["mix"]["weights"], weights)
        close(state.collaborate["mix"]["weights"], mean[0])
        close(state.collaborate["mix"]["lead"], mean[1])
        said = method.collaborate.log(state.collaborate)
        assert said == {"weight_alone": pytest.approx(mean[0][0]), "lead": pytest.approx(mean[1])}
        wanted = {"model": server} | {f"without {f + 1}": shadow for f, shadow in enumerate(shadows)}
        for name, value in wanted.items():
            assert farthest({key: x[None] for key, x in state.collaborate[name].items()}, [value]) < net.CLOSE
        models = evaluate.personal_models(method, hand.task, played, state, everyone)
        found = played.outputs(models, everyone, "test", method.train)
        torch.testing.assert_close(found, torch.tensor([z for each in says for z in each]), rtol=1e-5, atol=1e-6)
        for client in (0, 4):  # who is judged by itself, as when its model is exported, has the same model
            alone = evaluate.personal_models(method, hand.task, played, state, torch.tensor([client]))
            for key, value in models.items():
                torch.testing.assert_close(alone[key][0], value[client])


@pytest.mark.parametrize("engine", [Plain, Stacked])
@pytest.mark.parametrize("kind", [LabelShares, Calibrated])
def test_label_shares(federation: Any, engine: Any, kind: Any) -> None:
    method = Method("tried", Uniform(count=3), kind(**SMALL, added=2.0), Everyone(), Mean())
    hand = Hand(federation, method)
    played = engine(federation, net.network(), method.train, SEED, dtype=torch.float64)
    state, everyone, server = begin(method, hand.task), torch.arange(federation.n), hand.first
    for t in range(1, ROUNDS + 1):
        state, _ = play(method, hand.task, played, state)
        up = {}
        for i in hand.selected(t):
            w, of = server, shares(hand, rows(hand, i), 2.0)
            for some in planned(hand, t, i):
                g = net.blank()
                for x, y in (sample(hand, row) for row in some):
                    z, h = net.logits(w, x)
                    moved = [z[c] + of[c] for c in range(CLASSES)] if kind is Calibrated else z
                    net.backward(g, w, x, h, net.slope(moved, y, len(some)))
                w = net.combined((1.0, w), (-0.3, g))
            up[i] = w
        server = net.average(list(up.values()), [hand.sizes[i] for i in up])
        assert farthest({key: x[None] for key, x in state.collaborate["model"].items()}, [server]) < net.CLOSE
    models = evaluate.personal_models(method, hand.task, played, state, everyone)
    found = played.outputs(models, everyone, "test", method.train)
    wanted = []
    for i in range(hand.n):
        of = shares(hand, rows(hand, i), 2.0)
        wanted += [[z + s for z, s in zip(net.logits(server, x)[0], of, strict=True)] for x, _ in hand.test(i)]
    torch.testing.assert_close(found, torch.tensor(wanted), rtol=1e-5, atol=1e-6)


def test_the_weights_find_the_expert_that_is_right() -> None:
    from fedkin.train.experts import expected

    prior = torch.full((3,), 1 / 3, dtype=torch.float64)
    right = torch.tensor([[0.9, 0.1, 0.5]] * 200, dtype=torch.float64)
    found = expected(right, torch.ones(200, dtype=torch.float64), prior, prior, 1.0)
    assert found[0] > 0.95
    torch.testing.assert_close(expected(right, torch.zeros(200, dtype=torch.float64), prior, prior, 1.0), prior)
    assert float(found.sum()) == pytest.approx(1.0)


def test_an_expert_that_nobody_trusted_can_come_back() -> None:
    from fedkin.train.experts import expected

    prior = torch.tensor([1e-16, 1.0 - 1e-16, 0.0], dtype=torch.float64)
    even = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64)
    right = torch.tensor([[0.99, 0.6, 1.0]] * 100, dtype=torch.float64)
    found = expected(right, torch.ones(100, dtype=torch.float64), prior, even, 10.0)
    assert found[0] > 0.7
    assert found[2] == 0


def test_without_a_sample_and_a_prior_nothing_changes() -> None:
    from fedkin.train.experts import expected

    prior = torch.tensor([0.2, 0.0, 0.8], dtype=torch.float64)
    right = torch.full((4, 3), 0.5, dtype=torch.float64)
    torch.testing.assert_close(expected(right, torch.zeros(4, dtype=torch.float64), prior, prior, 0.0), prior)


def test_parts_that_begin_with_a_common_model_are_nobodys_kin() -> None:
    with pytest.raises(BadInput, match="begins with a common model"):
        MeanOfExperts(kin=ClassifierSimilarity())


def test_what_the_clients_found_is_made_shares_again() -> None:
    """Noise, or a client that lies, can make a mean of weights negative, infinite or larger than one."""
    from fedkin.train.experts import proper

    even = torch.tensor([0.5, 0.0, 0.5])
    for found, wanted in {
        (0.2, 0.0, 0.8): [0.2, 0.0, 0.8],
        (-1.0, 3.0, 2.0): [0.0, 0.0, 1.0],
        (6.0, 0.0, 2.0): [0.75, 0.0, 0.25],
        (-1.0, 1.0, float("nan")): [0.5, 0.0, 0.5],
    }.items():
        torch.testing.assert_close(proper(torch.tensor(found), even), torch.tensor(wanted))


@pytest.mark.parametrize("left_out", PLAIN)
def test_an_expert_that_is_left_out_has_no_weight(left_out: str) -> None:
    """Whatever the held-out samples say: EM gives nothing to an expert that begins at 0."""
    from fedkin.train.experts import expected

    part = Experts(experts=tuple(name for name in PLAIN if name != left_out))
    prior = part.even(torch.zeros((), dtype=torch.float64))
    right = torch.rand(50, part.number, dtype=torch.float64)
    out = [name == left_out for name in ("alone", "tuned", "common", "shares", "shares", "shares")]
    found = expected(right, torch.ones(50, dtype=torch.float64), prior, prior, part.strength)
    assert ((found == 0) == torch.tensor(out)).all()
    assert float(found.sum()) == pytest.approx(1.0)


def test_of_many_held_out_samples_a_random_choice_is_looked_at(federate: Any) -> None:
    """The classic mistake: the first ones, where a client's samples lie sorted by class."""
    played = Stacked(federate((1000, 30)), torch.nn.Linear(5, 3), Experts(**SMALL), SEED)
    batching = played.batching
    places, count = batching.held_places(Experts(**SMALL), torch.tensor([0, 1]), 256)
    assert count[:, 0].tolist() == [256, 30]
    assert len(set(places[0].tolist())) == 256
    assert 350 < float(places[0].double().mean()) < 650
    assert torch.equal(places, batching.held_places(Experts(**SMALL), torch.tensor([0, 1]), 256)[0])
    assert places[1, :30].tolist() == list(range(1000, 1030))
    played.close()


@pytest.mark.parametrize("experts", [(), ("alone", "alone"), ("else",)])
def test_experts_are_named_once(experts: Any) -> None:
    with pytest.raises(BadInput, match=r"train\.experts"):
        Experts(experts=experts)
