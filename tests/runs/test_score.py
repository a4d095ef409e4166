"""Only the kinds of accuracy that are asked for are computed, and every reader copes with those that are not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small import seen_round

import fedkin as fk
from fedkin.engines import Simulation
from fedkin.evaluate import kinds_of
from fedkin.round import begin
from fedkin.runs.run import Run
from fedkin.runs.setup import engine_of, set_up

DIGITS = ["--data", "digits", "--clients", "6", "--rounds", "4", "--evaluate-every", "2"]


def trained(experiment: fk.Experiment, monkeypatch: pytest.MonkeyPatch) -> tuple[fk.Run, int]:
    """The result, and how many clients were trained only to be looked at."""
    looked = 0
    whole = Simulation.train

    def counted(self, part, sent, ids, *rest, keep=True, **more):
        nonlocal looked
        looked += 0 if keep else len(ids)
        return whole(self, part, sent, ids, *rest, keep=keep, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Simulation, "train", counted)
        return fk.run(experiment), looked


def test_only_what_is_asked_for_is_scored_and_nobody_is_fine_tuned_for_nothing(
    federate, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed = federate((4, 5, 6), common=20, validation=2)
    base = fk.Experiment(fk.methods.fedavg(count=2), fed, rounds=3, evaluate_every=1, threads=1)
    every, looked = trained(base, monkeypatch)
    assert set(every.summary["accuracy"]) == {"post", "global", "test"}
    assert looked == 12, "in three scored rounds, and for the predictions that are kept"
    some, looked = trained(replace(base, score=("test", "global")), monkeypatch)
    assert looked == 0
    assert set(some.lines[0]["accuracy"]) == {"global", "global/validation", "test"}
    assert some.summary["accuracy"] == {kind: every.summary["accuracy"][kind] for kind in ("global", "test")}
    assert set(some.summary["stability"]) == {"global", "test"}
    for name, value in every.models["global"].items():
        assert value.equal(some.models["global"][name]), "scoring changes nothing"


def test_received_models_can_be_left_out(federate) -> None:
    base = fk.Experiment(fk.methods.fedmcsa(count=2), federate((4, 5, 6)), rounds=2, evaluate_every=1, threads=1)
    assert set(fk.run(base).lines[0]["accuracy"]) == {"recv", "post"}
    assert set(fk.run(replace(base, score=("recv",))).lines[0]["accuracy"]) == {"recv"}
    both = fk.run(replace(base, method=fk.methods.pfedme(count=2), score=("post",))).lines[0]["accuracy"]
    assert set(both) == {"post", "post-w"}, "the further private models go with post"


def test_what_is_not_scored_does_not_slow_the_cadence(federate) -> None:
    def every(fed: fk.Federation, score: tuple[str, ...] | None) -> int:
        method = fk.methods.fedavg(count=1, steps=1)
        experiment = fk.Experiment(method, fed, "dnn:500", rounds=1_000_000, score=score)
        return set_up(experiment, fed).evaluate_every

    many = federate((4, 5, 6), test=3000, common=600)
    assert every(many, None) > every(many, ("global",)) > every(many, ("test",)) > 1
    few = federate((4, 5, 6), test=1)
    assert every(few, None) > 8, "all clients are fine-tuned to be scored, and one trains"
    assert every(few, ("global",)) == 1


def test_kinds_that_a_method_has_are_those_that_are_scored(federate) -> None:
    fed = federate((4, 5, 6), common=9)
    for name in ("local", "fedavg", "fedmcsa", "fedacs", "perfedavg", "apfl", "scaffold", "pfedme_mcsa", "fedavg_mcsa"):
        method = fk.methods.named(name)
        experiment = fk.Experiment(method, fed, rounds=1, threads=1)
        setup = set_up(experiment, fed)
        with engine_of(experiment, fed, setup) as engine:
            engine.prepare(method.train)
            _, _, seen = seen_round(method, setup.task, engine, begin(method, setup.task))
        assert {kind.partition("-")[0] for kind in seen.scores} == set(kinds_of(method, common=True)), name


def test_a_run_without_post_has_its_table_and_report_and_resumes(fedkin, tmp_path: Path) -> None:
    code, out, err = fedkin("run", "fedavg", *DIGITS, "--score", "global", "--out", "here")
    assert code == 0, err
    assert "global" in out
    assert "post" not in out
    seed = tmp_path / "here" / "fedavg" / "seed-0"
    assert not (seed / "accuracy-post.bin").exists()
    assert Run(seed).experiment["score"] == ["global"]
    page = (tmp_path / "here" / "report.html").read_text()
    assert "% with the common model." in page
    assert "global over clients" in page
    assert "post over clients" not in page
    code, _, err = fedkin("run", "fedavg", *DIGITS, "--score", "post", "--out", "here", "--resume")
    assert code == 2
    assert "score" in err
    assert fedkin("run", "here", "--resume", "--rounds", "6")[0] == 0
    assert Run(seed).summary["rounds"] == 6


def test_a_comparison_by_post_alone_has_no_columns_for_the_rest(fedkin, tmp_path: Path) -> None:
    code, out, err = fedkin("compare", "fedavg", *DIGITS, "--score", "post", "--out", "here")
    assert code == 0, err
    assert "post macro" in out
    assert "global" not in out
    assert "fedavg" in json.loads((tmp_path / "here" / "summary.json").read_text())["against_local"]


BAD = {
    "unknown kind": (["run", "fedavg", *DIGITS, "--score", "globl"], "global"),
    "no kind": (["run", "fedavg", *DIGITS, "--score", ""], "kind"),
    "no common test set": (["run", "fedavg", *DIGITS, "--score", "test"], "fedavg has no test to be scored by"),
    "no common model": (["run", "local", *DIGITS, "--score", "global,test"], "add post to what is scored"),
    "a comparison without post": (["compare", "fedavg", *DIGITS, "--score", "global"], "local has no global"),
    "no such number of jobs": (["run", "fedavg", *DIGITS, "--jobs", "0"], "--jobs"),
    "unknown preset": (["preset", "adafl/tabel1"], "adafl/table1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_writes_nothing(fedkin, tmp_path: Path, name: str) -> None:
    words, expected = BAD[name]
    code, _, err = fedkin(*words)
    assert code == 2
    assert expected in err
    assert len(err.strip().splitlines()) == 1, err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("score", [(), "post", ("post", 3), 5])
def test_a_score_that_is_no_list_of_kinds_is_refused(score) -> None:
    with pytest.raises(fk.BadInput, match="kind"):
        fk.Experiment(fk.methods.fedavg(), score=score)


def test_score_survives_json_in_one_order() -> None:
    experiment = fk.Experiment(fk.methods.fedavg(), score=("test", "global"))
    described = json.loads(json.dumps(experiment.described()))
    assert described["score"] == ["global", "test"]
    assert fk.Experiment.from_json(described).described() == described
    del described["score"]
    assert fk.Experiment.from_json(described).score is None, "as files have it that were written before"
