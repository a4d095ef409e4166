"""The clients' private slots: all in memory, or as rows of which only those that changed lately are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from fedkin.core import rows as rows_of
from fedkin.core import tree
from fedkin.core.rows import Rows
from fedkin.core.store import Slots, slots_for
from fedkin.core.tree import Message

N = 2500
ROW = 17 * 4  # bytes of a client's slots


def first() -> Message:
    model = {"0.weight": torch.arange(6.0).reshape(2, 3), "0.bias": torch.tensor([7.0, 8.0])}
    return {"model": model, "alpha": {"value": torch.tensor(0.25)}, "velocity of model": tree.zeros(model)}


@pytest.fixture(params=["memory", "rows", "rows in files"])
def slots(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Slots | Rows]:
    budget = {"memory": 10**9, "rows": 2 * ROW, "rows in files": 0}[request.param]
    found = slots_for(first(), N, budget, tmp_path)
    assert isinstance(found, Slots) == (request.param == "memory")
    yield found
    found.close()
    assert list(tmp_path.iterdir()) == []


def everything(slots: Slots | Rows) -> Message:
    return slots.read(torch.arange(N))


def changed(slots: Slots | Rows, ids: torch.Tensor, by: float) -> Message:
    return tree.each(lambda model: tree.mapped(lambda value: value + by, model), slots.read(ids))


def test_all_begin_with_the_same(slots: Slots | Rows) -> None:
    for slot, model in first().items():
        for name, value in model.items():
            found = everything(slots)[slot][name]
            assert found.shape == (N, *value.shape)
            assert found.dtype == value.dtype
            assert found.is_contiguous()
            assert (found == value).all()


def test_writing_is_for_those_clients_alone(slots: Slots | Rows) -> None:
    ids = torch.tensor([1999, 3, 1024])
    rows = changed(slots, ids, 1.0)
    rows["alpha"]["value"] = torch.tensor([1.0, 2.0, 3.0])
    slots.write(ids, rows)
    now = everything(slots)
    assert now["alpha"]["value"][[3, 1024, 1999]].tolist() == [2.0, 3.0, 1.0]
    assert now["alpha"]["value"].ne(0.25).sum() == 3
    assert now["model"]["0.bias"][1024].tolist() == [8.0, 9.0]
    assert now["model"]["0.bias"].ne(torch.tensor([7.0, 8.0])).any(1).sum() == 3
    again = slots.read(torch.tensor([3, 1999]))
    assert again["alpha"]["value"].tolist() == [2.0, 1.0]


def test_writing_again_and_again_is_what_a_stack_in_memory_gives(slots: Slots | Rows) -> None:
    expected, gen = Slots(first(), N), torch.Generator().manual_seed(0)
    for _ in range(20):
        ids = torch.randperm(N, generator=gen)[: int(torch.randint(1, 9, (), generator=gen))]
        new = changed(expected, ids, float(torch.rand((), generator=gen)))
        for store in (expected, slots):
            store.write(ids, new)
        some = torch.randperm(N, generator=gen)[:200]
        for name, value in tree.flat(expected.read(some)).items():
            assert torch.equal(value, tree.flat(slots.read(some))[name])


def test_reading_is_a_copy(slots: Slots | Rows) -> None:
    everyone = torch.arange(N)
    for ids in (torch.tensor([0]), torch.tensor([0, 1]), everyone):
        slots.read(ids)["model"]["0.weight"].fill_(-1.0)
        assert (everything(slots)["model"]["0.weight"] == first()["model"]["0.weight"]).all()
    slots.write(torch.tensor([0, 5, 9]), changed(slots, torch.tensor([0, 5, 9]), 1.0))
    slots.read(torch.tensor([0, 5, 9]))["model"]["0.bias"].fill_(-1.0)
    assert slots.read(torch.tensor([5]))["model"]["0.bias"].tolist() == [[8.0, 9.0]]


def test_one_slot_alone(slots: Slots | Rows) -> None:
    ids = torch.tensor([7, 2])
    slots.write(ids, changed(slots, ids, 1.0))
    some = torch.tensor([2, 3, 7])
    for slot, model in slots.read(some).items():
        found = slots.read_one(some, slot)
        assert found.keys() == model.keys()
        assert all(torch.equal(found[name], value) for name, value in model.items())


def test_the_first_models_are_not_touched() -> None:
    for given in (first(), first()):
        for other in (Slots(given, 3), Rows(given, 3, 10**6)):
            ids = torch.tensor([0])
            other.write(ids, tree.each(lambda model: tree.mapped(torch.zeros_like, model), other.read(ids)))
            assert torch.equal(given["model"]["0.bias"], torch.tensor([7.0, 8.0]))
            assert other.read(torch.tensor([1]))["model"]["0.bias"].tolist() == [[7.0, 8.0]]


def test_restore(slots: Slots | Rows) -> None:
    ids = torch.tensor([5, 6])
    slots.write(ids, changed(slots, ids, 3.0))
    saved = everything(slots)
    slots.write(torch.tensor([6, 7]), changed(slots, torch.tensor([6, 7]), -9.0))
    slots.restore(saved)
    for name, value in tree.flat(everything(slots)).items():
        assert torch.equal(value, tree.flat(saved)[name])
    slots.write(ids, changed(slots, ids, 1.0))
    assert saved["alpha"]["value"][5] == 3.25  # what was saved is not what is written to


def test_no_more_rows_than_the_budget_are_in_memory(tmp_path: Path) -> None:
    slots = Rows(first(), 100, 10 * ROW + 1, tmp_path)
    assert slots.folder is None
    slots.write(torch.arange(10), changed(slots, torch.arange(10), 1.0))
    assert slots.folder is None  # all of them fit
    slots.write(torch.arange(5, 25), changed(slots, torch.arange(5, 25), 1.0))
    assert slots._held is not None
    assert len(slots._held) == 10
    assert slots.folder is not None
    assert sum(file.stat().st_size for file in slots.folder.iterdir()) == 15 * ROW
    slots.write(torch.arange(5, 25), changed(slots, torch.arange(5, 25), 1.0))
    assert sum(file.stat().st_size for file in slots.folder.iterdir()) == 15 * ROW  # nobody has two rows
    assert slots.read(torch.tensor([0, 5, 24, 99]))["alpha"]["value"].tolist() == [1.25, 3.25, 2.25, 0.25]
    assert slots.changed().tolist() == list(range(25))
    slots.close()
    assert list(tmp_path.iterdir()) == []


def test_rows_go_in_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rows_of, "AT_ONCE", 3 * ROW)
    slots, ids = Rows(first(), 50, 4 * ROW, tmp_path), torch.tensor([9, 3, 4, 5, 11, 40, 2, 0])
    new = slots.read(ids)
    new["alpha"]["value"] = ids.float()
    slots.write(ids, new)
    assert slots.read(torch.arange(12))["alpha"]["value"].tolist() == [0, 0.25, 2, 3, 4, 5, *[0.25] * 3, 9, 0.25, 11]
    assert slots.read(ids.flip(0))["alpha"]["value"].tolist() == ids.flip(0).tolist()
    slots.close()


def test_what_is_read_and_written_in_parts_is_whole() -> None:
    """The system may move fewer bytes at a time than asked for."""
    memory = np.arange(100, dtype=np.uint8)

    def slow(_: int, views: list[memoryview], place: int) -> int:
        views[0][:7] = memory[place : place + 7].data[: len(views[0])]
        return min(7, len(views[0]))

    found = np.zeros(21, dtype=np.uint8)
    rows_of.whole(slow, 0, memoryview(found), 30)
    assert found.tolist() == list(range(30, 51))


def test_budget_is_in_bytes() -> None:
    assert isinstance(slots_for(first(), 10, budget=10 * ROW), Slots)
    assert isinstance(slots_for(first(), 10, budget=10 * ROW - 1), Rows)


def test_large_slots_are_rows_whatever_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedkin.core.store.WHOLE", 10 * ROW)
    assert isinstance(slots_for(first(), 10, budget=10**9), Slots)
    assert isinstance(slots_for(first(), 11, budget=10**9), Rows)


def test_no_slots() -> None:
    slots = slots_for({}, 5, 0)
    assert slots.read(torch.tensor([1])) == {}
    slots.write(torch.tensor([1]), {})
    assert isinstance(slots, Slots)
