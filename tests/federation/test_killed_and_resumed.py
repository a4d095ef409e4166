"""A run whose server died twice is the run that nothing disturbed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from safetensors.torch import load_file
from survivors import MARK, gone, marked, need_proc
from torch.testing import assert_close

import fedkin as fk
from fedkin.federation import demo, server
from fedkin.federation.control import Control
from fedkin.federation.folder import Folder
from fedkin.federation.follow import begin, follow
from fedkin.federation.processes import Processes
from fedkin.federation.state import played
from fedkin.federation.texts import methods_of
from fedkin.sites import Here, Site, meet, run
from fedkin.sites.tables import Table

pytestmark = pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
SETTINGS, ROUNDS = "train.steps=3 eta=0.1 count=2", 3


def undisturbed(folder: Folder, place: Path) -> fk.Run:
    """The same run on the same tables in this process."""

    def site(name: str) -> Site:
        table = Table(name, folder.site(name) / demo.TABLE, target_column="disease")
        return Site(name, place / "sites" / name / "kept", table, warn=lambda sentence: None)

    (method,) = methods_of("fedmcsa", SETTINGS)
    sites = meet(
        Here({name: (lambda name=name: site(name)) for name in folder.names}), folder.names, warn=lambda s: None
    )
    return run(sites, fk.Experiment(method, model="mlr", rounds=ROUNDS, seed=0, evaluate_every=1), place / "run")


def until(round: int, folder: Folder, control: Control, *processes: Processes) -> None:
    """Wait until this round is recorded."""
    end = time.monotonic() + 300  # a machine may be busy with other tests
    while not (found := played(folder)) or found[0].round < round:
        for some in processes:
            some.check()
        assert not (last := control.runs()[-1]).ended, last
        assert time.monotonic() < end, processes[0].log("superlink")
        time.sleep(0.2)


def test_a_server_that_dies_goes_on_exactly(tmp_path: Path) -> None:
    need_proc()
    folder = demo.prepare(tmp_path / "study", 3, "fedmcsa", ROUNDS, SETTINGS)
    reference = undisturbed(folder, tmp_path / "undisturbed")
    mark = uuid4().hex
    environment = server.surroundings(folder) | {MARK: mark, "HOME": str(tmp_path)}
    with (
        Processes(folder.state / "sites", environment) as sites,
        Processes(folder.state / "logs", environment) as link,
    ):
        server.start(folder, link)
        for name in folder.names:
            command = [sys.executable, "-m", "fedkin.command.cli", "federation", "site", str(folder.site(name))]
            sites.start(name, *command)
        with Control(folder) as control:
            begin(folder, control, resume=False)
            until(1, folder, control, link, sites)
            (app,) = [pid for pid, command in marked(mark).items() if "flwr-serverapp" in command]
            os.kill(app, signal.SIGKILL)
            begin(folder, control, resume=True)
            until(2, folder, control, link, sites)
        for name in ("superlink", "superexec"):
            dead = link.running.pop(name)
            os.killpg(dead.pid, signal.SIGKILL)
            dead.wait()
        server.start(folder, link)
        with Control(folder) as control:
            state = follow(folder, control, begin(folder, control, resume=True), lambda state, notes: None, link.check)
    assert not gone(mark, 5)
    assert state.status == "finished:completed"
    same(reference, fk.load(folder.runs / "fedmcsa" / "seed-0"), folder, tmp_path / "undisturbed")


def same(one: fk.Run, other: fk.Run, folder: Folder, place: Path) -> None:
    """Selections are the same to the bit; scores and the models that sites keep are close."""
    assert one.folder is not None
    assert other.folder is not None
    for name in ("selected.bin", "kept.bin"):
        assert (one.folder / name).read_bytes() == (other.folder / name).read_bytes(), name
    assert len(one.lines) == len(other.lines) == ROUNDS
    for left, right in zip(one.lines, other.lines, strict=True):
        assert_close(numbers(left), numbers(right))
    for name in folder.names:
        found = [list(at.glob(f"sites/{name}/kept/runs/*/*.safetensors")) for at in (place, folder.path)]
        kept = [max(some, key=lambda path: path.name) for some in found]  # folders of runs have random names
        assert kept[0].name == kept[1].name
        assert_close(*map(load_file, kept))


def numbers(line: dict[str, Any]) -> dict[str, Any]:
    """What a line says of its round, without the time it took."""
    return {name: value for name, value in line.items() if name != "seconds"}
