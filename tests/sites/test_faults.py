"""Sites that are late, dead, lying or wrong: the round goes on with the others, and nobody else is affected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults import FAULTS, Faulty, huge, on_upload
from federation import NAMES, Party, close, experiment, short

import fedkin as fk
from fedkin import sites
from fedkin.core import tree
from fedkin.errors import Unfinished
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.folder import RunFolder
from fedkin.sites import Answer
from fedkin.sites.uploads import fitting

FEDAVG = short(fk.methods.fedavg(count=4))
FEDMCSA = short(fk.methods.fedmcsa(count=4))
DITTO = short(fk.methods.ditto(count=4))
BAD = NAMES.index("b10")
SENT = {0: 1.0, 1: 2.0, 2: 200.0, 3: 3.0}  # how many times (3, 4) each site sends


def played(party: Party, method: Any, folder: Path, fails: Any, **more: Any) -> fk.Run:
    return sites.run(party.met(party.here(Faulty, fails=fails), **more), experiment(method), folder)


def state_of(run: fk.Run) -> dict[str, torch.Tensor]:
    assert run.folder is not None
    point = load_checkpoint(RunFolder(run.folder), [])
    assert point is not None
    return tree.flat({"keep": point.state.keep, "collaborate": point.state.collaborate})


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", [FEDAVG, FEDMCSA], ids=["fedavg", "fedmcsa"])
def test_what_a_bad_site_sends_has_weight_0_and_is_named(party: Party, tmp_path: Path, method: Any, fault: str) -> None:
    """In round 2 it is as if the site had not answered: the same run as one in which it is dead in that round."""
    bad, words = FAULTS[fault]
    if fault in ("a round it did not play", "shown 100 times as large") and method is FEDAVG:
        bad, words = FAULTS["names"]  # there a site holds nothing, and shows nothing
    run = played(party, method, tmp_path / "bad", lambda name, round: bad if (name, round) == ("b10", 2) else None)
    assert [line["replied"] for line in run.lines] == [4, 3, 4]
    named = fault == "another name"  # that answer is not even looked at
    assert run.lines[1].get("dropped", []) == ([] if named else [BAD])
    assert "dropped" not in run.lines[0] | run.lines[2]
    assert any("b10" in said and words in said for said in party.said)

    quiet = party.twin(tmp_path / "other sites")
    dead = played(quiet, method, tmp_path / "dead", lambda name, round: "dead" if (name, round) == ("b10", 2) else None)
    assert dead.lines[1]["replied"] == 3
    close(state_of(dead), state_of(run), 1e-12)
    close(quiet.private(), party.private(), 1e-12)


@pytest.mark.parametrize("how", ["dead", "lost", "late"])
@pytest.mark.parametrize("method", [DITTO, FEDMCSA], ids=["ditto", "fedmcsa"])
def test_an_answer_that_does_not_come_in_time_touches_no_later_round(
    party: Party, tmp_path: Path, method: Any, how: str
) -> None:
    """A site whose answer was lost has trained in vain: it goes on from what the server knows of."""
    run = played(party, method, tmp_path / "run", lambda name, round: how if (name, round) == ("c", 1) else None)
    assert [line["replied"] for line in run.lines] == ([3, 3, 4] if how == "late" else [3, 4, 4])
    assert any("without site c" in said for said in party.said)
    assert any("too late" in said for said in party.said) == (how == "late")
    gone = (1, 2) if how == "late" else (1,)
    quiet = party.twin(tmp_path / "other sites")
    dead = played(
        quiet, method, tmp_path / "dead", lambda name, round: "dead" if name == "c" and round in gone else None
    )
    close(state_of(dead), state_of(run), 1e-12)
    close(quiet.private(), party.private(), 1e-12)


def test_the_scores_of_a_site_that_is_gone_are_those_of_no_samples(party: Party, tmp_path: Path) -> None:
    run = played(party, FEDAVG, tmp_path / "run", lambda name, round: "dead" if name == "c" and round == 2 else None)
    there = ~np.isnan(run.values("accuracy", "global"))  # round 1 is scored together with the training of round 2
    assert there.tolist() == [[True, True, True, False], [True] * 4, [True] * 4]


@pytest.mark.parametrize("fault", ["100 times as large", "shown 100 times as large"])
def test_a_large_model_is_shortened_where_that_is_asked_for(party: Party, tmp_path: Path, fault: str) -> None:
    """It counts, is named in the record, and the others learn no more from it than from anybody else."""
    fails = lambda name, round: FAULTS[fault][0] if (name, round) == ("b10", 2) else None  # noqa: E731
    run = played(party, FEDMCSA, tmp_path / "run", fails, too_large="clip")
    assert [line["replied"] for line in run.lines] == [4, 4, 4]
    assert [line.get("clipped") for line in run.lines] == [None, [BAD], None]
    assert not any("dropped" in line for line in run.lines)
    assert any("b10" in said and "shortened to their length" in said for said in party.said)
    quiet = party.twin(tmp_path / "other sites")
    played(quiet, FEDMCSA, tmp_path / "quiet", lambda name, round: None)
    for name, value in quiet.private().items():
        assert party.private()[name].norm() < 1.5 * value.norm()


def test_what_is_shortened_has_the_usual_length() -> None:
    wanted = {"model": {"w": torch.zeros(2)}, "control": {"w": torch.zeros(2)}}
    usual = torch.tensor([3.0, 4.0])
    sent = {i: {"model": {"w": by * usual}, "control": {"w": torch.ones(2)}} for i, by in SENT.items()}
    fit = fitting(sent, wanted, 50.0, "clip")
    assert not fit.why
    assert list(fit.clipped) == [2]
    assert torch.allclose(fit.good[2]["model"]["w"], torch.tensor([6.0, 8.0]))  # the median of the others
    assert torch.allclose(fit.good[2]["control"]["w"], torch.full((2,), 0.01))
    for other in (0, 1, 3):
        assert torch.equal(fit.good[other]["model"]["w"], sent[other]["model"]["w"])
    assert fitting(sent, wanted, 101.0, "clip").clipped == {}
    assert list(fitting(sent, wanted, 50.0).why) == [2]


def test_another_way_with_large_models_is_refused(party: Party) -> None:
    with pytest.raises(fk.BadInput, match="called 'shrink'; choose from clip, drop"):
        party.met(too_large="shrink")


def test_a_site_that_shows_nonsense_after_the_server_died_does_not_end_the_run(party: Party, tmp_path: Path) -> None:
    """The first model stands for what it shows; the others go on."""

    def nonsense(answer: Answer) -> Answer:
        return Answer.of(answer.site, answer.to, answer.value() | {"shown": "nothing"})

    with pytest.raises(Unfinished):
        played(party, FEDMCSA, tmp_path / "run", lambda name, round: "dead" if round == 3 else None)
    transport = party.here(Faulty, fails=lambda name, round: nonsense if (name, round) == ("b10", 0) else None)
    run = sites.run(party.met(transport), experiment(FEDMCSA), tmp_path / "run", resume=True)
    assert [line["replied"] for line in run.lines] == [4, 4, 4]
    assert any("What site b10 shows does not count" in said for said in party.said)


def test_a_large_model_counts_where_nobody_minds(party: Party, tmp_path: Path) -> None:
    fails = lambda name, round: on_upload(huge) if name == "b10" else None  # noqa: E731
    run = played(party, FEDAVG, tmp_path / "run", fails, largest=None)
    assert all(line["replied"] == 4 for line in run.lines)


def test_who_is_away_when_the_run_ends_is_asked_again(party: Party, tmp_path: Path) -> None:
    """It would have neither scores of the last round nor its model otherwise."""
    away: list[str] = []

    def fails(name: str, round: int) -> str | None:
        away.extend(["c"] if (name, round) == ("c", 0) else [])
        return "dead" if (name, round) == ("c", 0) and len(away) < 3 else None

    run = played(party, FEDAVG, tmp_path / "run", fails, patience=0.0)
    assert len(away) == 3
    assert not np.isnan(run.values("accuracy", "global")).any()
    assert list((party.folder / "c").glob("runs/*/model.safetensors"))
    assert any(said.startswith("Not everyone answers (c: It did not answer.); waiting") for said in party.said)


def test_who_is_gone_when_the_run_ends_does_not_end_it(party: Party, tmp_path: Path) -> None:
    fails = lambda name, round: "dead" if (name, round) == ("c", 0) else None  # noqa: E731
    run = played(party, FEDAVG, tmp_path / "run", fails, timeout=0.05)
    assert len(run.lines) == 3
    assert np.isnan(run.values("accuracy", "global")[-1]).tolist() == [False, False, False, True]
    assert any("without site c" in said for said in party.said)


def test_nobody_answers(party: Party, tmp_path: Path) -> None:
    """It waits with a notice, ends with a sentence, and goes on where it was when sites are back."""
    fails = lambda name, round: "dead" if round == 3 else None  # noqa: E731
    with pytest.raises(Unfinished, match=r"Nobody answers for .* --resume"):
        played(party, FEDMCSA, tmp_path / "run", fails)
    assert any("waiting, at most" in said for said in party.said)
    assert len(fk.Run(tmp_path / "run").lines) == 1  # round 2 is scored together with the training of round 3
    again = sites.run(party.met(), experiment(FEDMCSA), tmp_path / "run", resume=True)
    quiet = party.twin(tmp_path / "other sites")
    whole = sites.run(quiet.met(), experiment(FEDMCSA), tmp_path / "whole")
    assert [line["accuracy"] for line in again.lines] == [line["accuracy"] for line in whole.lines]
    close(quiet.private(), party.private(), 0.0)


def test_somebody_answers_after_a_while(party: Party, tmp_path: Path) -> None:
    tries: list[str] = []

    def fails(name: str, round: int) -> str | None:
        tries.append(name)
        return "dead" if round == 2 and len(tries) < 30 else None

    run = played(party, FEDAVG, tmp_path / "run", fails, patience=60.0)
    assert len(run.lines) == 3
    assert any("Nobody answers" in said for said in party.said)


@pytest.mark.parametrize("name", ["fedavg", "fedmcsa"])
def test_a_round_with_its_scores_is_one_exchange(party: Party, tmp_path: Path, name: str) -> None:
    method = short(getattr(fk.methods, name)(), 3)
    transport = party.here(Faulty)
    sites.run(party.met(transport), experiment(method), tmp_path / "run")
    assert transport.exchanges == 4  # three rounds, and the scores of the last
