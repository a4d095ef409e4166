"""AdaFL's scores: eq. (2) alone, and the part around it."""

from __future__ import annotations

from math import log
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.select import Attention, Listed, Steps
from fedkin.select.attention import moved, updated


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def task(sizes: list[int], rounds: int = 10) -> Task:
    return Task(len(sizes), torch.tensor(sizes), rounds, {"w": tensor(0.0)}, lambda model, batch: tensor(0.0))


def observed(part: Attention, slot: Slot, setting: Task, ids: list[int], values: list[float], after: float) -> Slot:
    """What the scores become when these clients upload these numbers and the common model is `after`."""
    upload = {"model": {"w": tensor(*values)[:, None]}}
    reply = Reply(torch.tensor(ids), upload, {"size": setting.sizes[ids].double()})
    kept, gen = torch.ones(len(ids), dtype=torch.float64), torch.Generator()
    return part.observe(slot, setting, Sent(torch.tensor(ids)), reply, kept, {"w": tensor(after)}, gen)


# eq. (2)


SCORES = (0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize(
    ("ids", "distances", "alpha", "wanted"),
    [
        ([1, 3], [3.0, 1.0], 0.9, [0.1, 0.9 * 0.2 + 0.1 * 0.75 * 0.6, 0.3, 0.9 * 0.4 + 0.1 * 0.25 * 0.6]),
        ([0, 1, 2], [2.0, 0.0, 6.0], 0.0, [0.15, 0.0, 0.45, 0.4]),  # alpha 0: the share of the distance
        ([0, 2], [5.0, 1.0], 1.0, SCORES),  # alpha 1 changes nothing
        ([1, 3], [2.0, 2.0], 0.5, [0.1, 0.25, 0.3, 0.35]),  # equal distances move towards equal shares
        ([1, 2], [0.0, 0.0], 0.3, SCORES),  # no distance says nothing
        ([1, 2], [1e-13, 1e-13], 0.3, SCORES),
        ([1, 2], [3e-12, 1e-12], 0.0, [0.1, 0.375, 0.125, 0.4]),  # and a small one something
        ([1], [0.0], 0.9, SCORES),  # K = 1: its share of the distance is all of it, or 0/0
        ([1], [4.0], 0.9, SCORES),
    ],
)
def test_by_hand(ids: list[int], distances: list[float], alpha: float, wanted: list[float]) -> None:
    scores = tensor(*SCORES)
    found = updated(scores, torch.tensor(ids), tensor(*distances), alpha)
    assert found.tolist() == pytest.approx(wanted, abs=1e-15)
    assert scores.tolist() == list(SCORES), "a new vector is handed back"


Move = tuple[set[int], list[float], float]
MOVES = some.lists(
    some.tuples(
        some.sets(some.integers(0, 7), min_size=1),
        some.lists(some.floats(0, 1e6), min_size=8, max_size=8),
        some.floats(0, 1),
    ),
    max_size=30,
)


@given(some.lists(some.integers(1, 10_000), min_size=8, max_size=8), MOVES)
def test_any_sequence_leaves_a_probability(sizes: list[int], moves: list[Move]) -> None:
    scores = Attention().init(task(sizes))["scores"]
    assert float(scores.sum()) == pytest.approx(1.0, abs=1e-14)
    for ids, distances, alpha in moves:
        who = torch.tensor(sorted(ids))
        before = scores
        scores = updated(scores, who, tensor(*distances)[who], alpha)
        assert float(scores.sum()) == pytest.approx(1.0, abs=1e-12)
        assert bool((scores >= 0).all())
        out = ~torch.isin(torch.arange(8), who)
        assert torch.equal(scores[out], before[out])
        assert float(scores[who].sum()) == pytest.approx(float(before[who].sum()), abs=1e-13)


@settings(max_examples=40)
@given(MOVES)
def test_any_sequence_of_rounds_leaves_a_probability(moves: list[Move]) -> None:
    setting = task([5, 1, 9, 2, 2, 7, 30, 4])
    slot = Attention().init(setting)
    for number, (ids, values, alpha) in enumerate(moves, 1):
        who = sorted(ids)
        slot = observed(Attention(alpha), slot, setting, who, [values[i] for i in who], sum(values) / 8)
        assert float(slot["scores"].sum()) == pytest.approx(1.0, abs=1e-12)
        assert int(slot["rounds"]) == number


# the part


def test_scores_start_at_the_shares_of_the_data() -> None:
    assert Attention().init(task([1, 2, 5]))["scores"].tolist() == pytest.approx([0.125, 0.25, 0.625], abs=1e-16)
    assert Attention().init(task([7]))["scores"].tolist() == [1.0]


def test_the_far_ones_gain() -> None:
    setting = task([10, 10, 10, 10])
    slot = observed(Attention(0.5), Attention().init(setting), setting, [0, 2, 3], [1.0, 4.0, 3.0], 3.0)
    assert slot["scores"].tolist() == pytest.approx(
        [0.125 + 0.5 * 0.75 * 2 / 3, 0.25, 0.125 + 0.5 * 0.75 * 1 / 3, 0.125]
    )


def test_scores_are_mended_every_hundred_rounds() -> None:
    setting, part = task([1, 1, 2]), Attention(0.5)
    drifted = tensor(0.25, 0.25, 0.5) * 1.001
    for rounds, total in ((98, 1.001), (99, 1.0), (100, 1.001), (199, 1.0)):
        slot = {"scores": drifted, "rounds": torch.tensor(rounds)}
        after = observed(part, slot, setting, [0, 1], [1.0, 2.0], 0.0)
        assert float(after["scores"].sum()) == pytest.approx(total, abs=1e-12)
        assert int(after["rounds"]) == rounds + 1


def test_who_and_how_many_are_drawn() -> None:
    setting = task([1] * 20, rounds=10)
    slot = Attention().init(setting) | {"scores": torch.zeros(20, dtype=torch.float64).index_fill(0, TOP, 0.2)}
    for part, counts in (
        (Attention(0.9, Steps(0.1, 0.5, 5)), [2, 2, 4, 4, 6, 6, 8, 8, 10, 10]),
        (Attention(0.9, Listed((0.1, 0.2, 1.0))), [2, 4, 20, 20, 20, 20, 20, 20, 20, 20]),
        (Attention(0.9, 0.25), [5] * 10),
    ):
        for t, count in enumerate(counts, 1):
            ids, after = part(slot, setting, t, torch.Generator().manual_seed(t))
            assert len(ids) == count
            assert after is slot
            chosen = set(ids.tolist())
            assert chosen <= set(TOP.tolist()) if count <= 5 else chosen >= set(TOP.tolist())


TOP = torch.tensor([3, 4, 9, 12, 19])


def test_share_is_the_mean_fraction() -> None:
    assert Attention(0.9, Steps(0.1, 0.5, 5)).share(task([1] * 10)) == pytest.approx(0.3)
    assert Attention(0.9, 0.2).share(task([1] * 10)) == pytest.approx(0.2)


def test_its_log() -> None:
    even = Attention().log({"scores": tensor(0.25, 0.25, 0.25, 0.25)})
    assert even == pytest.approx({"entropy": 1.0, "max_min": 1.0})
    skew = Attention().log({"scores": tensor(0.5, 0.25, 0.125, 0.125)})
    assert skew == pytest.approx({"entropy": 1.75 * log(2) / log(4), "max_min": 4.0})
    assert Attention().log({"scores": tensor(1.0, 0.0)}) == pytest.approx({"entropy": 0.0})
    assert Attention().log({"scores": tensor(1.0)}) == pytest.approx({"entropy": 0.0, "max_min": 1.0})


# distances


def replied(**upload: Any) -> Reply:
    ids = torch.tensor([1, 4])
    return Reply(ids, upload, {"size": torch.ones(2, dtype=torch.float64)})


MODEL = {
    "weight": torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 1.0]]], dtype=torch.float64),
    "bias": torch.tensor([[5.0], [2.0]], dtype=torch.float64),
}


