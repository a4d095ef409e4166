"""The process of a site that answers: one for all messages, so that Python and torch are loaded once.

Flower would start a process for every message, and would run there whatever app the server sends. This one runs the
app that lies in the site's own folder, and no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from logging import ERROR
from threading import Lock
from typing import Any

import httpx
from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore import log
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

POLL = 0.1  # seconds between two looks for a message
ACQUIRE = "/flwr.proto.Runtime/AcquireTask"


class Tasks:
    """The messages that a SuperNode has for this process, one after another.

    A SuperNode fetches a message only after the one before it was answered. Where a later message waits, the earlier
    one was given up: its run was stopped while the message was on its way, and the rest of it never comes.
    """

    def __init__(self, address: str, secret: bytes):
        known = SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=frozenset({ACQUIRE}))
        self.node = connected(address, "SuperExec", known)
        self.later, self.lock = "", Lock()  # parts of a message are fetched by several threads

    def next(self) -> str:
        """Return the token of the next message; an empty one where there is none."""
        with self.lock:
            token, self.later = self.later or self.asked(), ""
        return token

    def asked(self) -> str:
        try:
            found = self.node.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
        except httpx.HTTPError:  # the SuperNode is not there yet, or no more
            return ""
        return str(found.token) if found.HasField("task") else ""

    def waits(self) -> bool:
        """Whether a later message waits."""
        with self.lock:
            self.later = self.later or self.asked()
        return bool(self.later)


class Patient:
    """A SuperNode of which parts of a message are asked until a later message waits."""

    def __init__(self, node: RuntimeHttpClient, tasks: Tasks):
        self.node, self.tasks = node, tasks

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)

    def PullObject(self, request: PullObjectRequest) -> PullObjectResponse:
        part: PullObjectResponse = self.node.PullObject(request)
        if not part.object_available and self.tasks.waits():
            raise RuntimeError("Its run was stopped while it was on its way.")
        return part


def serve(app: ClientApp, address: str, secret: bytes, check: Callable[[], None]) -> None:
    """Answer every message that the SuperNode at this address has, with this app, until `check` raises."""
    tasks = Tasks(address, secret)
    while True:
        check()
        if token := tasks.next():
            answer(app, address, token, tasks)
        else:
            time.sleep(POLL)


def connected(address: str, component: str, proof: object) -> RuntimeHttpClient:
    """Return a connection to a SuperNode on this machine."""
    checks = [RuntimeVersionHttpInterceptor(component_name=component), proof]
    retry = make_simple_http_retry_invoker()
    retry.max_tries = 1
    return RuntimeHttpClient.from_server_address(address, True, None, checks, retry_invoker=retry)


def answer(app: ClientApp, address: str, token: str, tasks: Tasks) -> None:
    """Answer one message; what the app raises becomes an error that the server is told."""
    node = connected(address, "flwr-clientapp", RuntimeTokenHttpInterceptor(token))
    beats = HeartbeatSender(make_task_heartbeat_fn_http(node))
    context, status, why = None, SubStatus.FAILED, "The message was not read."
    try:
        beats.start()
        message, context, _, _ = pull_task_input(Patient(node, tasks))
        reply, why = replied(app, message, context)
        status = SubStatus.FAILED if why else SubStatus.COMPLETED
        push_message(node, reply, context)
    except Exception as error:  # as when a run is stopped before its message is here; the site goes on
        log(ERROR, "A message could not be answered: %s", error)
    finally:
        push_task_output(client=node, context=context, sub_status=status, details=why)
        beats.stop()
        node.close()


def replied(app: ClientApp, message: Message, context: Context) -> tuple[Message, str]:
    """Return the reply of the app to a message, and what went wrong, if anything did."""
    try:
        return app(message=message, context=context), ""
    except Exception as error:  # an app may raise anything, and the site goes on
        log(ERROR, "The site's app failed", exc_info=error)
        why = f"{type(error).__name__}: {error}"
        return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, why), reply_to=message), why
