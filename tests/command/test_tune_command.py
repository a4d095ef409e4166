"""fedkin tune as a user meets it: its table, its files, what it refuses, and a kill."""

from __future__ import annotations

import builtins
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import fedkin as fk

QUICK = ["--data", "digits", "--clients", "4", "--rounds", "4", "--evaluate-every", "1", "--set", "select.count=2"]
SPACE = ["--space", "train.eta=0.001..0.5:log"]


def test_tuned_methods_go_into_one_comparison(fedkin) -> None:
    code, out, said = fedkin("tune", "fedavg", "fedprox", *QUICK, *SPACE, "--trials", "2", "--out", "tuned")
    assert code == 0, said
    assert "fedprox: 2 trials of 4 rounds" in out
    assert "validation accuracy (post, macro)" in out
    assert "local trial 1/2: train.eta=0.02" in said
    assert "fedkin compare tuned/comparison.toml" in said
    stored = tomllib.loads(Path("tuned/comparison.toml").read_text())
    assert [method["name"] for method in stored["methods"]] == ["local", "fedavg", "fedprox"]
    assert stored["data"]["validation"] == 0.2
    code, out, said = fedkin("compare", "tuned/comparison.toml", "--out", "compared")
    assert code == 0, said
    assert "Every method tuned with the same budget: 2 trials of 4 rounds, by validation accuracy." in out
    assert "Every method tuned with the same budget" in Path("compared/report.html").read_text()
    assert list(json.loads(Path("compared/plan.json").read_text())["tuned"]) == ["local", "fedavg", "fedprox"]
    assert fedkin("run", "tuned/fedprox.toml", "--out", "one").code == 0
    code, out, said = fedkin("run", "--resume", "compared", "--rounds", "5")
    assert "Every method tuned with the same budget: 2 trials of 4 rounds" in out, said


def test_a_folder_goes_on_by_its_name(fedkin) -> None:
    assert fedkin("tune", "fedavg", *QUICK, *SPACE, "--trials", "1", "--out", "tuned").code == 0
    code, out, said = fedkin("tune", "--resume", "tuned", "--trials", "3")
    assert code == 0, said
    assert "fedavg: 3 trials of 4 rounds" in out
    assert "trial 1/3" not in said, "what was tried is not played again"
    code, _, said = fedkin("tune", "--resume", "tuned", "--rounds", "9")
    assert code == 2
    assert "says itself what it tunes; leave --rounds out" in said
    code, _, said = fedkin("tune", "fedavg", *QUICK, *SPACE, "--out", "tuned")
    assert code == 2
    assert "add --resume" in said


def test_a_grid_and_refusals(fedkin) -> None:
    grid = ["--grid", "--space", "train.eta=0.01,0.1", "--space", "train.momentum=0,0.5", "--no-prune"]
    code, out, said = fedkin("tune", "fedavg", *QUICK, *grid)
    assert code == 0, said
    assert "fedavg: 4 trials of 4 rounds" in out
    assert Path("runs/tune-digits-1/fedavg.toml").exists()
    for words, sentence in (
        ([*grid, "--trials", "3"], "leave --trials out"),
        (["--space", "eta=1..2:x"], "may end with :log"),
        (["--resume"], "--resume needs the folder"),
        (["--trials", "0"], "trials must be a whole number"),
        (["--validation", "0.9"], "leave nothing to train on"),
        (["--average", "mean"], "average"),
    ):
        code, _, said = fedkin("tune", "fedavg", *QUICK, *words)
        assert code == 2, words
        assert sentence in said
        assert said.count("\n") <= 2
    assert not Path("runs/tune-digits-2").exists(), "what cannot begin makes no folder"


def test_without_optuna_a_sentence_says_what_to_install(fedkin, monkeypatch: pytest.MonkeyPatch) -> None:
    imports = builtins.__import__

    def without(name: str, *rest):
        if name == "optuna":
            raise ModuleNotFoundError("No module named 'optuna'", name="optuna")
        return imports(name, *rest)

    for name in [name for name in sys.modules if name == "fedkin.tuning.study"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    code, _, said = fedkin("tune", "fedavg", *QUICK)
    assert code == 2
    assert "pip install 'fedkin[tune]'" in said


def test_a_killed_command_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fedkin.command.cli", "tune", "fedavg", *QUICK, *SPACE, "--rounds", "60"]
    words += ["--trials", "6", "--out", "tuned"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    began = time.monotonic()
    while not (tmp_path / "tuned" / "fedavg" / "trial-2" / "seed-0" / "rounds.jsonl").exists():
        assert process.poll() is None
        assert time.monotonic() - began < 120
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    frames = []
    for folder, resume in ((tmp_path / "tuned", True), (None, False)):
        method = fk.methods.fedavg(count=2)
        data = fk.Data("digits", clients=4)
        options = {"rounds": 60, "evaluate_every": 1, "trials": 6, "space": [SPACE[1]], "warn": lambda _: None}
        frames.append(fk.tune(method, data, folder=folder, resume=resume, **options).trials())
    pd.testing.assert_frame_equal(*frames)
