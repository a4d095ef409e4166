"""Alignment by hand, and the oracle, which alone is told the truth."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fedkin as fk
from fedkin.engines import Stacked
from fedkin.keep import Alignment, Oracle
from fedkin.messages import Reply, Sent, Task
from fedkin.runs import session


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def task(start: list[float], n: int) -> Task:
    return Task(n, torch.ones(n), 5, {"w": tensor(start)}, lambda model, batch: tensor(0.0))


def judged(start: list[float], sent: list[float], returned: list[list[float]]) -> tuple[list[float], list[float]]:
    n = len(returned)
    setting, keep = task(start, n), Alignment(min_gap=None)
    ids, gen = torch.arange(n), torch.Generator()
    reply = Reply(ids, {"model": {"w": tensor(returned)}}, {"size": torch.ones(n)})
    slot = keep.init(setting, gen)
    kept, slot = keep(slot, setting, Sent(ids, shared={"model": {"w": tensor(sent)}}), reply, 2, gen)
    return kept.tolist(), slot["divergence"].tolist()


def test_scores_by_hand() -> None:
    """The way so far is (3, 0) and the mean update (0, 0), so each client is judged by its cosine with (1, 0)."""
    kept, divergence = judged([1.0, 0.0], [4.0, 0.0], [[5.0, 0.0], [4.0, 2.0], [4.0, -2.0], [3.0, 0.0]])
    assert divergence == pytest.approx([0.0, 1.0, 1.0, 2.0])
    assert kept == [0.0, 1.0, 1.0, 1.0] or kept == [1.0, 1.0, 1.0, 0.0]
    assert kept[3] == 0.0, "of two equally good cuts the one with the lower scores stays"


def test_in_the_first_round_the_mean_update_is_the_way() -> None:
    kept, divergence = judged([0.0, 0.0], [0.0, 0.0], [[1.0, 0.1], [1.0, -0.1], [2.0, 0.0], [-1.0, 0.0]])
    assert kept == [1.0, 1.0, 1.0, 0.0]
    assert divergence[2] == pytest.approx(0.0)
    assert divergence[3] == pytest.approx(2.0)


def test_a_client_that_pulls_back_is_left_out_however_small_the_others_are() -> None:
    """Late in training the relevant hardly move, and in all directions; plain cosines between updates are noise."""
    gen = torch.Generator().manual_seed(0)
    small = (0.01 * torch.randn(6, 20, generator=gen, dtype=torch.float64)).tolist()
    way = torch.ones(20, dtype=torch.float64)
    returned = [(way + tensor(s)).tolist() for s in small] + [(0.5 * way).tolist()] * 2
    kept, _ = judged([0.0] * 20, way.tolist(), returned)
    assert kept == [1.0] * 6 + [0.0] * 2


def test_groups_that_are_near_each_other_are_one() -> None:
    """By the paper's rule a minority is left out in every round; with a gap only where the groups are apart."""
    counted, everyone = [], torch.arange(40)
    for keep in (Alignment(), Alignment(min_gap=3.0)):
        for pulling in (0, 8):
            gen = torch.Generator().manual_seed(3)
            updates = 0.3 + torch.randn(40, 1000, generator=gen, dtype=torch.float64)
            updates[:pulling] *= -1
            setting = task([0.0] * 1000, 40)
            sent = Sent(everyone, shared={"model": {"w": torch.ones(1000, dtype=torch.float64)}})
            reply = Reply(everyone, {"model": {"w": 1 + updates}}, {"size": torch.ones(40)})
            kept, _ = keep(keep.init(setting, gen), setting, sent, reply, 2, gen)
            counted.append(int(kept.sum()))
    assert counted[0] < 40
    assert counted[1:] == [32, 40, 32]


def test_the_oracle_leaves_out_the_irrelevant(federate: Any, start: Any) -> None:
    method = fk.methods.oracle()
    federation = federate([6] * 8, 2, (4,), 3)
    engine, setting, state = start(Stacked, method, federation, nn.Sequential(nn.Linear(4, 3)))
    _, log = fk.round.play(method, setting, engine, state)
    assert log.weights.tolist() == (~federation.irrelevant).double().tolist()
    assert 0 < log.counted < 8


def test_an_oracle_needs_the_truth(federate: Any) -> None:
    federation = replace(federate([6] * 4, 2, (4,), 3), irrelevant=None)
    with pytest.raises(fk.BadInput, match="--irrelevant"):
        fk.run(fk.Experiment(fk.methods.oracle(), federation, "mlr", rounds=1))


def test_only_an_oracle_is_told(federate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a part is given holds the truth only for a part that says it must be told."""
    federation = federate([6] * 8, 2, (4,), 3)
    seen: list[Task] = []
    original = session.begin

    def spied(method: fk.Method, task: Task) -> Any:
        seen.append(task)
        return original(method, task)

    monkeypatch.setattr(session, "begin", spied)
    for name in ("pfedre", "pfedre_aligned", "pfedre_robust", "multikrum", "fedavg", "oracle"):
        fk.run(fk.Experiment(fk.methods.named(name), federation, "mlr", rounds=1))
    told = [task.irrelevant is not None for task in seen]
    assert told == [False, False, False, False, False, True]
    for task in seen[:-1]:
        values = [getattr(task, field.name) for field in fields(task)]
        assert not any(isinstance(v, Tensor) and v.dtype == torch.bool for v in values)
    assert Oracle().needs.truth
    assert not Alignment().needs.truth


@pytest.mark.parametrize("made", ["adafl", "pfedre", "pfedre_aligned", "pfedre_robust", "oracle", "attn"])
def test_a_base_must_be_a_method_that_exchanges_something(made: str) -> None:
    make: Any = fk.methods.METHODS[made]
    for wrong in ("fedprox", fk.methods.fedprox, fk.methods.local()):
        with pytest.raises(fk.BadInput, match="base"):
            make(base=wrong)


def test_pfedre_before_a_base_is_only_its_filter() -> None:
    with pytest.raises(fk.BadInput, match="only its filter"):
        fk.methods.pfedre(base=fk.methods.fedavg(), eta=5.0)


@pytest.mark.parametrize("wrong", [{"scale": 1.5}, {"literal": True}])
def test_normalised_targets_have_no_scale(wrong: dict[str, Any]) -> None:
    with pytest.raises(fk.BadInput, match=r"keep\.normalise=false"):
        fk.keep.Relevance(**wrong)
    fk.keep.Relevance(normalise=False, **wrong)
