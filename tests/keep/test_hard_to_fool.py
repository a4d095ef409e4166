"""What `Robust` promises: few false alarms, whoever is irrelevant, and no single update that rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.data import Data, load
from fedkin.data.scenarios import attacked, flip
from fedkin.keep import Alignment, Robust
from fedkin.keep.robust import clipped, straightness, worst
from fedkin.messages import Reply, Sent, Task
from fedkin.train import SGD

NUMBERS = 1000  # of a model


def gen(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def honest(n: int, seed: int = 0, spread: float = 1.0) -> Tensor:
    """Updates that go one way, each with a deviation of its own."""
    return 0.3 + spread * torch.randn(n, NUMBERS, generator=gen(seed), dtype=torch.float64)


class Server:
    """Judges rounds in which clients send given updates; the model has come a way of ones."""

    def __init__(self, keep: Any, n: int, classes: int = 10):
        self.keep, self.round = keep, 0
        start = {"w": torch.zeros(NUMBERS).double()}
        self.task = Task(n, torch.ones(n), 5, start, lambda model, batch: torch.tensor(0.0), classes=classes)
        self.slot = keep.init(self.task, gen(0))

    def judged(self, updates: Tensor, ids: list[int] | None = None) -> list[float]:
        who = torch.arange(len(updates)) if ids is None else torch.tensor(ids)
        way = torch.ones(NUMBERS).double()
        report = {name: torch.ones(len(who)) for name in ("size", "rate", "reach")}
        self.round += 1
        sent, reply = Sent(who, {"model": {"w": way}}), Reply(who, {"model": {"w": way + updates}}, report)
        kept, self.slot = self.keep(self.slot, self.task, sent, reply, self.round, gen(0))
        return kept.tolist()


def judged(keep: Any, updates: Tensor) -> list[float]:
    return Server(keep, len(updates)).judged(updates)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.4])
@pytest.mark.parametrize("attack", ["reversed", "foreign", "large"])
def test_few_false_alarms_and_all_are_found(share: float, attack: str) -> None:
    """Over many drawn federations at most 1 % of the clean clients are left out, and few of the others stay."""
    wrong = good = found = bad = 0
    for seed in range(8):
        updates, truth = honest(50, seed), torch.arange(50) < share * 50
        changed = {"reversed": -updates, "foreign": honest(50, 1000 + seed) - 0.3, "large": 10 * updates}[attack]
        updates[truth] = changed[truth]
        server = Server(Robust(), 50)
        for again in range(3):
            noise = 0.2 * torch.randn(50, NUMBERS, generator=gen(seed + 99 * again), dtype=torch.float64)
            out = torch.tensor(server.judged(updates + noise)) == 0
        wrong, good = wrong + int((out & ~truth).sum()), good + int((~truth).sum())
        found, bad = found + int((out & truth).sum()), bad + int(truth.sum())
    assert wrong <= 0.01 * good
    assert found >= (0.8 if attack == "foreign" else 0.98) * bad  # by chance, some foreign updates go the same way


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.4])
def test_few_false_alarms_on_images(share: float) -> None:
    """The same with real samples: Dirichlet 0.5, labels flipped, 20 of 30 clients in each of ten rounds."""
    clean = load(Data("digits", partition="dirichlet:0.5", clients=30, samples=40))
    federation = flip(clean, share) if share else clean
    method = replace(fk.methods.fedavg(), keep=Robust(), train=SGD(eta=0.1, steps=None, epochs=2, batch=10))
    run = fk.run(fk.Experiment(method, federation, "mlr", rounds=10, evaluate_every=10), warn=lambda sentence: None)
    truth = torch.zeros(30, dtype=torch.bool) if federation.irrelevant is None else federation.irrelevant
    out, replied = (torch.from_numpy(run.participation[name]) for name in ("left_out", "replied"))
    assert out[~truth].sum() <= 0.03 * replied[~truth].sum()
    assert out[truth].sum() >= 0.98 * replied[truth].sum()


@pytest.mark.parametrize("factor", [-10.0, 10.0, -1.0, 100.0])
@pytest.mark.parametrize("bad", [2, 6, 8])
def test_attacked_updates_do_not_count(factor: float, bad: int) -> None:
    updates = honest(20)
    updates[:bad] *= factor
    assert judged(Robust(), updates) == [0.0] * bad + [1.0] * (20 - bad)


def test_one_huge_update_does_not_set_the_direction() -> None:
    """Alignment is fooled by it: the huge update is its own way, so nobody seems more relevant."""
    updates, fooled = honest(20), Server(Alignment(), 20)
    updates[0] *= -1000
    assert judged(Robust(), updates) == [0.0] + [1.0] * 19
    fooled.judged(updates)
    assert fooled.slot["divergence"].argmin() == 0


def test_who_hides_in_the_middle_is_too_straight() -> None:
    """'A little is enough': all attackers send the mean of the others less some deviations."""
    updates = honest(20, spread=3.0)
    good = updates[8:]
    updates[:8] = good.mean(0) - 0.1 * good.std(0)
    assert judged(Robust(), updates)[:8] == [0.0] * 8


def test_at_most_half_are_left_out() -> None:
    """Eight go back and three are large, which would be eleven of twenty."""
    updates = honest(20)
    updates[:8] *= -1
    updates[8:11] *= 50
    kept = judged(Robust(), updates)
    assert sum(kept) == 10
    assert kept[11:] == [1.0] * 9


def test_a_way_that_most_do_not_go_is_none() -> None:
    """Where eleven of twenty go anywhere nobody strays; who is large is left out all the same."""
    updates = honest(20)
    updates[:11] -= 0.3
    updates[19] *= 50
    assert judged(Robust(), updates) == [1.0] * 19 + [0.0]


def test_of_two_classes_only_lengths_are_judged() -> None:
    """A client that has one of two classes pulls straight against one that has the other, and both are right."""
    updates = honest(20)
    updates[:6] *= -1
    updates[19] *= 50
    assert Server(Robust(), 20, classes=3).judged(updates) == [0.0] * 6 + [1.0] * 13 + [0.0]
    assert Server(Robust(), 20, classes=2).judged(updates) == [1.0] * 19 + [0.0]


def test_a_client_is_compared_with_what_was_usual_in_its_own_rounds() -> None:
    """A round may be less straight than another, which is no fault of those who were asked only then."""
    server = Server(Robust(), 24)
    server.judged(honest(13, spread=0.05), list(range(13)))
    assert server.judged(honest(11, spread=2.0), list(range(13, 24))) == [1.0] * 11


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_clients_have_no_majority(n: int) -> None:
    updates = honest(n)
    updates[0] *= -100
    assert judged(Robust(), updates) == [1.0] * n


def test_where_nobody_moves_everybody_counts() -> None:
    assert judged(Robust(), torch.zeros(8, NUMBERS).double()) == [1.0] * 8


def test_worst_scores() -> None:
    nan = torch.nan
    scores = torch.tensor([0.5, 3.0, nan, 1.5, 1.0, 2.0]).double()
    assert worst(scores, 2).nonzero().flatten().tolist() == [1, 5]
    assert worst(scores, 6).nonzero().flatten().tolist() == [1, 3, 5]
    assert not worst(scores, 0).any()


def test_clipping_keeps_directions_and_what_is_short() -> None:
    updates = torch.tensor([[3.0, 4.0], [0.0, 1.0], [-600.0, 800.0]]).double()
    assert clipped(updates).tolist() == [[3.0, 4.0], [0.0, 1.0], pytest.approx([-3.0, 4.0])]


def test_nobody_is_compared_with_itself_or_with_suspects() -> None:
    came, updates = torch.zeros(3, 2).double(), torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]).double()
    found = straightness(came, updates, torch.tensor([True, True, False]))
    assert found.tolist() == pytest.approx([0.0, 0.0, -(0.5**0.5)])


def test_scores_are_averaged_over_the_rounds_in_which_a_client_was_judged() -> None:
    """Whoever attacked is left out for a while, and comes back when its average is right again."""
    good, server = honest(12), Server(Robust(), 12)
    attack = good.clone()
    attack[0] *= -1
    assert server.judged(attack)[0] == 0.0
    assert server.judged(good)[0] == 0.0
    later = [server.judged(good)[0] for _ in range(6)]
    assert later[-1] == 1.0
    assert server.slot["judged"].tolist() == [8.0] * 12


def test_who_is_absent_keeps_its_score() -> None:
    updates, server = honest(12), Server(Robust(), 12)
    updates[0] *= -1
    server.judged(updates)
    before = server.slot["straight"][0]
    server.judged(honest(6, 5), [1, 2, 3, 4, 5, 6])
    assert server.slot["straight"][0] == before
    assert server.slot["judged"].tolist() == [1.0] + [2.0] * 6 + [1.0] * 5
    assert server.slot["out"][0] == 1.0


@pytest.mark.parametrize("wrong", [{"high": 1.0}, {"large": 0.5}, {"low": 1.0}])
def test_limits_must_leave_room_for_the_median(wrong: dict[str, float]) -> None:
    with pytest.raises(fk.BadInput):
        Robust(**wrong)


def test_in_front_of_any_method() -> None:
    made = fk.methods.pfedre_robust(base=fk.methods.fedprox())
    assert made.name == "pfedre_robust_fedprox"
    assert replace(made, name="fedprox", keep=fk.methods.fedprox().keep) == fk.methods.fedprox()
    federation = attacked(load(Data("digits", clients=10, samples=20)), "sign", 0.3)
    run = fk.run(fk.Experiment(made, federation, "mlr", rounds=3), warn=lambda sentence: None)
    assert run.lines[-1]["filter"]["auc"] == 1.0


@pytest.mark.parametrize("name", ["pfedre_robust", "pfedre_aligned"])
def test_in_front_of_a_method_that_sends_some_layers_only(name: str) -> None:
    federation = attacked(load(Data("digits", clients=10, samples=20)), "sign", 0.3)
    made = fk.methods.METHODS[name](base=fk.methods.fedper())
    run = fk.run(fk.Experiment(made, federation, "dnn:20", rounds=3), warn=lambda sentence: None)
    assert run.lines[-1]["filter"]["auc"] == 1.0
