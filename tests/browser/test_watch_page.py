"""The watch page as a browser shows it: it waits, fills itself while a run is played, and keeps what a reader chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import fedkin as fk

pytest.importorskip("plotly")

from fedkin.watch.server import Server
from fedkin.watch.view import Watched

DATA = fk.Data("digits", clients=8, irrelevant="flip:0.25")
SAYS = "() => document.getElementById('status')?.innerText ?? ''"


class Gate(fk.Callback):
    """Holds a run after a round until the test lets it go on."""

    def __init__(self, round: int) -> None:
        self.round, self.reached, self.open = round, Event(), Event()

    def recorded(self, record: fk.Record) -> None:
        if record.method == "fedmcsa" and record.round == self.round:
            self.reached.set()
            assert self.open.wait(60)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[[Path], Server]]:
    """`watched(folder)`: a server of the page of this folder."""
    servers: list[Server] = []

    def serve(folder: Path) -> Server:
        servers.append(Server(Watched(folder, share=1.0), 0).__enter__())
        return servers[-1]

    yield serve
    for server in servers:
        server.__exit__(None, None, None)


def listed(folder: Path) -> dict[str, int]:
    """Every file of a folder with its time."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_the_page_follows_a_comparison_from_before_it_begins_to_its_end(
    tmp_path: Path, watched: Callable[[Path], Server], seen: Callable[[str], Any]
) -> None:
    folder = tmp_path / "live"
    found = seen(watched(folder).address)
    found.until(f"() => ({SAYS})().includes('No run has begun')")
    gate = Gate(2)
    pfedre = fk.methods.pfedre()
    methods = ["fedmcsa", replace(pfedre, keep=replace(pfedre.keep, iterations=2))]  # type: ignore[type-var]
    options = {"rounds": 4, "evaluate_every": 1, "folder": folder, "callbacks": [gate], "warn": lambda _: None}
    played = Thread(target=fk.compare, args=(methods, DATA), kwargs=options)
    played.start()
    assert gate.reached.wait(60)
    found.until(f"() => ({SAYS})().includes('fedmcsa seed 0: round 3 of 4')")
    assert "2 of 4 runs are done" in found.page.evaluate(SAYS)
    found.until("() => document.querySelectorAll('[data-view] .map .main-svg').length > 0")
    found.page.evaluate("() => { window.untouched = document.getElementById('curves'); }")
    found.page.locator("summary", has_text="Every run").click()
    found.page.locator("summary", has_text="fedmcsa").first.click()
    found.page.check("input[name=average][value=micro]", force=True)
    lines = "() => [...document.querySelectorAll('#curves .scatterlayer .trace .js-line')].length"
    before = found.page.evaluate(lines)
    found.whole()

    gate.open.set()
    played.join(60)
    found.until(f"() => ({SAYS})().startsWith('Finished')", 60)
    found.until("() => document.querySelector('h1').innerText.includes('Joining')")
    assert found.page.evaluate(lines) > before, "the curve of the third method came by itself"
    kept = "() => window.untouched === document.getElementById('curves') && document.getElementById('every-run').open"
    assert found.page.evaluate(kept), "figures are changed in place, and what was opened stays open"
    assert found.page.evaluate("() => document.querySelectorAll('details[open] pre').length") == 1
    assert found.page.evaluate("() => document.querySelector('input[name=average]:checked').value") == "micro"
    assert found.page.evaluate("() => document.querySelector('[data-view] output').textContent") == "round 4"
    found.look_everywhere()


def test_the_page_of_a_finished_run_and_a_lost_connection(
    tmp_path: Path, watched: Callable[[Path], Server], seen: Callable[[str], Any]
) -> None:
    fk.run(fk.Experiment(fk.methods.fedavg(count=3), DATA, rounds=3, evaluate_every=1), tmp_path / "run")
    before = listed(tmp_path)
    server = watched(tmp_path / "run")
    found = seen(server.address)
    found.until(f"() => ({SAYS})().startsWith('Finished')")
    found.until("() => document.querySelectorAll('#curves .main-svg').length > 0")
    found.whole()
    assert listed(tmp_path) == before, "watching writes nothing"
    server.finish("This page no longer changes.")
    found.until(f"() => ({SAYS})().includes('no longer changes')", 60)
