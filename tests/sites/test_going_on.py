"""The server dies and goes on: the sites go back to what its checkpoint knows of, and the run is an undisturbed one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from federation import NAMES, Party, close, experiment, short
from small import same_runs

import fedkin as fk
from fedkin import sites
from fedkin.parts import Method
from fedkin.round import State
from fedkin.runs import files
from fedkin.runs.session import Session

METHODS = {
    "fedavg": short(fk.methods.fedavg(), 3),
    "fedmcsa": short(fk.methods.fedmcsa(), 2),
    "scaffold": short(fk.methods.scaffold(), 3),
    "ditto": short(fk.methods.ditto(), 3),
}


@pytest.fixture(autouse=True)
def every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every round, as where a round takes seconds."""
    save = Session.save

    def saved(self: Session, state: State) -> None:
        save(self, state)
        self.next_checkpoint = 0.0

    monkeypatch.setattr(Session, "save", saved)


class Killed(Exception):
    """Stands for the end of the server's process."""


class Dies(fk.Callback):
    """The server dies after a round was recorded, or while its checkpoint is written."""

    def __init__(self, round: int, saved: bool) -> None:
        self.round, self.after = round, saved

    def recorded(self, record: fk.Record) -> None:
        if record.round == self.round and not self.after:
            raise Killed

    def saved(self, round: int) -> None:
        if round == self.round and self.after:
            raise Killed


def versions(party: Party, name: str) -> list[str]:
    return sorted(path.stem for path in (party.folder / name).glob("runs/*/round-*.safetensors"))


@pytest.mark.parametrize("saved", [False, True], ids=["before its checkpoint", "after its checkpoint"])
@pytest.mark.parametrize("name", METHODS)
def test_a_server_that_died_goes_on_exactly(party: Party, tmp_path: Path, name: str, saved: bool) -> None:
    method, other = METHODS[name], party.twin(tmp_path / "other sites")
    sites.run(other.met(), experiment(method, rounds=5), tmp_path / "whole")
    for dies in (Dies(2, saved), Dies(4, saved)):
        how: dict[str, Any] = {"callbacks": [dies], "resume": dies.round > 2}
        with pytest.raises(Killed):
            sites.run(party.met(), experiment(method, rounds=5), tmp_path / "run", **how)
    sites.run(party.met(), experiment(method, rounds=5), tmp_path / "run", resume=True)
    same_runs(tmp_path / "run", tmp_path / "whole")
    close(other.private(), party.private(), 0.0)


def test_sites_keep_what_checkpoints_need_and_no_more(party: Party, tmp_path: Path) -> None:
    sites.run(party.met(), experiment(METHODS["ditto"], rounds=8), tmp_path / "run")
    for name in NAMES:
        assert 1 <= len(versions(party, name)) <= 4
    stopped = party.twin(tmp_path / "never saved")
    sites.run(stopped.met(), experiment(short(fk.methods.local()), rounds=8), tmp_path / "late", checkpoint_seconds=1e9)
    assert all(len(versions(stopped, name)) == 8 for name in NAMES)


def test_a_site_that_lost_its_folder_is_not_the_one_that_it_was(party: Party, tmp_path: Path) -> None:
    begun = experiment(METHODS["ditto"], rounds=4)
    with pytest.raises(Killed):
        sites.run(party.met(), begun, tmp_path / "run", callbacks=[Dies(3, True)])
    shutil.rmtree(party.folder / "b2" / "runs")
    with pytest.raises(fk.BadInput, match=r"Site b2 cannot go back: Nothing is left of round \d of this run"):
        sites.run(party.met(), begun, tmp_path / "run", resume=True)
    shutil.rmtree(party.folder / "b2")
    with pytest.raises(fk.BadInput, match="data are not those"):
        sites.run(party.met(), begun, tmp_path / "run", resume=True)


def test_another_site_of_the_same_name_cannot_take_its_place(party: Party, tmp_path: Path) -> None:
    met = party.met()
    with pytest.raises(Killed):
        sites.run(met, experiment(METHODS["ditto"]), tmp_path / "run", callbacks=[Dies(2, True)])
    told = [one | {"proof": "00" * 16} if one["name"] == "c" else one for one in met.told]
    with pytest.raises(fk.BadInput, match="Site c is not the one that the run began with"):
        sites.run(replace(met, told=tuple(told)), experiment(METHODS["ditto"]), tmp_path / "run", resume=True)


def test_two_runs_on_the_same_sites_do_not_meet(party: Party, tmp_path: Path) -> None:
    methods: list[Method] = [METHODS["ditto"], METHODS["fedmcsa"]]
    alone = [party.twin(tmp_path / str(i)) for i in range(2)]
    for i, method in enumerate(methods):
        sites.run(alone[i].met(), experiment(method), tmp_path / f"alone {i}")
        sites.run(party.met(), experiment(method), tmp_path / f"together {i}")
    assert len(list((party.folder / "a" / "runs").iterdir())) == 2
    one, other = (sorted((folder / "c").glob("runs/*/round-*")) for folder in (alone[0].folder, party.folder))
    tensors = [files.read_tensors(path) for path in other]
    assert sum(set(tensor) == set(files.read_tensors(one[-1])) for tensor in tensors) >= 1


def test_each_site_stores_the_model_by_which_it_is_judged(party: Party, tmp_path: Path) -> None:
    run = sites.run(party.met(), experiment(METHODS["fedavg"]), tmp_path / "run")
    assert set(run.models) == {"global"}
    assert run.predictions is None
    stored = {name: next((party.folder / name).glob("runs/*/model.safetensors")) for name in NAMES}
    there = [files.read_tensors(path) for path in stored.values()]
    assert len({float(one["0.bias"].sum()) for one in there}) == 4
    about = files.read_json(stored["c"].with_name("model.json"))
    assert (about["model"], about["number"], about["train"]["is"]) == ("given", 3, "SGD")


def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_so_do_the_sites(party: Party, tmp_path: Path) -> None:
    method, other = METHODS["ditto"], party.twin(tmp_path / "other sites")
    sites.run(other.met(), experiment(method, rounds=8), tmp_path / "whole")
    with pytest.raises(Killed):
        sites.run(party.met(), experiment(method, rounds=8), tmp_path / "run", callbacks=[Dies(7, False)])
    newest = max((tmp_path / "run" / "checkpoints").glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-8])
    sites.run(party.met(), experiment(method, rounds=8), tmp_path / "run", resume=True)
    assert any("going back to the one before it" in said for said in party.said)
    same_runs(tmp_path / "run", tmp_path / "whole")
    close(other.private(), party.private(), 0.0)


def test_one_process_at_a_time_works_at_a_site(party: Party, tmp_path: Path) -> None:
    """A request that came too late may still be worked on when the next one comes."""
    order: list[str] = []

    def second() -> None:
        with files.alone(party.folder / "c"):
            order.append("second")

    with files.alone(party.folder / "c"):
        waiting = Thread(target=second)
        waiting.start()
        waiting.join(0.2)
        order.append("first")
    waiting.join(10)
    assert order == ["first", "second"]
