"""What clients have spent is recorded, shown, and the same after a run was stopped and gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import Until, same_runs, tiny

import fedkin as fk
from fedkin.privacy.accountant import epsilon
from fedkin.report import terminal
from fedkin.runs.spent import merged, sentence

pytest.importorskip("opacus")

DATA = fk.Data("digits", clients=6)
DP = "clip=1.0,noise=0.8"


def experiment(method: Any, **more: Any) -> fk.Experiment:
    return fk.Experiment(method, DATA, "mlr", **{"rounds": 5, "evaluate_every": 2, "dp": DP} | more)


def test_a_run_says_what_each_client_has_spent(tmp_path: Path) -> None:
    run = fk.run(experiment(tiny(fk.methods.fedavg(), 3)), tmp_path / "run")
    found, replied = run.summary["privacy"], run.participation["replied"]
    assert replied.sum() == 15
    assert len(set(replied.tolist())) > 1
    assert found["releases"] == replied.tolist()
    assert found["epsilon"] == [epsilon({0.8: count}, 1e-5) for count in replied.tolist()]
    assert found["epsilon_replaced"] == [epsilon({0.4: count}, 1e-5) for count in replied.tolist()]
    frame = run.clients()
    assert frame["epsilon"].tolist() == found["epsilon"]
    counts = np.zeros(6, dtype=int)
    for line, ids in zip(run.lines, run.selected, strict=True):
        counts[ids] += 1
        assert line["privacy"]["epsilon"] == epsilon({0.8: int(counts.max())}, 1e-5)
    low, high = min(found["epsilon"]), max(found["epsilon"])
    words = f"sites have spent epsilon {low:.3g} to {high:.3g} at delta 1e-05 in 5 rounds"
    assert words in str(terminal.accuracy_table(run.summary).caption)
    assert fk.load(tmp_path / "run").summary["privacy"] == found


def test_who_takes_part_alike_has_spent_alike() -> None:
    run = fk.run(experiment(tiny(fk.methods.fedavg(), 6), rounds=2))
    spent = epsilon({0.8: 2}, 1e-5)
    assert sentence(run.summary)[0].startswith(f"each site has spent epsilon {spent:.3g} at delta 1e-05 in 2 rounds")


def test_who_sends_nothing_spends_nothing() -> None:
    local = fk.methods.local(steps=2)
    noised, plain = (fk.run(experiment(local, dp=dp)) for dp in (DP, None))
    assert noised.summary["privacy"]["epsilon"] == [0.0] * 6
    assert sentence(noised.summary) == sentence(plain.summary) == []
    assert noised.summary["accuracy"] == plain.summary["accuracy"]
    assert "privacy" not in plain.summary
    assert "epsilon" not in plain.clients()


@pytest.mark.parametrize("make", [fk.methods.fedavg, fk.methods.fedmcsa, fk.methods.scaffold])
def test_a_run_that_goes_on_draws_the_same_noise(tmp_path: Path, make: Any) -> None:
    asked = experiment(tiny(make(), 3))
    fk.run(asked, tmp_path / "whole", checkpoint_seconds=0.0)
    fk.run(asked, tmp_path / "parts", checkpoint_seconds=0.0, callbacks=[Until(2)])
    fk.run(asked, tmp_path / "parts", resume=True, checkpoint_seconds=0.0)
    same_runs(tmp_path / "whole", tmp_path / "parts")


def test_a_run_does_not_go_on_with_other_noise(tmp_path: Path) -> None:
    method = tiny(fk.methods.fedavg(), 3)
    fk.run(experiment(method), tmp_path, callbacks=[Until(2)])
    with pytest.raises(fk.BadInput, match="dp"):
        fk.run(experiment(method, dp="clip=1.0,noise=0.1"), tmp_path, resume=True)


def test_of_several_seeds_each_client_has_the_largest() -> None:
    one = {"releases": [1, 4], "epsilon": [1.0, 3.0], "epsilon_replaced": [2.0, 6.0], "clip": 1.0}
    other = {"releases": [3, 2], "epsilon": [2.5, 1.5], "epsilon_replaced": [5.0, 3.0], "clip": 1.0}
    found = merged([{"privacy": one}, {"privacy": other}])["privacy"]
    assert found == {"releases": [3, 4], "epsilon": [2.5, 3.0], "epsilon_replaced": [5.0, 6.0], "clip": 1.0}
    assert merged([{}, {}]) == {}


def test_the_command(fedkin: Any, tmp_path: Path) -> None:
    words = ("--data", "digits", "--clients", "4", "--rounds", "2", "--set", "steps=2", "--dp", DP)
    done = fedkin("compare", "fedavg", "fedmcsa", *words, "--out", "both")
    assert done.code == 0, done.err
    spent = f"epsilon {epsilon({0.8: 2}, 1e-5):.3g} at delta 1e-05 in 2 rounds"
    for method in ("fedavg", "fedmcsa"):
        assert f"{method}: each site has spent {spent}" in done.out
    page = (tmp_path / "both" / "report.html").read_text()
    assert '<table id="privacy">' in page
    assert page.count(f"<td>{epsilon({0.8: 2}, 1e-5):.3g}</td>") == 8
    refused = fedkin("run", "fedmix", *words)
    assert refused.code == 2
    assert "averages of samples" in refused.err
    assert fedkin("run", "fedavg", *words, "--save", "mine.toml").code == 0
    assert 'dp = "clip=1.0,noise=0.8,delta=1e-05"' in (tmp_path / "mine.toml").read_text()
    summary = json.loads(fedkin("run", "mine.toml", "--json").out)
    assert summary["privacy"]["releases"] == [2, 2, 2, 2]
