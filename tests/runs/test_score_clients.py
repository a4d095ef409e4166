"""Scores of a sample of the clients: who is in it, what is known of the others, and that everybody is told."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from small import Until, same_runs

import fedkin as fk
from fedkin import evaluate
from fedkin.report import terminal
from fedkin.report.page import page
from fedkin.report.study import studied
from fedkin.runs import facts

WORDS = "cores of 5 of 12 clients, a fixed random sample"
DATA = fk.Data("digits", clients=12, samples=20, validation=0.2)


def experiment(method: fk.Method | None = None, **more: object) -> fk.Experiment:
    chosen = method or fk.methods.fedmcsa(count=4, steps=2)
    options = {"rounds": 4, "evaluate_every": 2, "threads": 1, "score_clients": 5} | more
    return fk.Experiment(chosen, DATA, **options)  # type: ignore[arg-type]


def of(run: fk.Run, kind: str = "post", metric: str = "accuracy") -> np.ndarray:
    return run.values(metric, kind)


def test_the_sample_is_drawn_by_the_seed_alone() -> None:
    first = evaluate.sampled(0, 1000, 50)
    assert first is not None
    assert len(first) == len(first.unique()) == 50
    assert torch.equal(first, first.sort().values)
    assert torch.equal(first, evaluate.sampled(0, 1000, 50))  # type: ignore[arg-type]
    assert not torch.equal(first, evaluate.sampled(1, 1000, 50))  # type: ignore[arg-type]
    assert evaluate.sampled(0, 50, 50) is None
    assert evaluate.sampled(0, 50, None) is None


@pytest.mark.parametrize("engine", ["stacked", "plain"])
@pytest.mark.parametrize("name", ["fedmcsa", "fedavg", "ditto"])
def test_who_is_scored_has_the_scores_of_a_whole_run_and_the_others_none(
    tmp_path: Path, name: str, engine: str
) -> None:
    method = {"fedmcsa": fk.methods.fedmcsa, "fedavg": fk.methods.fedavg, "ditto": fk.methods.ditto}[name](count=4)
    asked = experiment(replace(method, train=replace(method.train, steps=2)), engine=engine)  # type: ignore[type-var]
    some, every = fk.run(asked, tmp_path / "some"), fk.run(replace(asked, score_clients=None), tmp_path / "every")
    ids = evaluate.sampled(0, 12, 5)
    assert ids is not None
    others = np.setdiff1d(np.arange(12), ids.numpy())
    kinds = [kind for kind in every.scored[-1]["accuracy"] if "/" not in kind]
    assert kinds == [kind for kind in some.scored[-1]["accuracy"] if "/" not in kind]
    assert "post" in kinds
    for kind in kinds:
        for metric in ("accuracy", "log_loss"):
            one, other = of(fk.Run(tmp_path / "some"), kind, metric), of(fk.Run(tmp_path / "every"), kind, metric)
            np.testing.assert_allclose(one[:, ids], other[:, ids], rtol=1e-5)
            assert np.isnan(one[:, others]).all()
        said = some.scored[-1]["accuracy"][kind]["macro"]
        assert said == pytest.approx(other_mean(tmp_path / "every", kind, ids))
    assert fk.Run(tmp_path / "some").models.keys() == fk.Run(tmp_path / "every").models.keys()
    predicted = some.predictions
    assert predicted is not None
    assert sorted(set(predicted["client"].tolist())) == ids.tolist()
    whole = every.predictions
    assert whole is not None
    mine = np.isin(whole["client"], ids)
    for word in predicted:
        np.testing.assert_allclose(predicted[word], whole[word][mine], rtol=1e-4, atol=1e-5)
    assert some.clients()["post"].notna().sum() == 5


def other_mean(folder: Path, kind: str, ids: torch.Tensor) -> float:
    return float(of(fk.Run(folder), kind)[-1, ids].mean())


def test_resumed_it_scores_the_same_clients(tmp_path: Path) -> None:
    fk.run(experiment(), tmp_path / "whole")
    fk.run(experiment(), tmp_path / "part", callbacks=[Until(2)])
    fk.run(experiment(), tmp_path / "part", resume=True)
    same_runs(tmp_path / "whole", tmp_path / "part")
    with pytest.raises(fk.BadInput, match=r"score_clients is 5 there and 6 here"):
        fk.run(experiment(score_clients=6), tmp_path / "part", resume=True)


def test_everybody_is_told(tmp_path: Path) -> None:
    methods = [fk.methods.local(), fk.methods.fedavg(count=4)]
    said: list[str] = []
    options = {"seeds": 2, "rounds": 4, "evaluate_every": 2, "score_clients": 5}
    found = fk.compare(methods, DATA, folder=tmp_path / "both", warn=said.append, **options)  # type: ignore[arg-type]
    for method in found.summary["methods"].values():
        assert WORDS in method["scored"]
    assert any("5 clients are scored (--score-clients), so no client gets an answer of its own" in one for one in said)
    assert "sites" not in found.summary
    assert found.summary["against_local"]["fedavg"]["clients"] in range(5, 11)  # those of two seeds
    screen = Console(width=300, record=True, file=StringIO())
    screen.print(terminal.comparison_table(found.summary))
    screen.print(terminal.run_table(next(iter(found.summary["methods"].values()))))
    assert screen.export_text().count(f"S{WORDS}") == 2
    html = page(studied(tmp_path / "both"))
    assert html.split("</header>")[0].count(WORDS) == 1
    assert html.count(WORDS) >= 4
    for name in ("table", "clients", "pairs"):
        write = {"table": found.export, "clients": found.export_clients, "pairs": found.export_pairs}[name]
        for ending in ("md", "tex"):
            assert write(tmp_path / f"{name}.{ending}").read_text().count(f"S{WORDS}.") == 1
        rows = write(tmp_path / f"{name}.csv").read_text().splitlines()
        assert rows[0].endswith(",scored")
        assert all(WORDS in row for row in rows[1:])


def test_a_sample_of_all_is_all(tmp_path: Path) -> None:
    run = fk.run(experiment(score_clients=12), tmp_path / "run")
    assert not np.isnan(of(fk.Run(tmp_path / "run"))).any()
    assert "scored" not in run.summary


def test_many_clients_bring_the_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(facts, "MANY", 12)
    fk.run(experiment(), warn=said.append)
    assert not any("--score-clients" in one for one in said)
    fk.run(experiment(score_clients=None), warn=said.append)
    assert sum("All 12 clients are scored" in one and "--score-clients 1000" in one for one in said) == 1
    monkeypatch.setattr(facts, "MANY", 13)
    assert facts.scoring_advice(experiment(score_clients=None), 12) == []


def test_relevant_losses_are_of_the_sample_too(tmp_path: Path) -> None:
    asked = replace(experiment(), data=replace(DATA, irrelevant="flip:0.5"))
    run = fk.run(asked, tmp_path / "run")
    whole = fk.run(replace(asked, score_clients=None), tmp_path / "whole")
    one, other = run.summary["observed"]["train"]["relevant_loss"], whole.summary["observed"]["train"]["relevant_loss"]
    assert one["last"] is not None
    assert one["last"] != other["last"]


@pytest.mark.parametrize("number", [0, -1, 2.5, True])
def test_no_number_of_clients_is_refused(number: object) -> None:
    with pytest.raises(fk.BadInput, match="score_clients must be a whole number of at least 1"):
        experiment(score_clients=number)
