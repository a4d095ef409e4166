"""Small things of the command line: the version, help in groups, what is said where little is known."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from small import same_runs

import fedkin as fk
from fedkin.command.options import GROUPS, RunOptions
from fedkin.runs.statistics import averaged_rounds

QUICK = ["--data", "digits", "--clients", "4"]


def test_the_version_is_said(fedkin: Any) -> None:
    assert fedkin("--version").out == f"fedkin {fk.__version__}\n"


def test_an_unknown_command_is_suggested_once(fedkin: Any) -> None:
    assert fedkin("comparee").err.count("Did you mean") == 1


def test_every_option_of_a_run_stands_in_one_group_of_the_help(fedkin: Any) -> None:
    grouped = [name for names in GROUPS.values() for name in names.split()]
    assert len(set(grouped)) == len(grouped)
    assert not {field.name for field in fields(RunOptions)} - set(grouped), "enter a new option in a group"
    said = {command: fedkin(command, "--help").out for command in ("compare", "tune")}
    for title in GROUPS:
        assert f"─ {title} ─" in said["tune"]
        assert (f"─ {title} ─" in said["compare"]) == (title != "Search")
    assert "fedprox@train.lam=0.1,1,10" in said["compare"]


def test_nothing_to_score_is_a_sentence_and_no_table_of_dashes(fedkin: Any) -> None:
    outcome = fedkin("run", "fedavg", *QUICK, "--rounds", "2", "--test", "0", "--out", "here")
    assert outcome.code == 0, outcome.err
    assert "no client has test samples, so nothing is scored; raise --test." in outcome.out
    assert "model uploads" in outcome.out
    assert "macro" not in outcome.out


@pytest.mark.parametrize(("rounds", "every", "scored"), [(6, 2, 3), (5, 2, 3), (1, 7, 1), (100, 3, 10), (10, 1, 10)])
def test_the_mean_of_the_last_rounds_says_of_how_many(rounds: int, every: int, scored: int) -> None:
    assert averaged_rounds({"rounds": rounds, "evaluate_every": every}) == scored


def test_few_scored_rounds_are_not_called_ten(fedkin: Any) -> None:
    outcome = fedkin("run", "fedavg", *QUICK, "--rounds", "5", "--evaluate-every", "2", "--out", "here")
    assert "last 3 scored" in outcome.out
    assert "last 10" not in outcome.out
    page = Path("here", "report.html").read_text()
    assert "last 3 scored" in page
    assert "'Last 3 scored' is the mean of rounds 2 to 5." in page.replace("&#x27;", "'")


OWN = """
from dataclasses import dataclass, replace
import fedkin as fk

@dataclass(frozen=True)
class Half(fk.collaborate.Mean):
    extra: fk.fields.Share = 0.5

def mine():
    return replace(fk.methods.fedavg(count=3), name="mine", collaborate=Half())
"""


def test_a_module_in_the_folder_one_stands_in_works_in_processes_and_on_resuming(tmp_path: Path) -> None:
    """As the installed command starts: without the folder on Python's path (-P)."""
    (tmp_path / "my_own_module.py").write_text(OWN)

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "fedkin.command.cli", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    quick = [*QUICK, "--evaluate-every", "1", "--threads", "1"]
    words = ["compare", "my_own_module:mine@extra=0.25,0.75", *quick, "--out"]
    began = call(*words, "two", "--rounds", "2", "--jobs", "2")
    assert began.returncode == 0, began.stderr
    more = call("run", "--resume", "two", "--rounds", "3")
    assert more.returncode == 0, more.stderr
    assert call(*words, "one", "--rounds", "3").returncode == 0
    for name in ("local", "mine@collaborate.extra=0.25", "mine@collaborate.extra=0.75"):
        same_runs(tmp_path / "one" / name / "seed-0", tmp_path / "two" / name / "seed-0")
