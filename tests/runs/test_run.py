"""Saved models come back as the modules that were scored; a run at work is read as far as it is whole."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import forget_checksums

import fedkin as fk
from fedkin.runs.folder import RunFolder


def accuracy(module: torch.nn.Module, fed: fk.Federation, client: int) -> float:
    rows = fed.test[client]
    return float((module(fed.x[rows]).argmax(1) == fed.y[rows]).double().mean())


APFL = fk.methods.apfl(count=4)
COUNTED = ("fedavg", "fedprox", "fedmcsa", "ditto", "pfedme", "perfedavg", "apfl")
METHODS = {name: getattr(fk.methods, name)(count=4) for name in COUNTED} | {
    "apfl of outputs": replace(APFL, train=replace(APFL.train, mix="output")),
    **{name: fk.methods.named(name) for name in ("local", "fedacs", "pfedre", "adafl", "scaffold", "fedmix")},
}
TUNED = ("fedavg", "fedprox", "adafl", "scaffold", "fedmix")  # whose clients hold no model of their own


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_client_s_model_is_the_one_that_was_scored(tmp_path: Path, method: fk.Method) -> None:
    result = fk.run(fk.Experiment(method, fk.Data("digits", clients=6), "dnn:8", rounds=3, evaluate_every=3), tmp_path)
    saved = fk.load_run(tmp_path)
    for client in range(6):
        module = saved.model(client)
        assert accuracy(module, result.federation, client) == pytest.approx(result.accuracies["post"][client])
    first, second = (dict(saved.personal(client)) for client in (0, 1))
    assert not all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", TUNED)
def test_a_fine_tuned_model_that_was_not_stored_is_made_again(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = fk.Experiment(METHODS[name], fk.Data("digits", clients=6), "dnn:8", rounds=3, evaluate_every=3)
    whole = fk.run(experiment, tmp_path / "whole")
    monkeypatch.setattr("fedkin.runs.ending.STORED", 0)
    fk.run(experiment, tmp_path / "small")
    saved = fk.load_run(tmp_path / "small")
    assert "personal" not in saved.models
    for client in range(6):
        values = saved.personal(client)
        assert all(torch.equal(values[key][None], v[client][None]) for key, v in whole.models["personal"].items())
        assert not torch.equal(next(iter(values.values())), next(iter(saved.models["global"].values())))


def test_a_fine_tuned_model_needs_the_data_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedkin.runs.ending.STORED", 0)
    clients = {name: (torch.randn(40, 5), torch.randint(0, 2, (40,))) for name in ("north", "south")}
    federation = fk.from_clients(clients)
    result = fk.run(fk.Experiment(fk.methods.fedavg(count=2), federation, "mlr", rounds=2, evaluate_every=1), tmp_path)
    saved = fk.load_run(tmp_path)
    with pytest.raises(fk.BadInput, match=r"not at hand .* set run.federation"):
        saved.model("north")
    saved.federation = fk.from_clients(clients, seed=1)
    with pytest.raises(fk.BadInput, match="not those that"):
        saved.model("north")
    saved.federation = federation
    assert accuracy(saved.model("north"), federation, 0) == pytest.approx(result.accuracies["post"][0])
    alone = fk.run(fk.Experiment(fk.methods.fedavg(count=2), federation, "mlr", rounds=1))
    with pytest.raises(fk.BadInput, match=r"give fk\.run a folder"):
        alone.model(0)


def test_the_common_model_and_names(tmp_path: Path) -> None:
    clients = {name: (torch.randn(40, 5), torch.randint(0, 2, (40,))) for name in ("north", "south")}
    method = fk.methods.ditto(count=2)
    result = fk.run(fk.Experiment(method, fk.from_clients(clients), "mlr", rounds=2, evaluate_every=1), tmp_path)
    saved = fk.load_run(tmp_path)
    assert accuracy(saved.model(), result.federation, 0) == pytest.approx(result.accuracies["global"][0])
    assert torch.equal(saved.model("south")[1].weight, saved.model(1)[1].weight)
    with pytest.raises(fk.BadInput, match=r"no client called 'sout'; did you mean south"):
        saved.model("sout")
    with pytest.raises(fk.BadInput, match="no client 2"):
        saved.model(2)


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match="not a run"):
        fk.load_run(tmp_path)
    data = fk.Data("digits", clients=4)
    fk.run(fk.Experiment(fk.methods.fedavg(count=2), data, rounds=1), tmp_path / "one")
    assert isinstance(fk.load_run(tmp_path / "one").model(0), torch.nn.Module)
    fk.run(fk.Experiment(fk.methods.local(), data, rounds=1), tmp_path / "two")
    with pytest.raises(fk.BadInput, match="no common model"):
        fk.load_run(tmp_path / "two").model()
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    fk.run(fk.Experiment(fk.methods.local(), data, module, rounds=1), tmp_path / "three")
    with pytest.raises(fk.BadInput, match="handed to it"):
        fk.load_run(tmp_path / "three").model(0)
    assert isinstance(fk.load_run(tmp_path / "three").model(0, module), torch.nn.Module)


def test_a_run_at_work_is_read_whole(tmp_path: Path) -> None:
    """A reader finds files of two rounds: the values of the newer one are there, in part, and its line is not."""
    experiment = fk.Experiment(fk.methods.fedavg(count=3), fk.Data("synthetic", clients=5), rounds=3, evaluate_every=1)
    fk.run(experiment, tmp_path)
    whole = fk.Run(tmp_path)
    known = whole.accuracies["post"], whole.participation["selected"], len(whole.accuracy("post"))
    forget_checksums(tmp_path)  # a run at work has no manifest yet
    for name, more in (("accuracy-post.bin", 8 * 5 + 3), ("selected.bin", 7), ("kept.bin", 7), ("rounds.jsonl", 9)):
        with open(tmp_path / name, "ab") as file:
            file.write(b"7" * more)
    found = fk.Run(tmp_path)
    np.testing.assert_array_equal(found.accuracies["post"], known[0])
    np.testing.assert_array_equal(found.participation["selected"], known[1])
    assert len(found.accuracy("post")) == known[2] == 3


@pytest.mark.parametrize("values", ["selected", "kept"])
def test_rounds_are_read_before_what_belongs_to_them(
    values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are written before the line of their round, so that they must be read after it."""
    experiment = fk.Experiment(fk.methods.fedavg(count=3), fk.Data("synthetic", clients=5), rounds=2, evaluate_every=1)
    fk.run(experiment, tmp_path)
    order: list[str] = []

    def heard(name: str, real: Any) -> Any:
        return lambda folder: (order.append(name), real(folder))[1]

    for name in ("rounds", values):
        monkeypatch.setattr(RunFolder, name, heard(name, getattr(RunFolder, name)))
    getattr(fk.Run(tmp_path), values)
    assert order == ["rounds", values]
