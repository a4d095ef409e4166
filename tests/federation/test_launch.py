"""Who reaches what of a SuperLink, and how processes are ended."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from survivors import MARK, gone, marked, need_proc

import fedkin as fk
from fedkin.errors import Unfinished
from fedkin.federation import processes as module
from fedkin.federation.launch import OnlySites
from fedkin.federation.processes import Processes, check_free, ended_by_signals, free_port, listens


def answered(path: str, client: Any) -> int:
    """The status of the answer to a request; 200 is what the SuperLink itself would say."""
    sent: list[dict[str, Any]] = []

    async def link(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    with pytest.raises(StopIteration):  # it is done without waiting, so that no event loop is needed
        OnlySites(link)({"type": "http", "path": path, "client": client}, None, send).send(None)
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    "path", ["/v1/control/start-run", "/v1/control/register-node", "/v1/runtime/acquire-task", "/"]
)
def test_other_machines_reach_what_sites_need_only(path: str) -> None:
    assert answered("/v1/fleet/pull-messages", ("203.0.113.5", 1)) == 200
    assert answered(path, ("203.0.113.5", 1)) == 403
    assert answered(path, None) == 403
    assert answered(path, ("somebody", 1)) == 403
    assert answered(path, ("127.0.0.1", 1)) == answered(path, ("::1", 1)) == 200


def test_the_superlink_has_this_guard_before_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from flwr.superlink import cli, extensions

    from fedkin.federation import launch

    found = []
    monkeypatch.setattr(extensions, "get_middleware", extensions.get_middleware)
    monkeypatch.setattr(cli, "flower_superlink", lambda: found.extend(extensions.get_middleware()))
    launch.superlink()
    assert [one.cls for one in found] == [OnlySites]


def test_grandchildren_end_too(tmp_path: Path) -> None:
    need_proc()
    mark = uuid4().hex
    sleeps = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {!r}]); time.sleep(600)"
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    with Processes(tmp_path / "logs", {MARK: mark}) as processes:
        processes.start("one", sys.executable, "-c", sleeps.format(stubborn))
        while len(marked(mark)) < 2:
            processes.check()
    assert not gone(mark, 5)


def test_killed_processes_are_buried_however_busy_the_machine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine there was no time left to look after more than the first one."""
    monkeypatch.setattr(module, "wait", lambda processes, seconds: None)
    with Processes(tmp_path / "logs") as processes:
        for name in ("one", "two"):
            processes.start(name, sys.executable, "-c", "import time; time.sleep(60)")
        both = list(processes.running.values())
    assert [process.returncode is None for process in both] == [False, False]


def test_a_process_that_ended_is_named(tmp_path: Path) -> None:
    with Processes(tmp_path / "logs") as processes:
        processes.start("one", sys.executable, "-c", "print('words'); raise SystemExit(3)")
        processes.running["one"].wait()
        with pytest.raises(Unfinished, match="one ended with code 3"):
            processes.check()
        assert processes.log("one") == "words\n"


def test_signals_leave_blocks_properly() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_who_is_started_by_nohup_survives_the_end_of_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_port_in_use() -> None:
    port = free_port()
    check_free("127.0.0.1", port)
    assert not listens(port)
    with socket.create_server(("127.0.0.1", port)):
        assert listens(port)
        with pytest.raises(fk.BadInput, match=f"Port {port} is in use"):
            check_free("127.0.0.1", port)
