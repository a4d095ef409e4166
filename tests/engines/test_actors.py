"""The actors of the engine `ray`: which clients each has, and what becomes of one that is killed or short of memory."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from small import composed, network
from torch import Tensor, nn

import fedkin as fk
from fedkin import round as rounds
from fedkin.core import tree
from fedkin.engines import Ray
from fedkin.engines.cluster import actors
from fedkin.engines.cluster.connection import idle_actors
from fedkin.engines.cluster.division import divided, shares
from fedkin.engines.cluster.tensors import as_array, as_tensor
from fedkin.engines.cluster.worker import Worker
from fedkin.engines.convolution import WAYS
from fedkin.engines.simulation import network_of
from fedkin.select import Uniform
from fedkin.train import SGD, FedMix, TwoStreams

SIZES = (5, 9, 12, 7, 8, 20)
WAIT = 60.0
calls: Counter[str] = Counter()  # of `rate` in this process, by `Fragile.once`


@dataclass(frozen=True)
class Fragile(TwoStreams):
    """Two streams in which one actor fails in the middle of its second round.

    It waits to be killed, says that there is no memory left, or ends: so many times, or always.
    """

    once: str = ""  # the folder that says that it has happened
    how: str = "killed"
    times: int = 1

    def rate(self, round: int) -> float:
        if self.once and round == 1:
            calls[f"{self.once} before"] += 1
        if self.once and round == 2:  # for each chunk this is asked when it begins, and when it reports
            calls[self.once] += 1
            if self.fails():
                if self.how == "memory":
                    raise MemoryError
                if self.how == "ends":
                    os._exit(1)
                Path(self.once, "pid").write_text(str(os.getpid()))
                time.sleep(WAIT)
        return super().rate(round)

    def fails(self) -> bool:
        """Whether it is to fail now. A process that is started again counts its calls from the beginning, and knows no
        round before."""
        folder, call = Path(self.once), calls[self.once]
        if call == 3:  # when the second chunk begins
            return first_to_make(folder)
        anew = call == 1 and not calls[f"{self.once} before"]
        again = folder.exists() and (anew or self.how == "memory")
        return again and any(first_to_make(folder / str(number)) for number in range(1, self.times))


def first_to_make(folder: Path) -> bool:
    """Make a folder; says whether nobody else has made it."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def played(start: Any, federation: Any, part: Any, said: list[str], chunk: int = 1) -> dict[str, Tensor]:
    """Everything that is remembered after three rounds of everybody, in which each of two actors has three clients."""
    method = composed(part, select=Uniform(fraction=1.0))
    options = {"actors": 2, "chunk": chunk, "warn": said.append}
    engine, task, state = start(Ray, method, federation, network(), **options)
    assert [len(member.ids) for member in engine.actors.members] == [3, 3]
    for _ in range(3):
        state, _ = rounds.play(method, task, engine, state)
    found = tree.flat({"server": state.collaborate, "clients": engine.private()})
    engine.close()
    return found


def kill_when_named(path: Path) -> None:
    """Kill the process whose id is written into a file, as soon as it is."""
    began = time.monotonic()
    while not (path.exists() and path.read_text()):
        assert time.monotonic() - began < WAIT
        time.sleep(0.02)
    os.kill(int(path.read_text()), signal.SIGKILL)


def test_an_actor_killed_in_the_middle_of_a_round_changes_nothing(
    ray_here: Any, federate: Any, start: Any, tmp_path: Path
) -> None:
    federation, said, once = federate(SIZES), list[str](), tmp_path / "once"
    part = Fragile(eta=0.1, steps=2, batch=4)
    whole = played(start, federation, part, said)
    said.clear()
    thread = Thread(target=kill_when_named, args=(once / "pid",))
    thread.start()
    found = played(start, federation, replace(part, once=str(once)), said)
    thread.join()
    assert said[0] == "An actor with 3 clients ended; it is started again, its clients are as they were."
    assert any(name.startswith("clients/personal") for name in whole)
    for name, value in whole.items():
        assert torch.equal(value, found[name]), name