def test_distances_from_the_common_model_count_every_parameter() -> None:
    """A-D6: biases too; and of SCAFFOLD's two models the model alone."""
    after = {"weight": torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64), "bias": tensor(1.0)}
    far = {name: 1e6 * value for name, value in MODEL.items()}
    wanted = [(4 + 9 + 16 + 16) ** 0.5, (1 + 1 + 1) ** 0.5]
    for upload in ({"model": MODEL}, {"model": MODEL, "control": far}):
        found = moved(Sent(torch.tensor([1, 4])), replied(**upload), after)
        assert found.dtype == torch.float64
        assert found.tolist() == pytest.approx(wanted, abs=1e-12)


def test_without_a_common_model_distances_are_from_what_was_sent() -> None:
    """To each its own row, also where others were sent something and did not reply."""
    own = {"weight": torch.zeros(3, 2, 2, dtype=torch.float64), "bias": torch.tensor([[5.0], [100.0], [0.0]]).double()}
    sent = Sent(torch.tensor([1, 2, 4]), own={"model": own})
    found = moved(sent, replied(model=MODEL), None)
    assert found.tolist() == pytest.approx([30**0.5, 5**0.5], abs=1e-12)
    shared = Sent(torch.tensor([1, 2, 4]), shared={"model": {"weight": own["weight"][0], "bias": tensor(2.0)}})
    assert moved(shared, replied(model=MODEL), None).tolist() == pytest.approx([39**0.5, 1.0], abs=1e-12)


def test_a_huge_but_finite_upload_leaves_a_probability() -> None:
    """Its distance is infinite in single precision, and not in double."""
    ids = torch.arange(3)
    huge = torch.tensor([[1.0], [1e25], [2.0]])
    reply = Reply(ids, {"model": {"w": huge}}, {})
    apart = moved(Sent(ids), reply, {"w": torch.zeros(1)})
    assert apart.isfinite().all()
    scores = updated(torch.full((4,), 0.25, dtype=torch.float64), ids, apart, 0.9)
    assert scores.isfinite().all()
    assert float(scores.sum()) == pytest.approx(1.0)
    never = updated(scores, ids, torch.tensor([1.0, torch.inf, 1.0], dtype=torch.float64), 0.9)
    assert torch.equal(never, scores)
