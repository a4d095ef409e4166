"""How far runs are, how long they will take, and how the status says it."""

from __future__ import annotations

import re
from html import unescape

import pytest

pytest.importorskip("plotly")

from fedkin.watch.progress import Progress, RunProgress
from fedkin.watch.status import span, status


def run(method: str, state: str, round: int, seconds: float | None, rounds: int = 10, **more: float) -> RunProgress:
    return RunProgress(method, f"{method} seed 0", state, round, rounds, seconds, **more)  # type: ignore[arg-type]


def said(progress: Progress, doing: dict[str, str] | None = None) -> str:
    return unescape(re.sub("<[^>]*>", " ", status(progress, "runs", doing).html))


def test_time_left_of_one_run() -> None:
    assert run("a", "running", 4, 2.0).left == 12.0
    assert run("a", "running", 4, 2.0, since=1.5).left == 10.5
    assert run("a", "running", 4, 2.0, since=60.0).left == 10.0, "a late round does not make the others faster"
    assert run("a", "waiting", 0, None).left is None
    assert run("a", "finished", 10, 2.0).left == 0.0


def test_time_left_in_all() -> None:
    """Runs that have not begun are as fast as the same method's other seeds, else as all runs on average."""
    runs = (run("a", "finished", 10, 1.0), run("b", "running", 5, 3.0), run("b", "waiting", 0, None))
    assert Progress(runs).left == 15 + 30
    assert Progress((*runs, run("c", "waiting", 0, None))).left == 15 + 30 + 20
    assert Progress(runs, jobs=2).left == 30, "not less than the longest of them"
    assert Progress((run("a", "running", 0, None),)).left is None


@pytest.mark.parametrize(
    ("states", "at_work", "expected"),
    [
        (["finished", "finished"], False, "finished"),
        (["finished", "finished"], True, "finished"),
        (["finished", "running"], False, "running"),
        (["finished", "waiting"], True, "running"),
        (["finished", "stopped"], False, "stopped"),
        (["waiting", "waiting"], False, "waiting"),
        ([], False, "waiting"),
        ([], True, "running"),
    ],
)
def test_the_state_of_all(states: list[str], at_work: bool, expected: str) -> None:
    rounds = {"finished": 10, "running": 3, "stopped": 3, "waiting": 0}
    runs = tuple(run("a", state, rounds[state], 1.0) for state in states)
    assert Progress(runs, at_work=at_work).state == expected


def test_the_status_says_what_is_played_and_for_how_long() -> None:
    runs = (run("local", "finished", 10, 1.0), run("fedavg", "running", 3, 60.0))
    text = said(Progress(runs, at_work=True))
    assert "1 of 2 runs are done · fedavg seed 0: round 4 of 10, about 7 min left · about 7 min left in all" in text
    doing = {"fedavg seed 0": "round 4 of 10: training clients, 140 of 500 (28 %)"}
    assert "training clients, 140 of 500 (28 %), about 7 min left" in said(Progress(runs), doing)
    slow = (run("fedavg", "running", 3, 6.0, since=200.0),)
    assert "round 4 of 10, for 3 min now" in said(Progress(slow))
    assert "writing what came out" in said(Progress((run("fedavg", "running", 10, 6.0),)))
    assert "fedavg seed 0: round 3 of 10" in said(Progress((run("fedavg", "stopped", 3, 6.0),)))


def test_spans_of_time() -> None:
    assert [span(s) for s in (0, 0.4, 40, 89, 91, 3600, 7500)] == [
        "1 s",
        "1 s",
        "40 s",
        "89 s",
        "2 min",
        "60 min",
        "2 h 5 min",
    ]