def test_an_actor_killed_between_rounds_has_the_pool_again(ray_here: Any, federate: Any, start: Any) -> None:
    method, federation, said = composed(FedMix(eta=0.1, steps=2, batch=4, group=4)), federate(SIZES), list[str]()
    found = []
    for killed in (False, True):
        engine, task, state = start(Ray, method, federation, network(), actors=2, chunk=2, warn=said.append)
        state, _ = rounds.play(method, task, engine, state)
        if killed:
            os.kill(engine.actors.members[1].pid, signal.SIGKILL)
        state, _ = rounds.play(method, task, engine, state)
        found.append(state.collaborate["model"])
        engine.close()
    assert sum("started again" in sentence for sentence in said) == 1
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_an_actor_killed_after_rounds_of_some_clients_has_them_all_as_they_were(
    ray_here: Any, federate: Any, start: Any
) -> None:
    method = composed(TwoStreams(eta=0.1, steps=2, batch=4), select=Uniform(count=2))
    found = []
    for killed in (None, 2, 7):  # 7: after one of them was written down as a whole
        engine, task, state = start(Ray, method, federate(SIZES), network(), actors=2, chunk=2, warn=lambda said: None)
        for round in range(9):
            state, _ = rounds.play(method, task, engine, state)
            kept = [member.changed <= 2 * len(member.ids) for member in engine.actors.members]
            assert all(kept), "what is kept for a new start does not grow for ever"
            if round == killed:
                for member in engine.actors.members:
                    os.kill(member.pid, signal.SIGKILL)
        found.append(tree.flat({"server": state.collaborate, "clients": engine.private()}))
        engine.close()
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)
    torch.testing.assert_close(found[2], found[0], rtol=0, atol=0)


def test_an_actor_short_of_memory_trains_half_as_many_clients_at_once(
    ray_here: Any, federate: Any, start: Any, tmp_path: Path
) -> None:
    federation, said = federate(SIZES), list[str]()
    part = Fragile(eta=0.1, steps=2, batch=4, how="memory")
    whole = played(start, federation, part, [], chunk=2)
    found = played(start, federation, replace(part, once=str(tmp_path / "once")), said, chunk=2)
    assert (tmp_path / "once").exists()
    assert not said
    torch.testing.assert_close(found, whole)


def test_an_actor_that_ends_twice_goes_on_with_half_its_chunk(
    ray_here: Any, federate: Any, start: Any, tmp_path: Path
) -> None:
    federation, said = federate(SIZES), list[str]()
    part = Fragile(eta=0.1, steps=2, batch=4, how="ends", times=2)
    whole = played(start, federation, part, [], chunk=2)
    found = played(start, federation, replace(part, once=str(tmp_path / "once")), said, chunk=2)
    as_before = "it is started again, its clients are as they were."
    assert said[0] == f"An actor with 3 clients ended; {as_before}"
    assert said[1] == f"An actor with 3 clients ended, and goes on with a chunk of 1; {as_before}"
    torch.testing.assert_close(found, whole)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("memory", "There is not enough memory to train one client; choose a smaller --chunk or model."),
        ("ends", "An actor ended again, even with a chunk of 1; what was saved can be gone on with by --resume, where"),
    ],
)
def test_an_actor_that_always_fails_ends_the_run_in_a_sentence(
    ray_here: Any, federate: Any, start: Any, tmp_path: Path, how: str, sentence: str
) -> None:
    part = Fragile(eta=0.1, steps=2, batch=4, how=how, times=100, once=str(tmp_path / "once"))
    with pytest.raises(fk.BadInput, match=f"^{sentence}"):
        played(start, federate(SIZES), part, [], chunk=2)


@dataclass(frozen=True)
class Faulty(TwoStreams):
    """Two streams with a mistake."""

    def begin(self, sent: Any, mine: Any) -> Any:
        raise fk.BadInput("This is no way to begin.")


def test_an_error_of_the_training_is_raised_as_it_was_there(ray_here: Any, federate: Any, start: Any) -> None:
    with pytest.raises(fk.BadInput, match=r"^This is no way to begin\.$"):
        played(start, federate(SIZES), Faulty(eta=0.1, steps=2, batch=4), [])


