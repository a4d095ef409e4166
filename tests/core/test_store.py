"""The clients' private slots, in memory and in mapped files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fedkin.core import tree
from fedkin.core.store import Slots
from fedkin.core.tree import Message

N = 2500  # more than are filled at once


def first() -> Message:
    model = {"0.weight": torch.arange(6.0).reshape(2, 3), "0.bias": torch.tensor([7.0, 8.0])}
    return {"model": model, "alpha": {"value": torch.tensor(0.25)}, "velocity of model": tree.zeros(model)}


@pytest.fixture(params=["memory", "mapped"])
def slots(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Slots]:
    found = Slots(first(), N, budget=10**9 if request.param == "memory" else 0, scratch=tmp_path)
    assert found.mapped == (request.param == "mapped")
    yield found
    found.close()


def test_all_begin_with_the_same(slots: Slots) -> None:
    for slot, model in first().items():
        for name, value in model.items():
            found = slots.values[slot][name]
            assert found.shape == (N, *value.shape)
            assert found.dtype == value.dtype
            assert (found == value).all()


def test_writing_is_for_those_clients_alone(slots: Slots) -> None:
    ids = torch.tensor([1999, 3, 1024])
    rows = tree.each(lambda model: tree.mapped(lambda value: value + torch.tensor(1.0), model), slots.read(ids))
    rows["alpha"]["value"] = torch.tensor([1.0, 2.0, 3.0])
    slots.write(ids, rows)
    assert slots.values["alpha"]["value"][[3, 1024, 1999]].tolist() == [2.0, 3.0, 1.0]
    assert slots.values["alpha"]["value"].ne(0.25).sum() == 3
    assert slots.values["model"]["0.bias"][1024].tolist() == [8.0, 9.0]
    assert slots.values["model"]["0.bias"].ne(torch.tensor([7.0, 8.0])).any(1).sum() == 3
    again = slots.read(torch.tensor([3, 1999]))
    assert again["alpha"]["value"].tolist() == [2.0, 1.0]


def test_reading_is_a_copy(slots: Slots) -> None:
    everyone = torch.arange(N)
    for ids in (torch.tensor([0]), torch.tensor([0, 1]), everyone):
        slots.read(ids)["model"]["0.weight"].fill_(-1.0)
        assert (slots.values["model"]["0.weight"] == first()["model"]["0.weight"]).all()


def test_the_first_models_are_not_touched() -> None:
    given = first()
    other = Slots(given, 3)
    other.write(
        torch.tensor([0]), tree.each(lambda model: tree.mapped(torch.zeros_like, model), other.read(torch.tensor([0])))
    )
    assert torch.equal(given["model"]["0.bias"], torch.tensor([7.0, 8.0]))
    assert other.values["model"]["0.bias"][1].tolist() == [7.0, 8.0]


def test_restore(slots: Slots) -> None:
    ids = torch.tensor([5, 6])
    slots.write(ids, tree.each(lambda model: tree.mapped(lambda value: value * 0 + 3, model), slots.read(ids)))
    saved = {slot: {name: value.clone() for name, value in model.items()} for slot, model in slots.values.items()}
    slots.write(ids, tree.each(lambda model: tree.mapped(lambda value: value * 0 - 9, model), slots.read(ids)))
    slots.restore(saved)
    for name, value in tree.flat(slots.values).items():
        assert torch.equal(value, tree.flat(saved)[name])
    slots.write(ids, tree.each(lambda model: tree.mapped(lambda value: value * 0, model), slots.read(ids)))
    assert saved["alpha"]["value"][5] == 3.0  # what was saved is not what is written to


def test_mapped_files_are_scratch(tmp_path: Path) -> None:
    slots = Slots(first(), 10, budget=0, scratch=tmp_path)
    slots.read(torch.tensor([0]))
    assert slots.folder is not None
    assert slots.folder.parent == tmp_path
    assert sum(file.stat().st_size for file in slots.folder.iterdir()) == slots.bytes == 10 * 17 * 4
    slots.write(torch.tensor([1]), tree.each(lambda m: tree.mapped(lambda v: v + 1, m), slots.read(torch.tensor([1]))))
    slots.close()
    assert list(tmp_path.iterdir()) == []


def test_budget_is_in_bytes() -> None:
    exact = Slots(first(), 10, budget=10 * 17 * 4)
    exact.read(torch.tensor([0]))
    assert not exact.mapped
    assert exact.folder is None
    assert Slots(first(), 10, budget=10 * 17 * 4 - 1).mapped


def test_no_slots() -> None:
    slots = Slots({}, 5)
    assert slots.read(torch.tensor([1])) == {}
    slots.write(torch.tensor([1]), {})
    assert slots.bytes == 0
