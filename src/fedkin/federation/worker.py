"""The process of a site that answers: one for all messages, so that Python and torch are loaded once.

Flower would start a process for every message, and would run there whatever app the server sends. This one runs the
app that lies in the site's own folder, and no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from logging import ERROR

import httpx
from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode, SubStatus
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


def serve(app: ClientApp, address: str, secret: bytes, check: Callable[[], None]) -> None:
    """Answer every message that the SuperNode at this address has, with this app, until `check` raises."""
    known = SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=frozenset({ACQUIRE}))
    node = connected(address, "SuperExec", known)
    while True:
        check()
        try:
            found = node.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
        except httpx.HTTPError:  # the SuperNode is not there yet, or no more; `check` knows which
            found = None
        if found is not None and found.HasField("task") and found.token:
            answer(app, address, found.token)
        else:
            time.sleep(POLL)


def connected(address: str, component: str, proof: object) -> RuntimeHttpClient:
    """Return a connection to a SuperNode on this machine."""
    checks = [RuntimeVersionHttpInterceptor(component_name=component), proof]
    retry = make_simple_http_retry_invoker()
    retry.max_tries = 1
    return RuntimeHttpClient.from_server_address(address, True, None, checks, retry_invoker=retry)


def answer(app: ClientApp, address: str, token: str) -> None:
    """Answer one message; what the app raises becomes an error that the server is told."""
    node = connected(address, "flwr-clientapp", RuntimeTokenHttpInterceptor(token))
    beats = HeartbeatSender(make_task_heartbeat_fn_http(node))
    context, status, why = None, SubStatus.FAILED, "The message was not read."
    try:
        beats.start()
        message, context, _, _ = pull_task_input(node)
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
