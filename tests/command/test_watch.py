"""fedkin watch and --watch: an address before the run, the page while it is played, and a clean end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fedkin.command import play

pytest.importorskip("plotly")

QUICK = ["--data", "synthetic", "--clients", "6", "--rounds", "4", "--evaluate-every", "1"]


def state(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{address}state.json", timeout=10) as answer:
        return dict(json.loads(answer.read()))


def test_a_page_beside_a_comparison_shows_it_until_it_ends(
    fedkin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address is printed before anything is played; the last answer names the report."""
    seen: list[dict[str, Any]] = []
    address: list[str] = []
    readers: list[threading.Thread] = []

    def reading(plan: Any, *args: Any, carry_out: Any = play.carry_out, **options: Any) -> Any:
        found = re.search(r"Watch it: (http://127\.0\.0\.1:\d+/)", capsys.readouterr().err)
        assert found is not None
        address.append(found[1])
        seen.append(state(address[0]))
        done = carry_out(plan, *args, **options)
        seen.append(state(address[0]))
        readers.append(threading.Thread(target=follow))
        readers[0].start()
        return done

    def follow() -> None:
        while not seen[-1]["last"]:
            seen.append(state(address[0]))

    monkeypatch.setattr(play, "carry_out", reading)
    outcome = fedkin("compare", "fedavg", *QUICK, "--out", "here", "--watch")
    assert outcome.code == 0, outcome.err
    readers[0].join(30)
    assert seen[0]["state"] == "waiting"
    assert seen[-1]["state"] == "finished"
    assert seen[-1]["last"]
    assert any("the report is here/report.html" in str(piece) for piece in seen[-1]["pieces"].values())
    with pytest.raises(OSError):
        state(address[0])


def test_what_cannot_be_watched_is_one_sentence(fedkin, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat").write_text("x")
    for words, sentence in {
        ("photos",): "photos is not a run of fedkin",
        ("photos/cat",): "is a file",
        (".", "--port", "70000"): "--port is a number",
    }.items():
        outcome = fedkin("watch", *words)
        assert outcome.code == 2
        assert sentence in outcome.err


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fedkin.command.cli", "watch", str(tmp_path / "later"), "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=os.environ, restore_signals=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "which is not there yet" in line
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found is not None
        assert state(found[0])["state"] == "waiting"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(20) == 0
    assert "Traceback" not in rest
    assert "No longer watching" in rest
    assert not (tmp_path / "later").exists()
