"""Runs as tasks of Ray: the same results as in one process, whatever is stopped or killed on the way."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import same_runs
from test_jobs import runs_of

import fedkin as fk
from fedkin.comparison import on_ray
from fedkin.comparison.jobs import play_side_by_side
from fedkin.comparison.on_ray import Place, nearest
from fedkin.comparison.plan import Loaded
from fedkin.comparison.sequence import play_in_sequence

COMPARE = ["compare", "fedavg", "--data", "digits", "--clients", "6", "--rounds", "4", "--evaluate-every", "2"]

DEADLY = '''
import os, signal
from torch import nn

class Deadly(nn.Sequential):
    """A model that kills the first process that builds it beside the command's."""

    def __init__(self, shape, classes):
        super().__init__(nn.Flatten(), nn.Linear(64, classes))
        if str(os.getpid()) != os.environ["FEDKIN_COMMAND"]:
            try:
                os.mkdir("killed")
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)
'''

FAULTY = """
import os
from torch import nn

def Faulty(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64 if os.getpid() == {command} else 7, classes))
"""


def test_runs_on_ray_are_those_of_one_process(ray_here: Any, fedkin, tmp_path: Path) -> None:
    outcome = fedkin(*COMPARE, "--jobs", "ray", "--out", "ray")
    assert outcome.code == 0, outcome.err
    assert "Ray: 4 cores for 2 runs, after " in outcome.err
    assert fedkin(*COMPARE, "--threads", "1", "--out", "one").code == 0
    for name in ("local", "fedavg"):
        assert f"{name} seed 0" in outcome.err
        same_runs(tmp_path / "one" / name / "seed-0", tmp_path / "ray" / name / "seed-0")
    assert json.loads((tmp_path / "ray" / "plan.json").read_text())["cluster"] == "here"
    assert fedkin("compare", "ray", "--resume", "--rounds", "6").code == 0, "it goes on there"
    assert fk.load_run(tmp_path / "ray" / "fedavg" / "seed-0").summary["rounds"] == 6


def test_a_killed_process_is_named_and_the_other_runs_are_played(
    ray_here: Any, fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.setenv("FEDKIN_COMMAND", str(os.getpid()))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    outcome = fedkin(*COMPARE, "--model", "deadly:Deadly", "--jobs", "ray", "--out", "here")
    assert outcome.code == 1
    assert "was killed, perhaps for lack of memory or with its machine. The others go on." in outcome.err
    assert "All else is saved. Go on with: fedkin run --resume here" in outcome.err
    assert len(list((tmp_path / "here").rglob("models.safetensors"))) == 1
    assert fedkin("run", "here", "--resume", "--trust").code == 0
    assert len(list((tmp_path / "here").rglob("models.safetensors"))) == 2


def test_runs_that_are_told_to_stop_save_and_go_on_later(ray_here: Any, tmp_path: Path) -> None:
    runs, stop = runs_of(tmp_path / "ray", 400, fk.methods.fedavg()), list[int]()

    class Stop(fk.Callback):
        def recorded(self, record: fk.Record) -> None:
            stop.append(record.round)

    how: dict[str, Any] = {"cluster": "here", "warn": lambda sentence: None}
    ended = play_side_by_side(runs, 1, Loaded(), watching=lambda *_: Stop(), stopping=lambda: len(stop) > 1, **how)
    assert not ended
    assert stop[-1] < 400
    assert play_side_by_side(runs, 1, Loaded(), resume=True, **how)
    whole = runs_of(tmp_path / "whole", 400, fk.methods.fedavg())
    play_in_sequence(whole, Loaded())
    same_runs(runs[0].folder.path, whole[0].folder.path)


def test_an_error_of_a_run_is_raised_in_the_command(ray_here: Any, fedkin, tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY.format(command=os.getpid()))
    outcome = fedkin(*COMPARE, "--model", "faulty:Faulty", "--jobs", "ray", "--out", "here")
    assert outcome.code == 2
    assert "The model does not take samples of shape (1, 8, 8)" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_folder_that_a_machine_does_not_have_is_a_sentence(ray_here: Any, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    found = on_ray.task(1, b"", None, Place(str(lost), [], {}), lost)
    assert isinstance(found, fk.BadInput)
    assert str(found).startswith(f"{lost} is not there on the machine ")
    assert str(found).endswith("; choose an --out on a file system that all machines share.")
    assert nearest(lost / "fedavg" / "seed-0") == tmp_path


def test_a_cluster_without_a_gpu_plays_no_runs_on_one(
    ray_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    runs = runs_of(tmp_path, 2, fk.methods.fedavg())
    runs = [replace(one, experiment=replace(one.experiment, device="cuda")) for one in runs]
    with pytest.raises(fk.BadInput, match=r"^The Ray cluster has no GPU; use --device cpu\.$"):
        play_side_by_side(runs, 1, Loaded(), cluster="here", warn=lambda sentence: None)
