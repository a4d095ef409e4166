"""Attacks on updates: what attackers upload, that nothing else changes, and how runs are played and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fedkin as fk
from fedkin import sites
from fedkin.data import Data, Federation, load
from fedkin.data.attacks import Attack
from fedkin.data.scenarios import attacked, target
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.errors import BadInput
from fedkin.messages import Reply, Sent
from fedkin.runs.facts import fingerprint

WHO = torch.tensor([False, True, False, True, False, False])
UPLOADS = [[3.0, 5.0], [2.0, 4.0], [1.0, 9.0], [0.0, 6.0]]  # of the clients 0, 1, 3 and 4; all were sent (1, 4)
SPECS = ("scale:0.3,-10", "sign:0.3", "alie:0.3")


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def uploaded(kind: Any, strength: float, uploads: Any = UPLOADS) -> list[list[float]]:
    ids = torch.tensor([0, 1, 3, 4])
    given = {"model": {"w": tensor(uploads)}, "control": {"w": tensor(uploads)}}
    before = {name: {"w": model["w"].clone()} for name, model in given.items()}
    reply = Attack(kind, WHO, strength).passed(Reply(ids, given, {}), Sent(ids, {"model": {"w": tensor([1.0, 4.0])}}))
    assert all(torch.equal(given[name]["w"].nan_to_num(), before[name]["w"].nan_to_num()) for name in given)
    honest = [0, 3]
    for name, model in reply.upload.items():
        assert torch.equal(model["w"][honest].nan_to_num(), given[name]["w"][honest].nan_to_num())
    return [*reply.upload["model"]["w"][1:3].tolist(), *reply.upload["control"]["w"][1:3].tolist()]


def test_scaled_updates_by_hand() -> None:
    """The change since the model that was sent is scaled; a control variate is a change by itself."""
    assert uploaded("scale", -10.0) == [[-9.0, 4.0], [1.0, -46.0], [-20.0, -40.0], [-10.0, -90.0]]


def test_every_model_is_attacked_as_far_as_it_moved() -> None:
    """A shadow is no change: minus its update is near what was sent, not minus the whole model."""
    ids = torch.tensor([0, 1])
    upload = {name: {"w": tensor([[5.1], [5.1]])} for name in ("model", "without 1", "control")}
    sent = Sent(ids, {name: {"w": tensor([5.0])} for name in upload})
    found = Attack("sign", WHO, 1.0).passed(Reply(ids, upload, {}), sent, ("control",)).upload
    assert {name: [round(x, 6) for [x] in model["w"].tolist()] for name, model in found.items()} == {
        "model": [5.1, 4.9],
        "without 1": [5.1, 4.9],
        "control": [5.1, -5.1],
    }


def test_reversed_updates_by_hand() -> None:
    assert uploaded("sign", 7.0) == [[0.0, 4.0], [1.0, -1.0], [-2.0, -4.0], [-1.0, -9.0]]


def test_a_little_is_enough_by_hand() -> None:
    """All attackers upload the mean of the others less so many deviations, number by number."""
    found = uploaded("alie", 1.5)
    columns = list(zip(UPLOADS[0], UPLOADS[3], strict=True))
    wanted = [fmean(column) - 1.5 * pstdev(column) for column in columns]
    assert found == [pytest.approx(wanted)] * 4


def test_who_is_not_finite_teaches_attackers_nothing() -> None:
    spoilt = [*UPLOADS[:3], [torch.nan, 6.0]]
    assert uploaded("alie", 1.5, spoilt) == [UPLOADS[0]] * 4


def test_without_others_attackers_upload_what_they_trained() -> None:
    ids, model = torch.tensor([1, 3]), {"model": {"w": tensor(UPLOADS[1:3])}}
    reply = Reply(ids, model, {})
    assert Attack("alie", WHO, 1.5).passed(reply, Sent(ids)) is reply


@pytest.mark.parametrize("spec", SPECS)
def test_samples_stay_clean_and_the_truth_is_known(spec: str) -> None:
    data = Data("digits", clients=10)
    clean, found = load(data), load(replace(data, irrelevant=spec))
    assert torch.equal(clean.x, found.x)
    assert torch.equal(clean.y, found.y)
    assert found.irrelevant is not None
    assert found.attack is not None
    assert torch.equal(found.irrelevant, found.attack.who)
    assert int(found.irrelevant.sum()) == 3
    assert found.source["irrelevant"] == spec + (",1.5" if spec.startswith("alie") else "")


def test_another_strength_is_other_data() -> None:
    clean = load(Data("digits", clients=10))
    marks = [fingerprint(attacked(clean, *how)) for how in (("scale", 0.3, 2.0), ("scale", 0.3, 3.0), ("sign", 0.3))]
    assert len(set(marks)) == 3


@pytest.mark.parametrize("kind", [Stacked, Plain])
def test_only_what_is_uploaded_is_attacked(federate: Any, start: Any, kind: type[Simulation]) -> None:
    """What an engine trains to score it is not uploaded. Both engines are compared with the uploads without attack."""
    clean = replace(federate([6] * 8, 2, (4,), 3), irrelevant=None)
    method, module = fk.methods.fedavg(), nn.Sequential(nn.Linear(4, 3))
    ids = torch.arange(8)
    engine, task, state = start(kind, method, clean, module, dtype=torch.float64)
    sent, _ = method.collaborate.send(state.collaborate, task, ids, None)
    honest = engine.train(method.train, sent, ids, 1).upload["model"]["0.weight"] - task.model["0.weight"]
    federation = attacked(clean, "scale", 0.25, -10.0)
    engine, task, state = start(kind, method, federation, module, dtype=torch.float64)
    for keep, factor in ((True, -10.0), (False, 1.0)):
        found = engine.train(method.train, sent, ids, 1, keep=keep).upload["model"]["0.weight"] - task.model["0.weight"]
        factors = torch.where(federation.irrelevant, factor, 1.0)[:, None, None]
        assert torch.allclose(found, factors * honest, atol=1e-12, rtol=1e-12)


def models(run: fk.Run) -> dict[str, Tensor]:
    return {name: value for stored in run.models.values() for name, value in stored.items()}


@pytest.mark.parametrize("spec", SPECS)
def test_engines_agree_and_a_run_is_resumed_to_the_bit(spec: str, tmp_path: Path) -> None:
    data = Data("digits", clients=8, samples=20, irrelevant=spec)
    method = fk.methods.fedavg()
    short = replace(method, train=replace(method.train, steps=2, epochs=None, batch=8))

    def experiment(rounds: int, engine: str = "stacked") -> fk.Experiment:
        return fk.Experiment(short, data, "mlr", rounds=rounds, engine=engine, dtype="float64", chunk=3)

    whole, plain = (models(fk.run(experiment(4, engine), tmp_path / engine)) for engine in ("stacked", "plain"))
    fk.run(experiment(2), tmp_path / "halves")
    halves = models(fk.run(experiment(4), tmp_path / "halves", resume=True))
    assert all(torch.equal(whole[name], halves[name]) for name in whole)
    assert all(torch.allclose(whole[name], plain[name], atol=1e-9) for name in whole)
    clean = models(fk.run(replace(experiment(4), data=replace(data, irrelevant=None))))
    assert any(not torch.allclose(whole[name], clean[name], atol=1e-3) for name in whole), "the attack had no effect"


def test_a_comparison_records_the_truth_and_its_report_knows_it(fedkin: Callable[..., Any], tmp_path: Path) -> None:
    data = ("--data", "digits", "--clients", "10", "--samples", "20", "--irrelevant", "scale:0.3,-10")
    code, out, err = fedkin("compare", "fedavg", "oracle", *data, "--rounds", "2", "--out", "study")
    assert code == 0, err
    assert "oracle" in out
    clients = json.loads((tmp_path / "study" / "fedavg" / "seed-0" / "clients.json").read_text())
    assert sum(clients["irrelevant"]) == 3
    code, _, err = fedkin("report", "study")
    assert code == 0, err
    assert "scale:0.3,-10" in (tmp_path / "study" / "report.html").read_text()


def test_where_an_attack_makes_no_sense_it_is_refused(fedkin: Callable[..., Any]) -> None:
    code, _, err = fedkin("run", "fedmcsa", "--data", "digits", "--clients", "10", "--irrelevant", "sign:0.3")
    assert code == 2
    assert "mixes the models that clients hold, so no update can be attacked; use flip or ood." in err
    assert len(err.strip().splitlines()) == 1


def test_no_site_is_made_irrelevant() -> None:
    experiment = fk.Experiment(fk.methods.fedavg(), Data("digits", irrelevant="sign:0.3"), "mlr", rounds=1)
    nobody: Any = None
    with pytest.raises(BadInput, match="Real sites are as they are, so none can be made irrelevant"):
        sites.run(nobody, experiment)


@pytest.fixture
def labelled() -> Federation:
    return load(Data("digits", clients=10, partition="dirichlet:0.5"))


def test_a_targeted_class_is_called_by_the_next_one(labelled: Federation) -> None:
    found = target(labelled, 0.3, 9)
    assert found.irrelevant is not None
    counts, after = labelled.label_counts(), found.label_counts()
    chosen = found.irrelevant.numpy()
    assert chosen.sum() == 3
    assert counts[chosen, 9].min() >= counts[~chosen, 9].max()
    assert (after[~chosen] == counts[~chosen]).all()
    moved = after[chosen] - counts[chosen]
    assert (moved[:, 9] == -counts[chosen, 9]).all()
    assert (moved[:, 0] == counts[chosen, 9]).all()
    assert (moved[:, 1:9] == 0).all()
    for index in (labelled.test,):
        assert torch.equal(labelled.y[index.rows], found.y[found.test.rows])


def test_the_class_that_most_clients_have_is_targeted(labelled: Federation) -> None:
    most = int((labelled.label_counts() > 0).sum(0).argmax())
    assert torch.equal(target(labelled, 0.3).y, target(labelled, 0.3, most).y)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: target(f, 0.3, 10), "classes 0 to 9, and no class 10"),
        (lambda f: target(replace(f, y=f.y.clamp(max=8)), 0.3, 9), "Only 0 clients have class 9, not 3"),
        (lambda f: attacked(f, "flip", 0.3), "one of scale, sign, alie, not 'flip'"),
        (lambda f: attacked(f, "scale", 1.3), "above 0 and below 1"),
        (lambda f: attacked(attacked(f, "sign", 0.3), "sign", 0.3), "irrelevant clients already"),
    ],
)
def test_mistakes(labelled: Federation, call: Callable[[Federation], Federation], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        call(labelled)
