"""Who takes part no longer, and after which round (PFedRe's Fig. 6)."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch

import fedkin as fk
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.select import Active, Attention, Constant, Dismiss, Uniform

N = 5


def task() -> Task:
    return Task(N, torch.ones(N), 20, {"w": torch.zeros(1)}, lambda model, batch: torch.zeros(()))


def played(part: Dismiss, judged: list[list[float]]) -> tuple[list[list[int]], Slot]:
    """The selections of rounds in which the replies counted as `judged` says, a row a round of all clients."""
    setting, gen = task(), torch.Generator()
    slot, chosen = part.init(setting), []
    for round, row in enumerate(judged, 1):
        ids, slot = part(slot, setting, round, gen)
        chosen.append(ids.tolist())
        kept = torch.tensor(row, dtype=torch.float64)[ids]
        reply = Reply(ids, {"model": {"w": torch.zeros(len(ids), 1)}}, {})
        slot = part.observe(slot, setting, Sent(ids), reply, kept, None, gen)
    return chosen, slot


JUDGED = [[1.0, 0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]]


@pytest.mark.parametrize(("who", "left"), [("irrelevant", [0, 3, 4]), ("relevant", [1, 2])])
def test_more_than_half_of_the_rounds(who: Literal["irrelevant", "relevant"], left: list[int]) -> None:
    """Of three rounds: client 0 never failed, 1 always, 2 twice, 3 and 4 once."""
    chosen, slot = played(Dismiss(3, who), JUDGED)
    everyone = list(range(N))
    assert chosen == [everyone, everyone, everyone, left]
    assert Dismiss(3, who).log(slot)["dismissed"] == N - len(left)


def test_exactly_half_is_not_more_than_half() -> None:
    chosen, _ = played(Dismiss(2), JUDGED[:3])  # of two rounds, clients 2 and 3 failed once each
    assert chosen[2] == [0, 2, 3, 4]


def test_what_is_judged_later_does_not_count() -> None:
    rows = [[1.0] * N, [0.0] * N, [0.0] * N, [1.0] * N]
    assert played(Dismiss(1), rows)[0] == [list(range(N))] * 4


def test_if_nobody_would_be_left_nobody_is_dismissed() -> None:
    assert played(Dismiss(1), [[0.0] * N, [1.0] * N])[0] == [list(range(N))] * 2


def test_it_says_what_its_base_says() -> None:
    inner = Attention(0.5, Constant(0.4))
    part = Dismiss(3, base=inner)
    slot = part.init(task())
    assert part.share(task()) == inner.share(task())
    assert torch.equal(part.marks(slot)["score"], inner.init(task())["scores"])
    assert Dismiss(3, base=Active(fraction=0.4)).needs.survey
    assert not Dismiss(3, base=Uniform(count=2)).needs.survey


def test_a_dismissed_client_neither_trains_nor_talks(federate: Any) -> None:
    """In a whole run with the truth as the filter, the irrelevant stop after the second round."""
    from dataclasses import replace

    federation = federate([6] * 8, 2, (4,), 3)
    method = fk.methods.oracle(fk.methods.fedavg(count=8))
    method = replace(method, select=Dismiss(2, base=method.select))
    lines = fk.run(fk.Experiment(method, federation, "mlr", rounds=4)).lines
    relevant = int((~federation.irrelevant).sum())
    assert [line["selected"] for line in lines] == [8, 8, relevant, relevant]
    assert [line["uploads"] for line in lines] == [8, 8, relevant, relevant]
