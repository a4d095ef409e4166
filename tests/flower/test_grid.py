"""A run on a grid of Flower's is the run on the stacked engine, and its nodes may come, go and lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from federation import NAMES, SIX, Party, experiment, mlp, same_run, short, stacked
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from in_process import InProcess

import fedkin as fk
from fedkin import flower
from fedkin.flower.records import answer_record, as_answer, as_request, request_record
from fedkin.sites import Answer, Request

METHODS = SIX | {
    "fedper": short(fk.methods.fedper(), 3),
    "ifca": short(fk.methods.ifca(), 3),
    "fedfomo": short(fk.methods.fedfomo(models=2), 3),
    "fedala": short(fk.methods.fedala(), 3),
    "kin": short(fk.methods.kin(), 3),
}


def app(party: Party) -> ClientApp:
    """The ClientApp of all sites; each finds its own samples by its name."""

    def load(context: Any) -> fk.Federation:
        number = NAMES.index(context.node_config["name"])
        return replace(party.federation.only(torch.tensor([number])), numbers=None)

    return flower.client(mlp, load, classes=3, folder=party.folder)


def grid_of(party: Party, names: Any = NAMES) -> InProcess:
    grid = InProcess()
    for name in names:
        grid.add(app(party), name=name)
    return grid


def played(grid: InProcess, party: Party, method: Any, folder: Path, **more: Any) -> fk.Run:
    options = {"sites": 4, "timeout": 1.0, "patience": 0.0, "warn": party.said.append} | more
    return flower.run(grid, experiment(method, **options.pop("asked", {})), folder, **options)


@pytest.mark.parametrize("name", METHODS)
def test_a_grid_is_stacked(party: Party, tmp_path: Path, name: str) -> None:
    one = stacked(METHODS[name], party.federation, tmp_path / "stacked")
    grid = grid_of(party)
    other = played(grid, party, METHODS[name], tmp_path / "grid")
    same_run(one, other, party.private())
    kinds = [message.metadata.message_type for message in grid.seen]
    assert set(kinds) == {"query", "train", "evaluate"}
    assert not party.said


def test_letters_survive_the_journey() -> None:
    sent = {"a": torch.tensor(1.5), "b": torch.arange(6).reshape(2, 3), "c": torch.zeros(0, 2, dtype=torch.float64)}
    request = as_request(request_record(Request.of("1", "work", {"x": sent, "y": [float("nan"), None, "text"]})))
    value = request.value()
    for name, tensor in sent.items():
        assert value["x"][name].dtype == tensor.dtype
        assert torch.equal(value["x"][name], tensor)
        assert value["x"][name].shape == tensor.shape
    answer = as_answer(answer_record(Answer.of("a", "1", {"x": sent["b"].T})))
    assert torch.equal(answer.value()["x"], sent["b"].T)
    with pytest.raises(fk.BadInput, match="none of fedkin's"):
        as_request(RecordDict({"config": ConfigRecord({"lr": 0.1})}))


class Loses(fk.Callback):
    """Does something to the grid after a round."""

    def __init__(self, after: dict[int, Any]) -> None:
        self.after = after

    def recorded(self, record: fk.Record) -> None:
        self.after.get(record.round, lambda: None)()


def test_a_node_that_is_lost_and_comes_back_under_another_id(party: Party, tmp_path: Path) -> None:
    """Its node id changes; its name and what lies in its folder do not."""
    grid, method = grid_of(party), short(fk.methods.ditto(count=4))
    gone = next(node for node, one in grid.nodes.items() if one.config["name"] == "b10")

    def lose() -> None:
        grid.nodes[gone].lost = True

    def come_back() -> None:
        del grid.nodes[gone]
        grid.add(app(party), name="b10")

    callbacks = [Loses({1: lose, 2: come_back})]
    run = flower.run(
        grid,
        experiment(method, rounds=5),
        tmp_path / "run",
        sites=4,
        callbacks=callbacks,
        timeout=1.0,
        warn=party.said.append,
    )
    assert [line["replied"] for line in run.lines] == [4, 4, 3, 4, 4]  # round 2 was asked for with the scores of 1
    assert any("without site b10" in said and "code 5" in said for said in party.said)


def test_a_node_whose_time_is_over(party: Party, tmp_path: Path) -> None:
    grid = grid_of(party)

    def slow() -> None:
        next(one for one in grid.nodes.values() if one.config["name"] == "b10").slow = True

    run = played(grid, party, short(fk.methods.fedavg(count=4)), tmp_path / "run", callbacks=[Loses({1: slow})])
    assert [line["replied"] for line in run.lines] == [4, 4, 3]
    assert "It goes on without site b10: It did not answer in 1 s." in party.said


def test_a_node_that_says_it_is_another_is_not_taken(party: Party, tmp_path: Path) -> None:
    grid, method = grid_of(party), short(fk.methods.fedavg(count=4))
    gone = next(node for node, one in grid.nodes.items() if one.config["name"] == "b10")
    heard: list[str] = []

    def lie() -> None:
        del grid.nodes[gone]
        liar = replace(party, folder=tmp_path / "liar", heard=heard)
        grid.add(app(liar), name="b10")

    run = played(grid, party, method, tmp_path / "run", callbacks=[Loses({1: lie})])
    assert [line["replied"] for line in run.lines] == [4, 4, 3]
    assert any("says that it is site b10, and cannot prove it" in said for said in party.said)
    assert not list((tmp_path / "liar").glob("*/runs"))


def test_two_nodes_with_one_name(party: Party, tmp_path: Path) -> None:
    grid = grid_of(party)
    grid.add(app(replace(party, folder=tmp_path / "other")), name="c")
    with pytest.raises(fk.BadInput, match="Two sites say that they are 'c'"):
        played(grid, party, METHODS["fedavg"], tmp_path / "run")


class Registered(InProcess):
    """A grid that knows each node's key under a name: as its configuration says, or as 'other'."""

    def get_nodes(self) -> list[NodeInfo]:
        return [NodeInfo(node_id=node, name=one.config.get("key", "other")) for node, one in self.nodes.items()]


