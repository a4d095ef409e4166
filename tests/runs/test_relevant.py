"""Where it is known who is irrelevant, averages are over the relevant clients, and the others have their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedkin as fk
from fedkin.runs import recorder, session
from fedkin.runs.statistics import merged
from tests.small import Until, same_runs

DATA = fk.Data("digits", "dirichlet:0.5", clients=8, irrelevant="flip:0.25")


def experiment(rounds: int = 4) -> fk.Experiment:
    return fk.Experiment(fk.methods.fedavg(count=4), DATA, "mlr", rounds, evaluate_every=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> fk.Run:
    return fk.run(experiment(), tmp_path_factory.mktemp("relevant") / "run", warn=lambda _: None)


def test_a_round_has_averages_over_the_relevant_the_irrelevant_and_all_clients(run: fk.Run) -> None:
    bad, sizes = np.array(run.about_clients["irrelevant"]), np.array(run.about_clients["test"])
    assert 0 < bad.sum() < run.n
    for kind in ("post", "global"):
        found, each = run.lines[-1]["accuracy"][kind], run.accuracies[kind]
        for suffix, who in {"": ~bad, "_irrelevant": bad, "_all": np.ones(run.n, bool)}.items():
            assert found[f"macro{suffix}"] == pytest.approx(each[who].mean())
            assert found[f"micro{suffix}"] == pytest.approx(np.average(each[who], weights=sizes[who]))
    assert found["macro"] != found["macro_all"]
    assert run.lines[-1]["metrics"]["auc"]["post"].keys() == found.keys()


def test_the_summary_has_all_of_them_and_fairness_is_of_the_relevant(run: fk.Run) -> None:
    found = run.summary["accuracy"]["post"]
    assert list(found) == ["macro", "micro", "macro_all", "micro_all", "macro_irrelevant", "micro_irrelevant"]
    assert found["macro_irrelevant"]["last"] == run.lines[-1]["accuracy"]["post"]["macro_irrelevant"]
    each = run.accuracies["post"][~np.array(run.about_clients["irrelevant"])]
    assert run.summary["fairness"]["post"]["std_clients"] == pytest.approx(each.std())


def test_a_run_without_irrelevant_clients_has_the_two_averages_only() -> None:
    found = fk.run(replace(experiment(2), data=fk.Data("digits", clients=4)), warn=lambda _: None)
    assert list(found.lines[-1]["accuracy"]["post"]) == ["macro", "micro"]
    assert list(found.summary["accuracy"]["post"]) == ["macro", "micro"]


def test_a_run_that_an_older_version_began_goes_on_with_averages_over_all_clients(
    run: fk.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(session, "line", lambda log, scores, said, irrelevant: recorder.line(log, scores, said))
        fk.run(experiment(), tmp_path / "run", callbacks=[Until(2)], warn=lambda _: None)
    found = fk.run(experiment(), tmp_path / "run", resume=True, warn=lambda _: None)
    expected = {name: run.lines[-1]["accuracy"]["post"][f"{name}_all"] for name in ("macro", "micro")}
    assert found.lines[-1]["accuracy"]["post"] == pytest.approx(expected)
    assert list(found.summary["accuracy"]["post"]) == ["macro", "micro"]


def test_a_resumed_run_is_the_same(run: fk.Run, tmp_path: Path) -> None:
    fk.run(experiment(), tmp_path / "run", callbacks=[Until(2)], warn=lambda _: None)
    fk.run(experiment(), tmp_path / "run", resume=True, warn=lambda _: None)
    assert run.folder is not None
    same_runs(run.folder, tmp_path / "run")


def test_runs_of_an_older_and_a_newer_version_are_merged_by_what_both_have(run: fk.Run) -> None:
    two = {kind: {name: found[name] for name in ("macro", "micro")} for kind, found in run.summary["accuracy"].items()}
    older = run.summary | {"accuracy": two, "metrics": {}}
    assert list(merged([run.summary, older])["accuracy"]["post"]) == ["macro", "micro"]
