"""Flower's programs as a federation runs them. This file is run as a script, so that they need not load torch.

Each program ends with the process that started it. A SuperNode asks for messages more often than Flower's own, and says
more often that it is there, so that a site that was killed is missed, and may come back, sooner. Of a SuperLink other
machines reach what sites need, and nothing else: Flower has one port for sites, for those who start runs, and for its
own processes. Who may start a run decides what code the server runs, and the open version of Flower asks nobody for a
password. So only the server's own machine may.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

PARENT = "FEDKIN_PARENT"  # in the environment: the process without which a program ends itself
POLL = 0.5  # seconds between two questions of a SuperNode whether there is a message; Flower's own is 3
BEAT = 10  # seconds; one that was not heard of for twice as long is gone. Flower's own is 30, and 10 its least
FOR_SITES = "/v1/fleet/"
Send = Callable[[dict[str, Any]], Awaitable[None]]


class OnlySites:
    """Refuses what another machine asks a SuperLink for, unless it is what sites ask for."""

    def __init__(self, app: Callable[..., Awaitable[None]]):
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Send) -> None:
        if scope["type"] == "lifespan" or scope.get("path", "").startswith(FOR_SITES) or is_here(scope.get("client")):
            await self.app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"Only the server's own machine may ask for this."})


def is_here(client: Any) -> bool:
    """Whether a request comes from this machine."""
    try:
        return bool(client) and ip_address(client[0]).is_loopback
    except ValueError:
        return False


def superlink() -> None:
    """Run a SuperLink."""
    from flwr.superlink import extensions
    from flwr.superlink.cli import flower_superlink
    from starlette.middleware import Middleware

    extensions.get_middleware = lambda: (Middleware(OnlySites),)
    flower_superlink()


def superexec() -> None:
    """Run the process that starts an app for a SuperLink."""
    from flwr.supercore.cli import flower_superexec

    flower_superexec()


def supernode() -> None:
    """Run a SuperNode."""
    from flwr.supercore import heartbeat
    from flwr.supernode import fleet_http_connection, start_client_internal
    from flwr.supernode.cli import flower_supernode

    heartbeat.HEARTBEAT_DEFAULT_INTERVAL = fleet_http_connection.HEARTBEAT_DEFAULT_INTERVAL = BEAT
    start_client_internal.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, POLL)))
    flower_supernode()


def end_with_parent() -> None:
    """End this process as Ctrl-C does when the one that started it is gone, however that ended."""
    from flwr.supercore.app_utils import start_parent_process_monitor

    if PARENT in os.environ:
        start_parent_process_monitor(int(os.environ[PARENT]))


def main() -> None:
    """Run the program that the first word names; the other words are Flower's own options."""
    programs = {"superlink": superlink, "superexec": superexec, "supernode": supernode}
    program = programs[sys.argv.pop(1)]
    end_with_parent()
    program()


if __name__ == "__main__":
    main()
