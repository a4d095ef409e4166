"""The server of the watch page: to be read only, on this machine only, and by nobody who came by another name."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import fedkin as fk

pytest.importorskip("plotly")

from fedkin.watch import server as served
from fedkin.watch.server import Server
from fedkin.watch.view import Watched

Ask = Callable[..., tuple[int, dict[str, str], bytes]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(Watched(tmp_path / "run"), 0) as found:
        yield found


@pytest.fixture
def ask(server: Server) -> Ask:
    """`ask("/", "GET", Host="...")`: status, headers and body."""

    def asked(path: str, verb: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        line = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        line.putrequest(verb, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        line.endheaders()
        answer = line.getresponse()
        found = answer.status, dict(answer.headers.items()), answer.read()
        line.close()
        return found

    return asked


def test_it_is_bound_to_this_machine_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


def test_the_page_may_load_nothing_but_its_state(ask: Ask) -> None:
    status, headers, body = ask("/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    assert body.decode().count("plotly.js v") == 1


@pytest.mark.parametrize(
    "path",
    ["/report.html", "/../../etc/passwd", "/%2e%2e/x", "/state.json/..", "//etc/passwd", "/run/plan.json", "/x", "*"],
)
def test_nothing_else_is_handed_out(ask: Ask, path: str) -> None:
    assert ask(path)[0] == 404


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"])
def test_it_can_only_be_read(ask: Ask, verb: str) -> None:
    assert ask("/", verb)[0] == 405


def test_a_browser_that_came_by_another_name_is_refused(ask: Ask, server: Server) -> None:
    """A page of evil.example whose name points at 127.0.0.1 could otherwise read what is shown here."""
    port = server.server_port
    for host in (f"evil.example:{port}", "evil.example", "127.0.0.1:1", f"127.0.0.1.evil.example:{port}", "", "["):
        for path in ("/", "/state.json"):
            assert ask(path, Host=host)[0] == 403, host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert ask("/state.json", Host=host)[0] == 200


def test_what_is_no_request_does_no_harm(server: Server, ask: Ask) -> None:
    for text in (
        b"\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.server_port), 5) as line:
            line.sendall(text)
            line.shutdown(socket.SHUT_WR)
            line.recv(100_000)
    assert ask("/state.json")[0] == 200


def test_large_answers_are_compressed_for_who_can_read_it(ask: Ask) -> None:
    _, headers, packed = ask("/", Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed) == ask("/")[2]


def test_a_busy_port_is_said_or_passed_by(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = server.server_port
    with pytest.raises(fk.BadInput, match=f"Port {busy} is taken; choose another --port"):
        Server(Watched(tmp_path), busy)
    monkeypatch.setattr(served, "PORT", busy)
    monkeypatch.setattr(served, "PORTS", 1)
    with Server(Watched(tmp_path)) as other:
        assert other.server_port != busy
    for wrong in (-1, 65536):
        with pytest.raises(fk.BadInput, match="--port"):
            served.check_port(wrong)


def test_the_end_waits_only_for_a_page_that_is_open(server: Server, ask: Ask) -> None:
    server.finish("over")  # returns at once: nobody asked
    state: dict[str, Any] = json.loads(ask("/state.json")[2])
    assert state["last"]
    assert "over" in next(iter(state["pieces"].values()))
