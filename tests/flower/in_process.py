"""A grid of Flower's in this process: random node ids, replies in any order, nodes that are lost."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

LOST, RAISED, EXPIRED = 5, 2, 3  # Flower's codes


@dataclass
class Node:
    app: ClientApp
    config: dict[str, Any]
    lost: bool = False  # whether it is gone when it should answer
    slow: bool = False  # whether its time is over when it answers


@dataclass
class InProcess(Grid):
    """Nodes are called when their replies are pulled. `seen` has every message that was pushed."""

    nodes: dict[int, Node] = field(default_factory=dict)
    waiting: dict[str, Message] = field(default_factory=dict)
    seen: list[Message] = field(default_factory=list)
    draw: random.Random = field(default_factory=random.Random)

    def add(self, app: ClientApp, **config: Any) -> int:
        node = self.draw.getrandbits(60)
        self.nodes[node] = Node(app, config)
        return node

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *given: Any, **more: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        found = list(self.nodes)
        self.draw.shuffle(found)
        return found

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        for message in messages:
            message.metadata.__dict__["_message_id"] = uuid4().hex
            self.waiting[message.metadata.message_id] = message
            self.seen.append(message)
        return [message.metadata.message_id for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        wanted = list(message_ids)
        self.draw.shuffle(wanted)
        return [self.reply(self.waiting.pop(one)) for one in wanted if one in self.waiting]

    def reply(self, message: Message) -> Message:
        node = self.nodes.get(message.metadata.dst_node_id)
        if node is None or node.lost:
            found = Message(Error(LOST, "Node unavailable"), reply_to=message)
            found.metadata.__dict__["_src_node_id"] = 1  # as Flower has it: not the node that was asked
            return found
        if node.slow:
            return Message(Error(EXPIRED, "Message Unavailable"), reply_to=message)
        context = Context(1, message.metadata.dst_node_id, node.config, RecordDict(), {})
        try:
            return node.app(message, context)
        except Exception as error:
            return Message(Error(RAISED, f"{type(error)}:<'{error}'>"), reply_to=message)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(list(messages)))
