"""Sites noise what they send by a secret of their own, keep a book of it, and refuse what is less than they demand."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import torch
from faults import Faulty
from federation import NAMES, Party, experiment, same_run, short, stacked
from small import Until, same_runs

import fedkin as fk
from fedkin import sites
from fedkin.privacy import Guard, Privacy, guard
from fedkin.privacy.accountant import epsilon
from fedkin.sites import Request, ledger
from fedkin.sites.guard import Book, SiteGuard

pytest.importorskip("opacus")

DP = "clip=1.0,noise=0.8,losses=true"
FEDAVG = short(fk.methods.fedavg(), 4)
SAME = Guard(Privacy(1.0, 0.8), b"4")  # the noise of the stacked engine with the seed of these experiments


@pytest.fixture
def played(party: Party, tmp_path: Path) -> Faulty:
    """The transport of a run, which knows what every site was asked."""
    transport = party.here(Faulty)
    sites.run(party.met(transport), experiment(FEDAVG, dp=DP, rounds=2), tmp_path / "run")
    assert isinstance(transport, Faulty)
    return transport


def training(transport: Faulty) -> dict[str, Any]:
    """What site c was asked in its last round of training."""
    asked = [requests["c"].value() for requests in transport.asked if "c" in requests]
    return [value for value in asked if value.get("train")][-1]


def uploaded(party: Party, value: dict[str, Any]) -> torch.Tensor:
    """The update that site c sends when it is asked this, as one vector."""
    answer = party.site("c").answer(Request.of("1", "work", value)).value()
    assert "refused" not in answer, answer
    return torch.cat([(answer["upload"]["model"][k] - v).flatten() for k, v in value["train"]["sent"]["model"].items()])


def unnoised(party: Party, value: dict[str, Any]) -> torch.Tensor:
    """The clipped update of site c without its noise."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(guard, "normal", lambda key, count: torch.zeros(count, dtype=torch.float64))
        return uploaded(party, value)


def test_the_server_does_not_know_the_noise_of_a_site(party: Party, played: Faulty) -> None:
    """It knows the seed, what it sent, the site's proof and its number, and can draw all noise that these give."""
    value = training(played)
    noise = (uploaded(party, value) - unnoised(party, value)) / 0.8
    assert 0.5 < noise.std() < 2.0
    told = party.site("c").introduce({})
    secrets = [b"4", b"0", b"", told["proof"].encode(), bytes.fromhex(told["proof"])]
    run, still = value["run"]["id"], unnoised(party, value)
    for secret in secrets:
        book = Book(party.folder / "nobody", None)
        for one in (Guard(Privacy(1.0, 0.8), secret), SiteGuard(Privacy(1.0, 0.8, losses=True), secret, run, book)):
            for client in range(4):
                guessed = guard.normal(one.key(value["train"]["round"], client, still), len(noise))
                near = torch.corrcoef(torch.stack([noise, guessed]))[0, 1]
                assert near.abs() < 0.5
    assert party.site("c").book.secret().hex() not in str(told)


def test_a_round_that_is_played_again_has_the_same_noise_and_is_one_release(party: Party, played: Faulty) -> None:
    value, before = training(played), party.site("c").book.releases()
    assert len(before) == 2
    assert torch.equal(uploaded(party, value), uploaded(party, value))
    assert party.site("c").book.releases() == before


def other_model(value: dict[str, Any]) -> None:
    model = value["train"]["sent"]["model"]
    value["train"]["sent"]["model"] = {name: one + 1e-3 for name, one in model.items()}


def more_noise(value: dict[str, Any]) -> None:
    value["run"]["dp"] = "clip=1.0,noise=1.6,losses=true"


def other_rate(value: dict[str, Any]) -> None:
    value["run"]["train"]["eta"] *= 1.01


@pytest.mark.parametrize("change", [other_model, more_noise, other_rate])
def test_a_round_that_is_played_twice_in_different_ways_has_other_noise(
    party: Party, played: Faulty, change: Callable[[dict[str, Any]], None]
) -> None:
    value = training(played)
    other = copy.deepcopy(value)
    change(other)
    noises = [uploaded(party, one) - unnoised(party, one) for one in (value, other)]
    assert torch.corrcoef(torch.stack(noises))[0, 1].abs() < 0.5
    assert len(party.site("c").book.releases()) >= 3


