"""Plays long comparisons of many clients: memory must not grow, and the page of it all must stay small and quick.

    python tests/faults/long_run.py --rounds 3000 --clients 200 --log docs/results/reliability/long.jsonl

Memory is what the process has of the machine's, looked at twenty times on the way; how fast it grows is measured from a
third of the way on, when everything has been used once. The page is opened in Chromium where that is installed.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import forked
import numpy as np
import torch
from logs import Log

import fedkin as fk

LOOKS = 20
GROWN, PAGE, OPENED = 10.0, 10.0, 2.0  # at most: megabytes in all rounds, megabytes of the page, seconds to open it
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
DRAWN = "() => !!document.querySelector('.js-plotly-plot .main-svg')"
LOADED = "() => performance.timing.loadEventEnd - performance.timing.navigationStart"


class Looks(fk.Callback):
    """Notes how much memory the process has, by method and round."""

    def __init__(self, rounds: int) -> None:
        self.apart = max(rounds // LOOKS, 1)
        self.seen: dict[str, list[tuple[int, float]]] = {}

    def recorded(self, record: fk.Record) -> bool:
        if record.round % self.apart == 0:
            self.seen.setdefault(record.method, []).append((record.round, megabytes()))
        return True


def megabytes() -> float:
    """Return how much of the machine's memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def growth(seen: list[tuple[int, float]]) -> float:
    """Return by how many megabytes memory grows in a thousand rounds, by a line through all but the first third."""
    rounds, memory = np.array(seen[len(seen) // 3 :]).T
    return float(np.polyfit(rounds, memory, 1)[0] * 1000)


def play(rounds: int, clients: int, folder: Path) -> int:
    """Play the comparison, write its page, and what was seen beside it."""
    torch.set_num_threads(1)
    looks = Looks(rounds)
    asked: dict[str, Any] = {"rounds": rounds, "evaluate_every": 10, "threads": 1}
    data = fk.Data("synthetic", clients=clients, samples=20)
    method = fk.methods.fedmcsa(count=10, steps=2)
    fk.compare([method], data, folder=folder, callbacks=[looks], **asked).report()
    folder.with_name("seen.json").write_text(json.dumps(looks.seen))
    return 0


def opened(page: Path) -> float | None:
    """Return how many seconds Chromium takes until a page is loaded and its first figure is drawn; None: there is no
    Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(SWITCHES))
        found = []
        for _ in range(3):
            seen = browser.new_page(viewport={"width": 1280, "height": 900})
            began = time.monotonic()
            seen.goto(page.as_uri())
            while not seen.evaluate(DRAWN):
                time.sleep(0.01)
            found.append(max(time.monotonic() - began, seen.evaluate(LOADED) / 1000))
            seen.close()
        browser.close()
    return float(np.median(found))


def measured(rounds: int, clients: int, look: bool = True) -> dict[str, Any]:
    """Return what a long comparison took."""
    with tempfile.TemporaryDirectory(prefix="long-") as base:
        place = Path(base) / "here"
        place.mkdir()
        ended = forked.ended(forked.forked(lambda: play(rounds, clients, place / "run"), place), place, 3600.0)
        if ended.code:
            raise AssertionError(ended.err)
        seen = json.loads((place / "seen.json").read_text())
        page = place / "run/report.html"
        return {
            "rounds": rounds,
            "clients": clients,
            "seconds": round(ended.seconds, 1),
            "peak_megabytes": ended.megabytes,
            "growth": {name: round(growth(one), 2) for name, one in seen.items()},
            "seen": {name: [[at, round(size, 1)] for at, size in one] for name, one in seen.items()},
            "page_megabytes": round(page.stat().st_size / 1e6, 2),
            "opened_seconds": opened(page) if look else None,
        }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Play a long comparison of many clients, and measure what it takes.")
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--unseen", action="store_true", help="do not open the page in Chromium")
    asked = parser.parse_args(words)
    log = Log(asked.log, {})
    if not log.has(rounds=asked.rounds, clients=asked.clients):
        log.add(measured(asked.rounds, asked.clients, not asked.unseen))
    for line in log.lines:
        print(json.dumps({name: value for name, value in line.items() if name != "seen"}))
    return int(not all(small(line) for line in log.lines))


def small(line: dict[str, Any]) -> bool:
    """Whether a comparison stayed within what it may take."""
    grown = max(line["growth"].values()) * line["rounds"] / 1000
    return grown < GROWN and line["page_megabytes"] < PAGE and (line["opened_seconds"] or 0.0) < OPENED


if __name__ == "__main__":
    sys.exit(main())