def test_an_actor_convolves_as_the_run_that_began_it(ray_here: Any, federate: Any) -> None:
    federation, part = federate(SIZES, shape=(1, 12, 12)), SGD(eta=0.1, steps=1, batch=4)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(400, 3))
    for way in WAYS.values():
        made = network_of(federation, module, part, torch.float32, torch.device("cpu"))
        assert made.fused is not None
        made.fused.way = way
        worker = Worker()
        worker.build(federation, made, part, {"seed": 0, "chunk": 2, "own": False, "device": "cpu", "scratch": None})
        assert worker.engine.network.fused is not None
        assert worker.engine.network.fused.way == way
        worker.close()


def test_a_tensor_travels_as_it_is() -> None:
    for value in (torch.tensor(3.5), torch.arange(6).reshape(2, 3).T, torch.zeros(0, 4), torch.tensor([True])):
        torch.testing.assert_close(as_tensor(as_array(value)), value, rtol=0, atol=0)


def test_an_actor_that_finds_no_core_is_waited_for_no_longer(
    ray_here: Any, federate: Any, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors, "START", 1.0)
    taken = [ray_here.remote(Worker).options(num_cpus=1).remote() for _ in range(2)]  # of four, and two actors wait
    ray_here.get([one.look_in.remote([]) for one in taken])
    with pytest.raises(fk.BadInput, match=r"^\d of 4 actors found no free core in 1 s; ask for fewer\.$"):
        start(Ray, composed(SGD(eta=0.1, steps=1, batch=4)), federate(SIZES), network(), actors=4)
    assert len(idle_actors(ray_here) or ()) < 3, "those that did not begin do not wait for another run"
    for one in taken:
        ray_here.kill(one)


# who has which clients


def test_clients_are_divided_largest_first_and_always_alike() -> None:
    parts = divided(np.array([1, 100, 1, 1, 60, 50]), 2)
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5]]
    steps = np.random.default_rng(0).integers(1, 500, 1000)
    parts = divided(steps, 7)
    assert sorted(torch.cat(parts).tolist()) == list(range(1000))
    costs = [float((steps[part.numpy()] + np.median(steps)).sum()) for part in parts]
    assert max(costs) < 1.01 * min(costs)
    assert all(torch.equal(one, other) for one, other in zip(parts, divided(steps, 7), strict=True))
    assert [len(part) for part in divided(np.zeros(4, dtype=np.int64), 4)] == [1, 1, 1, 1]


def test_a_part_of_a_federation_has_its_clients_samples_and_numbers(federate: Any) -> None:
    whole = federate((3, 1, 4, 2), test=(2, 0, 1, 5), validation=1, common=3)
    part = whole.only(torch.tensor([1, 3]))
    assert part.numbers is not None
    assert part.numbers.tolist() == [1, 3]
    assert (part.n, len(part.x), part.common) == (2, 1 + 2 + 0 + 5 + 2, None)
    for split in ("train", "test", "validation"):
        there, here = getattr(whole, split), getattr(part, split)
        for place, client in enumerate((1, 3)):
            assert torch.equal(whole.x[there[client]], part.x[here[place]])
            assert torch.equal(whole.y[there[client]], part.y[here[place]])
    again = part.only(torch.tensor([1]))
    assert again.numbers is not None
    assert again.numbers.tolist() == [3]


def test_actors_are_one_a_core_or_one_a_gpu() -> None:
    assert shares({"CPU": 8.0}, None, 100, "cpu") == (8, 0.0)
    assert shares({"CPU": 8.0, "GPU": 2.0}, None, 3, "cpu") == (3, 0.0)
    assert shares({"CPU": 8.0, "GPU": 2.0}, None, 100, "cuda") == (2, 1.0)
    assert shares({"CPU": 8.0, "GPU": 2.0}, 4, 100, "cuda") == (4, 0.5)
    with pytest.raises(fk.BadInput, match=r"^Each actor takes a core, and there are 2 for 3 actors; ask for fewer\.$"):
        shares({"CPU": 2.0}, 3, 100, "cpu")
    with pytest.raises(fk.BadInput, match=r"^The Ray cluster has no GPU; use --device cpu\.$"):
        shares({"CPU": 2.0}, None, 100, "cuda")
