"""A site that the server does not let in tries again for a while, and says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

import fedkin as fk
from fedkin.errors import Unfinished
from fedkin.federation import site
from fedkin.federation.processes import Processes
from fedkin.runs import files

NOT_LET_IN = "Starting Flower SuperNode\nExit Code: 305\n[code: 2004] Failed to activate SuperNode."
OTHER = "Starting Flower SuperNode\n[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"


@dataclass
class Node:
    """A SuperNode that ends with these words, one after another, and then stays."""

    logs: list[str]
    told: list[str] = field(default_factory=list)

    def check(self) -> None:
        if self.logs:
            raise Unfinished("The process of supernode ended with code 1.")

    def log(self, name: str) -> str:
        return self.logs[0]

    def end(self, name: str) -> None:
        self.told.append("ended")
        self.logs.pop(0)

    def start_flower(self, program: str, *words: str, folder: Path) -> None:
        self.told.append("started")


class Clock:
    """A time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr(site, "time", one)
    return one


def joining(node: Node) -> site.Node:
    return site.Node(cast(Processes, node), [], Path(), "fed.example.org:9443")


def test_a_site_that_was_killed_is_let_in_when_the_server_has_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    node = Node([NOT_LET_IN] * 3)
    one = joining(node)
    for _ in range(5):
        one.check()
    assert node.told == ["ended", "started"] * 3
    assert capsys.readouterr().out == "The server does not let this site in; trying again for 30 s.\n"


def test_a_key_that_the_server_does_not_know(clock: Clock) -> None:
    one = joining(Node([NOT_LET_IN] * 100))
    while clock.now <= site.AGAIN:
        one.check()
    with pytest.raises(Unfinished, match=r"cannot join at fed.example.org:9443. The server does not know its key"):
        one.check()


def test_another_server_is_not_tried_again() -> None:
    node = Node([NOT_LET_IN + OTHER])
    with pytest.raises(Unfinished, match=r"is not the server that ca.crt is of; do not go on. The process"):
        joining(node).check()
    assert not node.told


def test_what_else_ends_a_supernode_is_said_as_it_is() -> None:
    """What an earlier start wrote does not count."""
    with pytest.raises(Unfinished, match=r"^The process of supernode ended with code 1.$"):
        joining(Node([f"{OTHER}\nStarting Flower SuperNode\nsomething"])).check()


def test_a_site_takes_part_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "settings", lambda folder: {"name": "a"})
    monkeypatch.setattr(site.launch, "end_with_parent", lambda: None)
    monkeypatch.setattr(site, "answer", lambda *_: pytest.fail("It takes part a second time."))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept" / "logs").mkdir(parents=True)
    with files.locked(tmp_path / "kept" / "logs"), pytest.raises(fk.BadInput, match="Another command is at work"):
        site.take_part(tmp_path)