def test_a_name_belongs_to_its_key(party: Party, tmp_path: Path) -> None:
    """Whoever says another's name is left out, also if it is the first to say it, and ends nobody's run."""
    grid, heard = Registered(), list[str]()
    liar = replace(party, folder=tmp_path / "liar", heard=heard)
    grid.add(app(liar), name="c")
    for name in NAMES:
        grid.add(app(party), name=name, key=name)
    run = played(grid, party, METHODS["fedavg"], tmp_path / "run", registered=True)
    assert run.n == 4
    assert all(line["replied"] == 3 for line in run.lines)
    assert any("says that it is site c, and cannot prove it" in said and "site other" in said for said in party.said)
    assert not list((tmp_path / "liar").glob("*/runs"))


def test_a_node_with_another_app(party: Party, tmp_path: Path) -> None:
    grid, other = grid_of(party), ClientApp()

    @other.train()
    def train(message: Message, context: Any) -> Message:
        return Message(message.content, reply_to=message)

    grid.add(other, name="d")
    run = played(grid, party, METHODS["fedavg"], tmp_path / "run")
    assert run.n == 4
    assert any("does not say who it is" in said and "No query function" in said for said in party.said)


def test_a_site_without_a_name(party: Party) -> None:
    grid = InProcess()
    grid.add(app(party))
    grid.push_messages([Message(request_record(Request("1", "introduce")), next(iter(grid.nodes)), MessageType.QUERY)])
    reply = next(iter(grid.pull_messages(list(grid.waiting))))
    assert "A site needs a name" in str(reply.error.reason)


def test_a_site_says_in_its_configuration_how_much_noise_it_demands(party: Party, tmp_path: Path) -> None:
    pytest.importorskip("opacus")
    grid = grid_of(party, NAMES[:3])
    grid.add(app(party), name=NAMES[3], dp="noise=0.8,losses=true")
    played(grid, party, METHODS["fedavg"], tmp_path / "plain", asked={})
    assert any(f"without site {NAMES[3]}: This site demands --dp with noise=0.8" in said for said in party.said)
    party.said.clear()
    run = played(grid, party, METHODS["fedavg"], tmp_path / "noised", asked={"dp": "clip=1,noise=0.8,losses=true"})
    assert not party.said
    assert max(run.summary["privacy"]["releases"]) > 1
