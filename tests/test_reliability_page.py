"""docs/reliability.md says what the committed logs say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS))
import reliability_page  # noqa: E402

PLACE = f"before\n{reliability_page.BEGIN}\nold\n{reliability_page.END}\nafter\n"


def log(folder: Path, name: str, *lines: dict) -> None:
    about = {"date": "2026-01-01", "seed": 3, "torch": "2"}
    (folder / name).write_text("\n".join(json.dumps(line) for line in (about, *lines)) + "\n")


def test_the_page_is_that_of_the_committed_logs() -> None:
    page = (DOCS / "reliability.md").read_text()
    assert reliability_page.made(reliability_page.RESULTS, page) == page


def test_nothing_bad_was_found() -> None:
    for path in reliability_page.RESULTS.glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        assert not [line for line in lines if line.get("bad") or line.get("same") is False], path.name


def test_what_is_bad_is_counted(tmp_path: Path) -> None:
    case = {"case": 0, "words": "run", "seconds": 1.5, "megabytes": 300}
    log(tmp_path, "fuzz.jsonl", case | {"outcome": "bad", "bad": ["hang"]}, case | {"outcome": "done"})
    log(tmp_path, "kills.jsonl", {"others": False, "hits": [1, 2], "same": False, "method": "m", "engine": "plain"})
    text = reliability_page.made(tmp_path, PLACE)
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| **bad**: traceback, crash, hang, written outside, ... | 1 |" in text
    assert "| SIGKILL | 1 | 2 | 0 |" in text
    assert "seed 3" in text
    assert "old" not in text


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no place for results"):
        reliability_page.made(tmp_path, "# Reliability\n")
