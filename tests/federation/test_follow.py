"""When a run may be started, and when it is gone on with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

import fedkin as fk
from fedkin.federation import follow
from fedkin.federation.control import Control, Started
from fedkin.federation.folder import Folder

PLAYING, ENDED = Started(1, "running", ""), Started(1, "finished:failed", "")


@dataclass
class Link:
    """A SuperLink with one run."""

    run: Started
    done: list[Any] = field(default_factory=list)

    def runs(self) -> list[Started]:
        return [self.run]

    def stop(self, number: int) -> None:
        self.done.append(f"stopped {number}")

    def start(self, config: dict[str, Any]) -> int:
        self.done.append(config)
        return 2


def begun(monkeypatch: pytest.MonkeyPatch, recorded: bool, run: Started, resume: bool) -> list[Any]:
    """What the SuperLink is asked when a run is started."""
    link = Link(run)
    monkeypatch.setattr(follow, "played", lambda folder: ["a run"] if recorded else [])
    follow.begin(Folder(Path("study")), cast(Control, link), resume)
    return link.done


@pytest.mark.parametrize("recorded", [True, False])
def test_a_run_whose_process_is_gone_is_gone_on_with(monkeypatch: pytest.MonkeyPatch, recorded: bool) -> None:
    """Also if it died before anything was recorded: Flower takes a while to notice that nobody plays it any more."""
    assert begun(monkeypatch, recorded, PLAYING, True) == ["stopped 1", {"resume": True}]


def test_a_new_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert begun(monkeypatch, False, ENDED, False) == [{"resume": False}]
    assert begun(monkeypatch, True, ENDED, True) == [{"resume": True}]


@pytest.mark.parametrize(
    ("recorded", "run", "resume", "words"),
    [
        (True, ENDED, False, "holds a run already; go on with --resume"),
        (False, ENDED, True, "holds no run to go on with; leave --resume out"),
        (False, PLAYING, False, "A run is being played"),
    ],
)
def test_what_is_refused(
    monkeypatch: pytest.MonkeyPatch, recorded: bool, run: Started, resume: bool, words: str
) -> None:
    with pytest.raises(fk.BadInput, match=words):
        begun(monkeypatch, recorded, run, resume)
