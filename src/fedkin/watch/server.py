"""Hands the watch page out on this machine only: two addresses, both only to be read."""

from __future__ import annotations

import errno
import gzip
import os
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fedkin.errors import BadInput, require
from fedkin.watch.page import POLICY, watch_page
from fedkin.watch.view import Watched

HERE = "127.0.0.1"
NAMES = (HERE, "localhost")  # by which a browser may call us; one led here by another name (DNS rebinding) may not
PORT = 8422  # the first one that is tried
PORTS = 100  # how many are tried
LARGE = 1000  # bytes from which an answer is compressed
GRACE = 6.0  # seconds for which a page that asked just now is given the end of the story


class Server(ThreadingHTTPServer):
    """Serves one watched folder."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # a port left a moment ago is free again

    def __init__(self, watched: Watched, port: int | None = None):
        """Bind the port, or without one the first that is free."""
        self.watched = watched
        self.page = watch_page(watched.folder.resolve().name).encode()
        for number in range(PORT, PORT + PORTS) if port is None else [port]:
            try:
                super().__init__((HERE, number), Handler)
                return
            except OSError as error:
                refused = error
                if error.errno != errno.EADDRINUSE:
                    break
        if port is None and refused.errno == errno.EADDRINUSE:
            super().__init__((HERE, 0), Handler)
            return
        why = "is taken" if refused.errno == errno.EADDRINUSE else f"cannot be used ({refused.strerror})"
        raise BadInput(f"Port {port or PORT} {why}; choose another --port, or leave it out.")

    @property
    def address(self) -> str:
        return f"http://{HERE}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no error worth a traceback."""

    # in a thread, beside a run

    def __enter__(self) -> Server:
        self.thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        self.thread.start()
        return self

    def finish(self, note: str) -> None:
        """Give a page that is open the end of the story: it has a few seconds to ask for it once more."""
        watched = self.watched
        open_now = watched.clock() - watched.asked < GRACE
        watched.end(note)
        ended = watched.clock()
        while open_now and watched.asked < ended and watched.clock() < ended + GRACE:
            time.sleep(0.05)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()


def check_port(port: int | None) -> None:
    require(port is None or 0 <= port < 2**16, f"--port is a number from 0 (any free one) to 65535, not {port}.")


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    server_version, sys_version = "fedkin", ""
    timeout = 20  # seconds after which a silent connection is closed

    def do_GET(self) -> None:
        host = self.headers.get("Host", "")
        asked = urlsplit(self.path)
        if host not in [f"{name}:{self.server.server_port}" for name in NAMES]:
            self.refuse(HTTPStatus.FORBIDDEN)
        elif asked.path == "/":
            self.send(self.server.page, "text/html; charset=utf-8")
        elif asked.path == "/state.json":
            have = parse_qs(asked.query).get("have", [""])[-1]
            self.send(self.server.watched.answer(frozenset(have.split("."))).encode(), "application/json")
        else:
            self.refuse(HTTPStatus.NOT_FOUND)

    def send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        packed = len(body) > LARGE and "gzip" in self.headers.get("Accept-Encoding", "")
        body = gzip.compress(body, 1) if packed else body
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }
        for name, value in (headers | ({"Content-Encoding": "gzip"} if packed else {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: HTTPStatus) -> None:
        self.send(f"{status.phrase}\n".encode(), "text/plain; charset=utf-8", status)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what `http.server` itself refuses: any other method than GET, and what is no request at all."""
        other = code == HTTPStatus.NOT_IMPLEMENTED
        self.close_connection = True
        self.headers = getattr(self, "headers", None) or {}  # type: ignore[assignment]
        self.refuse(HTTPStatus.METHOD_NOT_ALLOWED if other else HTTPStatus(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the run."""
