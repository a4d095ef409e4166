"""How Ray is found: not installed, no cluster, one that lets nobody in, and one connection for several runs."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fedkin as fk
from fedkin.engines.cluster import address, connection
from fedkin.engines.cluster.connection import connected, idle_actors, kept

RUN = ["run", "fedavg", "--data", "digits", "--clients", "6", "--rounds", "2", "--out", "here"]
COMPARE = ["compare", *RUN[1:]]
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def closed() -> str:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


class Broken:
    """Finds a Ray that cannot be imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "ray":
            raise ImportError("libray.so is not there")


@pytest.mark.parametrize("words", [[*RUN, "--engine", "ray"], [*COMPARE, "--jobs", "ray"]], ids=["engine", "jobs"])
def test_without_ray_the_sentence_says_how_to_install_it(
    fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    install = "install it with: pip install 'fedkin[ray]'."
    monkeypatch.setitem(sys.modules, "ray", None)
    outcome = fedkin(*words)
    assert (outcome.code, outcome.err.splitlines()[-1]) == (2, f"fedkin: Ray is not installed; {install}")
    monkeypatch.delitem(sys.modules, "ray")
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    outcome = fedkin(*words)
    said = f"fedkin: Ray cannot be imported (libray.so is not there); {install}"
    assert (outcome.code, outcome.err.splitlines()[-1]) == (2, said)
    assert not (tmp_path / "here").exists()


@needs_ray
@pytest.mark.parametrize(
    "words",
    [[*RUN, "--engine", "ray"], [*COMPARE, "--jobs", "ray"], ["preset", "fedacs/table1", "--jobs", "ray"]],
    ids=["engine", "jobs", "preset"],
)
def test_no_cluster_is_a_sentence_before_anything_is_written(
    fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str, words: list[str]
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    outcome = fedkin(*words, "--ray-address", closed)
    advice = "start one with: ray start --head --port=6379, and give its address."
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1] == f"fedkin: There is no Ray cluster at '{closed}'; {advice}"
    outcome = fedkin(*words, "--ray-address", "ray://127.0.0.1:10001")
    assert outcome.code == 2
    assert "The address of a Ray cluster is host:port, as 10.0.0.1:6379, auto or here, not 'ray:" in outcome.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["nonsense", ":6379", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.1:port"])
def test_an_address_is_a_host_and_a_port(text: str) -> None:
    with pytest.raises(fk.BadInput, match=f"^The address of a Ray cluster is host:port, .* not '{text}'"):
        address.check_address(text)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("Failed: Unauthenticated: RPC error: InvalidAuthToken", "asks for its token; set RAY_AUTH_MODE=token"),
        ("ray.exceptions.AuthenticationError: no", "asks for its token"),
        ("RuntimeError: Version mismatch: The cluster was started with:", "has another version of Ray or Python"),
        ("RuntimeError: No node info found matching", r"is not part of .*; add it with: ray start --address=auto, or"),
        ("ConnectionError: Could not find any running Ray instance", "There is no Ray cluster at 'auto'"),
    ],
)
def test_a_cluster_that_lets_nobody_in_says_why(monkeypatch: pytest.MonkeyPatch, said: str, sentence: str) -> None:
    address.try_to_join.cache_clear()
    monkeypatch.setattr(address, "JOIN", f"raise SystemExit({said!r})")
    with pytest.raises(fk.BadInput, match=sentence):
        address.check_address("auto")


def test_a_cluster_that_does_not_answer_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    address.try_to_join.cache_clear()
    wait = "import sys, time; print('Unauthenticated', file=sys.stderr, flush=True); time.sleep(60)"
    monkeypatch.setattr(address, "PATIENCE", 2.0)
    monkeypatch.setattr(address, "JOIN", wait)
    with pytest.raises(fk.BadInput, match="asks for its token"):
        address.check_address("auto")
    address.try_to_join.cache_clear()
    monkeypatch.setattr(address, "JOIN", "pass")
    address.check_address("auto")
    monkeypatch.setattr(address, "JOIN", "raise SystemExit(1)")
    address.check_address("auto")  # it is asked once


# one connection


class FakeRay:
    """What a connection asks of Ray, and what was asked of it."""

    exceptions = SimpleNamespace(RayError=KeyError)

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.error: Exception | None = None
        self.address: str | None = None
        self._private = SimpleNamespace(ray_constants=SimpleNamespace(ENABLE_RAY_CLUSTER=True))

    @property
    def reachable(self) -> tuple[bool, str | None]:
        """What Ray reads to know whether other machines may reach it, here and in processes that it starts."""
        return self._private.ray_constants.ENABLE_RAY_CLUSTER, os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")

    def is_initialized(self) -> bool:
        return self.did.count("shutdown") < sum(isinstance(what, dict) for what in self.did)

    def init(self, **how: Any) -> None:
        self.did.append({name: how[name] for name in ("num_cpus", "address") if name in how})
        self.address = os.environ.get("RAY_ADDRESS")
        if self.error is not None:
            raise self.error

    def shutdown(self) -> None:
        self.did.append("shutdown")

    def kill(self, actor: str) -> None:
        self.did.append(f"kill {actor}")

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_job_id=lambda: "job")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRay]:
    ray = FakeRay()
    monkeypatch.setattr(connection, "load_ray", lambda: ray)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    yield ray
    assert not connection.KEPT
    assert "job" not in connection.WAITING


def test_a_connection_ends_with_its_block_and_an_inner_one_is_the_same(fake: FakeRay) -> None:
    with connected(None, 6), connected("10.0.0.1:6379"):
        assert idle_actors(fake) is None, "a run by itself lets no actor wait"
    with connected(None, 2):
        pass
    with connected("10.0.0.1:6379"):
        pass
    assert fake.did == [
        {"num_cpus": 6},
        "shutdown",
        {"num_cpus": 4},
        "shutdown",
        {"address": "10.0.0.1:6379"},
        "shutdown",
    ]


def test_several_runs_have_one_connection_and_its_actors(fake: FakeRay) -> None:
    with kept():
        assert not fake.did, "the first run connects, so that its start-up is counted there"
        for _ in range(2):
            with connected() as ray:
                waiting = idle_actors(ray)
                assert waiting is not None
                waiting.append((0.0, "one"))
    assert fake.did == [{"num_cpus": None}, "kill one", "kill one", "shutdown"]


def test_a_ray_that_is_started_here_does_not_look_elsewhere(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.9:6379")
    with connected("here"):
        assert fake.address is None
        assert os.environ["RAY_ADDRESS"] == "10.0.0.9:6379"


def test_a_ray_that_is_started_here_is_reached_from_nowhere_else(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", raising=False)
    with connected():
        assert fake.reachable == (False, "0")
    assert fake.reachable == (True, None)
    with connected("10.0.0.1:6379"):
        assert fake.reachable == (True, None)


def test_a_ray_that_does_not_start_is_a_sentence(fake: FakeRay) -> None:
    fake.error = OSError(2, "No such file or directory", "/home/nobody")
    with pytest.raises(fk.BadInput, match=r"^Ray does not start on this machine \(.*nobody'\); leave Ray out\.$"):
        connected().__enter__()
    fake.error = KeyError("Version mismatch")
    with pytest.raises(fk.BadInput, match="has another version of Ray or Python"):
        connected("10.0.0.1:6379").__enter__()
    assert fake.did[1::2] == ["shutdown", "shutdown"]
