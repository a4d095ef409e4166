"""Flower's grid as a transport: who is who among its nodes, and how letters go to them and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import uuid4

from flwr.app import Message, MessageType
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from fedkin.errors import BadInput
from fedkin.flower.records import as_answer, request_record
from fedkin.sites.letters import Answer, Failure, Request

POLL = 0.5  # seconds between two looks at what has arrived; Flower's own is 3


class OnGrid:
    """Sites that are nodes of a grid.

    A node's id is another one each time it connects, so nodes are asked for their names. A name belongs to whoever
    first proved it (`Site.introduce`): one that connects again keeps it, and nobody else gets it. With `registered` it
    belongs, from the first, to the node whose key the SuperLink knows under this name.
    """

    def __init__(
        self, grid: Grid, warn: Callable[[str], None] = print, poll: float = POLL, *, registered: bool = False
    ):
        self.grid, self.warn, self.poll, self.registered = grid, warn, poll, registered
        self.nodes: dict[str, int] = {}  # by name
        self.proofs: dict[str, str] = {}  # by name
        self.met: set[int] = set()  # nodes that have introduced themselves

    def gather(self, request: Request, timeout: float) -> list[Answer]:
        everyone = list(self.grid.get_node_ids())
        return self.introduced(request, everyone, timeout)

    def exchange(self, requests: Mapping[str, Request], timeout: float) -> dict[str, Answer | Failure]:
        there = self.found(requests, timeout)
        answers = self.sent([(node, requests[name]) for name, node in there.items()], timeout)
        missing: dict[str, Answer | Failure] = dict.fromkeys(requests, Failure("It is not connected."))
        return missing | dict(zip(there, answers, strict=True))

    def found(self, names: Iterable[str], timeout: float) -> dict[str, int]:
        """Return the nodes of those of these sites that are connected; where one is missing, new nodes are asked."""
        wanted, present = list(names), set(self.grid.get_node_ids())
        if not {self.nodes.get(name) for name in wanted} <= present and present - self.met:
            self.introduced(Request(uuid4().hex, "introduce"), sorted(present - self.met), timeout)
        return {name: self.nodes[name] for name in wanted if self.nodes.get(name) in present}

    def introduced(self, request: Request, nodes: Sequence[int], timeout: float) -> list[Answer]:
        """Ask nodes who they are, and return what they said. One that cannot prove its name is told that it is not
        taken, and gets no letters."""
        found, liars = [], []
        keys = {node.node_id: node.name for node in self.grid.get_nodes()} if self.registered else {}
        for node, answer in zip(nodes, self.sent([(node, request) for node in nodes], timeout), strict=True):
            if isinstance(answer, Failure):
                who = f"Site {keys[node]}" if keys.get(node) else "A node of the grid"
                self.warn(f"{who} does not say who it is: {answer.reason}")
                continue
            self.met.add(node)
            proof, why = str(answer.facts.get("proof")), ""
            if self.registered and keys.get(node) != answer.site:
                why = f"Its key is that of site {keys.get(node)}."
            elif self.proofs.setdefault(answer.site, proof) != proof:
                why = "Another site has this name; give each its own."
            if why:
                self.warn(f"A node says that it is site {answer.site}, and cannot prove it; it is not taken. {why}")
                liars.append((node, Request(uuid4().hex, "refused", {"why": why})))
            else:
                self.nodes[answer.site] = node
            if not self.registered or not why:
                found.append(answer)
        self.sent(liars, timeout)
        return found

    def sent(self, letters: Sequence[tuple[int, Request]], timeout: float) -> list[Answer | Failure]:
        """Send a request to each of these nodes, and return what each answered in time, in their order.

        Replies come in any order, and one for a lost node does not say which node it was: only the message that it
        replies to does.
        """
        if not letters:
            return []
        messages = [Message(request_record(one), node, kind(one), ttl=max(timeout, 1.0)) for node, one in letters]
        self.grid.push_messages(messages)
        waiting = {message.metadata.message_id: place for place, message in enumerate(messages)}
        late = Failure(f"It did not answer in {timeout:.0f} s.")
        found: list[Answer | Failure] = [late] * len(letters)
        end = time.monotonic() + timeout
        while True:
            for reply in self.grid.pull_messages(list(waiting)):
                place = waiting.pop(reply.metadata.reply_to_message_id, None)
                if place is not None:
                    found[place] = late if is_late(reply) else opened(reply)
            left = end - time.monotonic()
            if not waiting or left <= 0:
                return found
            time.sleep(min(self.poll, left))


def kind(request: Request) -> str:
    """Return the type of message that a request goes as."""
    if request.do != "work":
        return str(MessageType.QUERY)
    return str(MessageType.TRAIN if request.facts.get("train") else MessageType.EVALUATE)


def is_late(reply: Message) -> bool:
    """Whether Flower says that a message is not there any more, which is so when its time is over."""
    codes = ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE
    return bool(reply.has_error()) and reply.error.code in codes


def opened(reply: Message) -> Answer | Failure:
    """Return the answer in a reply, or why there is none."""
    if reply.has_error() and reply.error.code == ErrorCode.NODE_UNAVAILABLE:
        return Failure("It is not connected any more (Flower's code 5).")
    if reply.has_error():
        words = " ".join(str(reply.error.reason or "").split())
        return Failure(f"Flower says (code {reply.error.code}): {words or 'it failed'}")
    try:
        return as_answer(reply.content)
    except BadInput as error:
        return Failure(str(error))
