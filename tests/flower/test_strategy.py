"""Methods as Flower strategies: with ClientApps of the user's own, and with fedkin's client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from federation import NAMES, Party, close, mlp, short, stacked
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.serverapp.strategy import FedAvg, Result
from flwr.serverapp.strategy import Strategy as FlowersStrategy
from in_process import InProcess, Node
from own_app import network, own_app, trained, with_statistics
from small import seeded
from test_grid import app

import fedkin as fk
from fedkin.collaborate import ComponentAttention, SimilarityThreshold
from fedkin.core import tree
from fedkin.flower import Strategy
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.folder import RunFolder

FIRST = seeded(network).state_dict()


def own_grid(change: Any = None) -> InProcess:
    grid = InProcess()
    for number in range(4):
        grid.add(own_app(change) if change else own_app(), **{"partition-id": number})
    return grid


def started(strategy: Any, grid: InProcess, rounds: int = 3) -> Result:
    found = strategy.start(grid, ArrayRecord(FIRST), num_rounds=rounds)
    assert isinstance(found, Result)
    return found


def model_of(record: ArrayRecord) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array.numpy().copy()) for name, array in record.items()}


# nodes with a ClientApp of the user's own


def test_fedavg_is_flowers_fedavg() -> None:
    ours, theirs = Strategy(fk.methods.fedavg(), fraction_train=1.0), FedAvg()
    assert isinstance(ours, FlowersStrategy)
    one, other = started(ours, own_grid()), started(theirs, own_grid())
    close(model_of(one.arrays), model_of(other.arrays), 1e-6)
    for left, right in (
        (one.train_metrics_clientapp, other.train_metrics_clientapp),
        (one.evaluate_metrics_clientapp, other.evaluate_metrics_clientapp),
    ):
        assert left.keys() == right.keys() == {1, 2, 3}
        for t in left:
            shared = {name: value for name, value in left[t].items() if not name.startswith("fedkin-")}
            assert shared == pytest.approx(dict(right[t]))
    assert one.train_metrics_clientapp[1]["fedkin-counted"] == 4.0


MIXED = {
    "fedavg_mcsa": (fk.methods.fedavg_mcsa(sigma=5.0), ComponentAttention(5.0)),
    "fedacs": (fk.methods.fedacs(p=0.25), SimilarityThreshold(0.25)),
}


@pytest.mark.parametrize("name", MIXED)
def test_nodes_get_mixtures_of_their_own(name: str) -> None:
    """By hand: a node starts at the mixture of what all sent last, and what it sends is its model."""
    method, mixing = MIXED[name]
    grid = own_grid()
    result = started(Strategy(method), grid)
    numbers = sorted(range(4), key=lambda number: sorted(grid.nodes).index(list(grid.nodes)[number]))
    held = tree.repeated(dict(FIRST), 4)
    for _ in range(3):
        mixed = mixing.mix(held, torch.ones(4))
        held = tree.stacked([trained(tree.row(mixed, place), number) for place, number in enumerate(numbers)])
    sizes = torch.tensor([10.0 + 5 * number for number in numbers])
    close(model_of(result.arrays), tree.weighted(held, sizes), 1e-5)
    last = [message for message in grid.seen if message.metadata.message_type == "evaluate"][-4:]
    sent = {message.metadata.dst_node_id: model_of(message.content["arrays"]) for message in last}
    for place, node in enumerate(sorted(grid.nodes)):
        close(sent[node], tree.row(held, place), 1e-5)


@pytest.mark.parametrize("trains", ["selected", "everyone"])
def test_who_is_not_selected_trains_its_own_model_or_does_not(trains: Any) -> None:
    method = replace(fk.methods.fedavg_mcsa(count=2), trains=trains)
    grid = own_grid()
    started(Strategy(method, fraction_evaluate=0.0), grid)
    training = [message for message in grid.seen if message.metadata.message_type == "train"]
    assert len(training) == (12 if trains == "everyone" else 6)
    assert not [message for message in grid.seen if message.metadata.message_type == "evaluate"]


PLAIN = ["krum", "multikrum", "median", "trimmed_mean", "adafl", "pfedre", "pfedre_aligned", "cfl", "feddwa"]


@pytest.mark.parametrize("name", PLAIN)
def test_other_methods_whose_client_is_plain(name: str) -> None:
    method = fk.methods.METHODS[name]()
    more = {"model": network, "sample": torch.zeros(4)} if name == "pfedre" else {}
    result = started(Strategy(method, **more), own_grid())
    assert set(model_of(result.arrays)) == set(FIRST)
    assert not torch.equal(model_of(result.arrays)["0.weight"], FIRST["0.weight"])


def spoiled(number: int, change: Any) -> Any:
    def spoil(context: Any, records: Any) -> Any:
        if int(context.node_config["partition-id"]) == number and records["metrics"]["round"] == 2:
            change(records)
        return records

    return spoil


def nan(records: Any) -> None:
    records["arrays"]["0.bias"] = Array(records["arrays"]["0.bias"].numpy() * float("nan"))


def wrong_shape(records: Any) -> None:
    records["arrays"]["0.bias"] = Array(records["arrays"]["0.bias"].numpy()[:1])


def huge(records: Any) -> None:
    for name in list(records["arrays"]):
        records["arrays"][name] = Array(100 * records["arrays"][name].numpy())


def unweighted(records: Any) -> None:
    records["metrics"] = MetricRecord({"round": 2})


def nameless(records: Any) -> None:
    del records["arrays"]["0.bias"]


@pytest.mark.parametrize("change", [nan, wrong_shape, huge, unweighted, nameless])
def test_what_a_bad_node_sends_does_not_count(change: Any) -> None:
    result = started(Strategy(fk.methods.fedavg()), own_grid(spoiled(2, change)))
    assert [record["fedkin-replied"] for record in result.train_metrics_clientapp.values()] == [4, 3, 4]
    assert all(value.isfinite().all() for value in model_of(result.arrays).values())
    assert all(value.abs().max() < 5 for value in model_of(result.arrays).values())


def test_a_lost_node_is_found_by_the_message_it_did_not_reply_to() -> None:
    grid = own_grid()
    next(iter(grid.nodes.values())).lost = True
    result = started(Strategy(fk.methods.fedavg()), grid)
    assert [record["fedkin-replied"] for record in result.train_metrics_clientapp.values()] == [3, 3, 3]


def test_running_statistics_are_averaged_and_counters_sent_as_they_were() -> None:
    grid = InProcess()
    for number in range(3):
        grid.add(own_app(make=with_statistics), **{"partition-id": number})
    first = seeded(with_statistics).state_dict()
    results = [one.start(grid, ArrayRecord(first), num_rounds=2) for one in (Strategy(fk.methods.fedavg()), FedAvg())]
    one, other = (model_of(result.arrays) for result in results)
    assert one.pop("1.num_batches_tracked") == 0
    other.pop("1.num_batches_tracked")
    close(one, other, 1e-6)
    assert one["1.running_mean"].any()


def test_it_waits_for_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = own_grid()

    def come(seconds: float) -> None:
        grid.add(own_app(), **{"partition-id": 4})

    monkeypatch.setattr("fedkin.flower.strategy.time.sleep", come)
    started(Strategy(fk.methods.fedavg(), min_available_nodes=6), grid, 1)
    assert len(grid.nodes) == 6


# nodes that run fedkin's client


METHODS = {
    "fedavg": short(fk.methods.fedavg(), 3),
    "fedmcsa": short(fk.methods.fedmcsa(), 2),
    "scaffold": short(fk.methods.scaffold(), 3),
    "ditto": short(fk.methods.ditto(), 3),
    "adafl": short(fk.methods.adafl(start=0.5, end=1.0, levels=2)),
    "pfedre": short(fk.methods.pfedre()),
    "cfl": short(fk.methods.cfl(still=50.0, apart=1e-6, first=0)),
    "fedbabu": short(fk.methods.fedbabu(), 3),
    "ifca": short(fk.methods.ifca(), 3),
    "fedfomo": short(fk.methods.fedfomo(models=2), 3),
    "fedala": short(fk.methods.fedala(), 3),
    "kin": short(fk.methods.kin(), 3),
}


@pytest.mark.parametrize("name", METHODS)
def test_with_fedkins_client_it_is_the_run_on_the_stacked_engine(party: Party, tmp_path: Path, name: str) -> None:
    method = METHODS[name]
    run = stacked(method, party.federation, tmp_path / "stacked")
    assert run.folder is not None
    point = load_checkpoint(RunFolder(run.folder), [])
    assert point is not None
    grid = InProcess()
    for site in NAMES:
        grid.add(app(party), name=site)
    strategy = Strategy(method, seed=4, model=mlp if name == "pfedre" else None, timeout=1.0)
    first = ArrayRecord({key: value.double() for key, value in mlp().state_dict().items()})
    result = strategy.start(grid, first, num_rounds=3)
    names = ("select", "keep", "collaborate")
    close(*(tree.flat({key: getattr(state, key) for key in names}) for state in (point.state, strategy.state)), 1e-7)
    close(tree.flat(point.private), party.private(), 1e-7)
    scored = result.evaluate_metrics_clientapp[3]
    kind = "global" if name in ("fedavg", "scaffold", "adafl", "fedbabu") else "post"
    assert scored[f"{kind}-accuracy"] == pytest.approx(run.lines[-1]["accuracy"][kind]["micro"])


def test_a_method_whose_client_is_more_than_sgd_needs_fedkins_client() -> None:
    with pytest.raises(fk.BadInput, match=r"The client of ditto \(TwoStreams\) is more than plain SGD"):
        started(Strategy(fk.methods.ditto()), own_grid())
    with pytest.raises(fk.BadInput, match=r"The client of fedmcsa \(Prox\) is more than plain SGD"):
        started(Strategy(fk.methods.fedmcsa()), own_grid())


def test_nodes_of_both_kinds(party: Party) -> None:
    grid = own_grid()
    grid.nodes[1] = Node(app(party), {"name": "c"})  # the first one, so it is asked
    with pytest.raises(fk.BadInput, match="1 of 5 nodes run fedkin's client"):
        started(Strategy(fk.methods.fedavg()), grid)


def test_one_node_is_asked_whether_it_runs_fedkins_client() -> None:
    """Each that is asked and does not know it fails, and Flower writes a page about that."""
    grid = own_grid()
    started(Strategy(fk.methods.fedavg()), grid, 1)
    assert [message.metadata.message_type for message in grid.seen].count("query") == 1
    grid.nodes[min(grid.nodes)].lost = True
    grid.seen.clear()
    started(Strategy(fk.methods.fedavg()), grid, 1)
    assert [message.metadata.message_type for message in grid.seen].count("query") == 2, "the next one"


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "selection twice": (fk.methods.adafl(), {"fraction_train": 0.5}, "selects its clients itself, by Attention"),
    "a server that looks into the network": (fk.methods.pfedre(), {}, "looks into the network; give Strategy a model="),
    "a survey": (fk.methods.active(), {}, "run it by fedkin.flower.run"),
    "averages of samples": (fk.methods.fedmix(), {}, "run it by fedkin.flower.run"),
    "no method": ("fedavg", {}, "A strategy is made of a method"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_strategy_refuses(case: str) -> None:
    method, options, words = REFUSED[case]
    with pytest.raises(fk.BadInput, match=words):
        Strategy(method, **options)


def test_a_share_of_the_nodes(party: Party) -> None:
    grid = own_grid()
    result = started(Strategy(fk.methods.fedavg(), fraction_train=0.5, min_train_nodes=2), grid)
    assert [record["fedkin-replied"] for record in result.train_metrics_clientapp.values()] == [2, 2, 2]
    result = started(Strategy(fk.methods.fedavg(), fraction_train=0.1, min_train_nodes=3), own_grid())
    assert [record["fedkin-replied"] for record in result.train_metrics_clientapp.values()] == [3, 3, 3]
