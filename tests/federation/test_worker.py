"""The process of a site that answers: whatever breaks one message, the next one is answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedkin.federation import worker


class Node:
    """A SuperNode that has these messages; None is a moment without any. What is pushed to it is kept."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.replies: list[Message] = []
        self.statuses: list[str] = []

    def AcquireTask(self, request: Any) -> Any:
        there = self.found[0] is not None
        if not there:
            self.found.pop(0)
        return SimpleNamespace(token="token", HasField=lambda name: there)

    def PullObject(self, request: Any) -> Any:
        return SimpleNamespace(object_available=request)

    def close(self) -> None:
        pass


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    one = Node()

    def pulled(node: Node) -> Any:
        message = node.found.pop(0)
        if isinstance(message, Exception):
            raise message
        return message, Context(1, 2, {}, RecordDict(), {}), None, None

    monkeypatch.setattr(worker, "connected", lambda *given: one)
    monkeypatch.setattr(worker, "pull_task_input", pulled)
    monkeypatch.setattr(worker, "push_message", lambda node, reply, context: node.replies.append(reply))
    monkeypatch.setattr(worker, "push_task_output", lambda client, sub_status, **_: client.statuses.append(sub_status))
    monkeypatch.setattr(worker, "make_task_heartbeat_fn_http", lambda node: lambda: True)
    return one


def asked(word: str) -> Message:
    found = Message(RecordDict(), 2, f"query.{word}")
    found.metadata.__dict__["_message_id"] = word
    return found


def app() -> ClientApp:
    made = ClientApp()

    @made.query("fail")
    def fail(message: Message, context: Context) -> Message:
        raise ValueError("no")

    @made.query("go")
    def go(message: Message, context: Context) -> Message:
        return Message(RecordDict(), reply_to=message)

    return made


class Over(Exception):
    pass


@pytest.fixture(autouse=True)
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def test_one_message_after_another(node: Node) -> None:
    node.found = [asked("go"), None, RuntimeError("No messages"), asked("fail"), asked("other"), asked("go")]

    def check() -> None:
        if not node.found:
            raise Over

    with pytest.raises(Over):
        worker.serve(app(), "127.0.0.1:1", b"secret", check)
    assert [reply.has_error() for reply in node.replies] == [False, True, True, False]
    assert "ValueError: no" in str(node.replies[1].error.reason)
    assert node.statuses == ["completed", "failed", "failed", "failed", "completed"]


def test_a_message_whose_rest_never_comes_is_given_up_for_the_next_one(node: Node) -> None:
    """A run that is stopped while a SuperNode fetches a message of it leaves the message there, without its parts."""
    tasks = worker.Tasks("127.0.0.1:1", b"secret")
    patient = worker.Patient(node, tasks)  # type: ignore[arg-type]
    node.found = [None, asked("go")]
    assert not patient.PullObject(False).object_available  # type: ignore[arg-type]
    assert patient.PullObject(True).object_available  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="stopped"):
        patient.PullObject(False)  # type: ignore[arg-type]
    node.found.clear()  # a SuperNode gives a message out once
    assert tasks.next() == "token"
    node.found = [None]
    assert tasks.next() == ""