@pytest.mark.parametrize("name", ["fedavg", "fedmcsa", "scaffold"])
def test_but_for_the_noise_sites_are_stacked(
    party: Party, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With the same noise in both, what sites clip, upload and keep is what the stacked engine has."""
    monkeypatch.setattr(SiteGuard, "key", lambda self, *of: SAME.key(*of))
    method = short(fk.methods.named(name), 3)
    one = stacked(method, party.federation, tmp_path / "stacked", dp=DP)
    other = sites.run(party.met(), experiment(method, dp=DP), tmp_path / "remote")
    same_run(one, other, party.private())
    assert one.summary["privacy"] == other.summary["privacy"]


def test_a_site_keeps_its_own_model_unnoised(party: Party, tmp_path: Path) -> None:
    method = short(fk.methods.ditto(), 4)
    sites.run(party.met(), experiment(method, rounds=1), tmp_path / "plain")
    noised = replace(party, folder=tmp_path / "others", heard=[])
    sites.run(noised.met(), experiment(method, rounds=1, dp=DP), tmp_path / "noised")
    for name, value in party.private().items():
        assert torch.equal(value, noised.private()[name]), name


def test_scores_stay_at_sites_unless_losses_are_allowed(party: Party, tmp_path: Path) -> None:
    run = sites.run(party.met(), experiment(FEDAVG, dp="clip=1.0,noise=0.8"), tmp_path / "run")
    assert run.lines[-1]["accuracy"]["post"] == {"macro": None, "micro": None}
    assert all(len(list((party.folder / name).glob("runs/*/model.safetensors"))) == 1 for name in NAMES)
    told = sites.run(party.met(), experiment(FEDAVG, dp=DP), tmp_path / "told")
    assert told.lines[-1]["accuracy"]["post"]["macro"] is not None


ASKED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "no noise": (lambda value: value["run"].pop("dp"), "demands --dp with noise=0.5 or more, and the run has none"),
    "less noise": (lambda value: value["run"].update(dp="clip=1,noise=0.4"), "noise=0.5 or more, not 0.4"),
    "its model": (lambda value: value.update(show="model"), "does not send the model that it holds"),
    "averages": (lambda value: value.update(prepare=True), "does not send averages of its samples"),
    "its loss": (lambda value: value["train"].update(reports=["loss"]), "tells its losses only with losses=true"),
    "its scores": (lambda value: value["run"].update(dp=DP), "tells no losses and scores"),
    "noise that is no text": (lambda value: value["run"].update(dp=[1]), "A run says --dp as a text"),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_site_that_demands_noise_refuses(party: Party, played: Faulty, case: str) -> None:
    change, words = ASKED[case]
    party.options = {"dp": "noise=0.5"}
    value = training(played)
    value["run"]["dp"] = "clip=1.0,noise=0.8"
    value.pop("looks", None)
    assert "upload" in party.site("c").answer(Request.of("1", "work", value)).value()
    change(value)
    answer = party.site("c").answer(Request.of("2", "work", value)).value()
    assert words in answer["refused"]
    assert "upload" not in answer


def test_a_site_spends_no_more_than_it_may_in_all_runs_together(party: Party, tmp_path: Path) -> None:
    most = epsilon({0.8: 3}, 1e-5) + 1e-6
    party.options = {"dp": f"noise=0.5,epsilon={most},losses=true"}
    sites.run(party.met(), experiment(FEDAVG, dp=DP, rounds=2), tmp_path / "first")
    with pytest.raises(fk.BadInput, match=r"This site may spend epsilon .*; it takes part no more"):
        sites.run(party.met(), experiment(FEDAVG, dp=DP, rounds=2), tmp_path / "second")
    for name in NAMES:
        assert Counter(party.site(name).book.releases().values()) == {0.8: 3}


def test_a_run_on_sites_goes_on_with_the_same_noise(
    party: Party, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run draws a name by chance, by which noise is keyed too, so here both runs have the same one."""
    monkeypatch.setattr(ledger, "uuid4", lambda: UUID(int=7))
    asked = experiment(short(fk.methods.fedmcsa(), 3), dp=DP)
    twin = party.twin(tmp_path / "twin")
    for name in NAMES:
        (tmp_path / "twin" / name / "noise").write_bytes(party.site(name).book.secret())
    sites.run(party.met(), asked, tmp_path / "whole")
    sites.run(twin.met(), asked, tmp_path / "parts", callbacks=[Until(2)])
    sites.run(twin.met(), asked, tmp_path / "parts", resume=True)
    same_runs(tmp_path / "whole", tmp_path / "parts")
    assert [twin.site(name).book.releases() for name in NAMES] == [party.site(name).book.releases() for name in NAMES]
