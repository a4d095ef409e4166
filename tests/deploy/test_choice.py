"""Which run of a folder a model is taken from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small import forget_checksums

import fedkin as fk
from fedkin.deploy import Chooser, choose


def test_one_run_is_taken_without_a_word(compared: fk.Comparison) -> None:
    found = choose(compared.folder / "fedavg" / "seed-1")
    assert (found.run.method, found.run.seed, found.said) == ("fedavg", 1, "")


def test_the_first_seed_is_taken_and_said(compared: fk.Comparison) -> None:
    found = choose(compared.folder / "fedavg", "Hospital 1")
    assert found.run.seed == 0
    assert found.said == "This is fedavg with seed 0, the first of 2 runs."
    assert choose(compared.folder / "fedavg", "Hospital 1", seed=1).run.seed == 1
    with pytest.raises(fk.BadInput, match="no run of fedavg with seed 5; there are 0, 1"):
        choose(compared.folder / "fedavg", seed=5)


def test_the_recommended_method_goes_before_the_best_one(compared: fk.Comparison, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(compared.folder, folder)
    forget_checksums(folder)
    summary = json.loads((folder / "summary.json").read_text())
    for site in summary["sites"]["sites"]:
        site["verdict"] = "no clear difference"
    verdicts = {
        "Hospital 1": ("join", "fedmcsa"),
        "Hospital 2": ("join", "fedavg"),
        "Hospital 3": ("stay alone", "fedavg"),
    }
    for site in summary["sites"]["sites"]:
        if site["site"] in verdicts:
            site["verdict"], site["method"] = verdicts[site["site"]]
            site["against"] = "local"
    (folder / "summary.json").write_text(json.dumps(summary))
    chosen = {name: choose(folder, name).run.method for name in verdicts}
    assert chosen == {"Hospital 1": "fedmcsa", "Hospital 2": "fedavg", "Hospital 3": "local"}
    assert "as the comparison recommends to Hospital 1 (join)" in choose(folder, "Hospital 1").said
    scores = {
        name: np.mean([run.accuracies["post"][run.number("Hospital 5")] for run in runs.values()])
        for name, runs in compared.runs.items()
    }
    best = choose(folder, "Hospital 5")
    assert scores[best.run.method] == max(scores.values())
    assert f"the best of {len(scores)} methods on the test samples of Hospital 5" in best.said


def test_without_a_client_only_common_models_count(compared: fk.Comparison) -> None:
    assert choose(compared.folder).run.method == "fedavg"
    with pytest.raises(fk.BadInput, match="There is no method in this folder called 'fedav'; did you mean fedavg"):
        choose(compared.folder, method="fedav")


def test_clients_that_look_mislabelled_do_not_choose(compared: fk.Comparison, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(compared.folder, folder)
    forget_checksums(folder)
    summary = json.loads((folder / "summary.json").read_text())
    for site in summary["sites"]["sites"]:
        site["looks"] = "mislabelled" if site["site"] != "Hospital 5" else None
    (folder / "summary.json").write_text(json.dumps(summary))
    chooser = Chooser(folder)
    number = chooser.runs[0].number("Hospital 5")
    assert chooser.judging(None) == [number]
    assert chooser.judging("Hospital 2") == [chooser.runs[0].number("Hospital 2")]
    scores = {
        name: np.mean([run.accuracies["post"][number] for run in runs.values()]) for name, runs in compared.runs.items()
    }
    assert scores[chooser.choose(kinds=("judged",)).run.method] == max(scores.values())


def test_common_models_that_were_not_scored_count(compared: fk.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fk.Run, "last", lambda self: {})
    assert choose(compared.folder).run.method == "fedavg"
