"""Writes what the suites of faults found into docs/reliability.md: `make reliability`.

The logs lie in docs/results/reliability: a first line about the suite, and a line for each case. The page is written by
people but for what stands between two marks.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from speed_page import BEGIN, END, table

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results" / "reliability", HERE / "reliability.md"
SOURCE = "Made from [docs/results/reliability](results/reliability) by `make reliability`; do not edit by hand."
Line = dict[str, Any]


def main() -> None:
    """Write the page."""
    PAGE.write_text(made(RESULTS, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE} is made from the committed logs.")


def made(results: Path, page: str) -> str:
    """Return the text of the page."""
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        sys.exit(f"The page has no place for results: a line {BEGIN} and a line {END}.")
    sections: dict[str, Callable[[list[Line]], str]] = {
        "fuzz": fuzzed,
        "kills": killed,
        "damage": damaged,
        "full-disk": full,
        "long": long,
    }
    texts = []
    for name, section in sections.items():
        path = results / f"{name}.jsonl"
        if path.exists():
            about, *lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
            seed = f", seed {about['seed']}" if "seed" in about else ""
            played = f"Played on {about['date']}{seed}, torch {about['torch']}: [log](results/reliability/{path.name})."
            texts.append(f"{section(lines)}\n{played}\n")
    return f"{before}{BEGIN}\n{SOURCE}\n\n" + "\n".join(texts) + END + after


def count(lines: list[Line], **what: Any) -> str:
    """Return how many lines say this."""
    return f"{sum(all(line.get(name) == value for name, value in what.items()) for line in lines):,}"


def fuzzed(lines: list[Line]) -> str:
    """How odd commands ended."""
    words = {
        "refused": "refused by one sentence, exit code 2",
        "done": "done, exit code 0",
        "said": "one sentence and exit code 1, as for a damaged run that was looked at",
        "long": "served or played on, said so, and ended at Ctrl-C",
        "bad": "**bad**: traceback, crash, hang, written outside, ...",
    }
    rows = [[text, count(lines, outcome=outcome)] for outcome, text in words.items()]
    slowest = max((line["seconds"] for line in lines if line["outcome"] != "long"), default=0.0)
    largest = max((line["megabytes"] for line in lines), default=0)
    took = f"The slowest took {slowest:.1f} s, and none more than {largest:,} MB.\n"
    return f"## {len(lines):,} odd commands and files\n\n{table(['ended', 'cases'], rows)}\n{took}"


def killed(lines: list[Line]) -> str:
    """What became of commands that were ended by signals."""
    groups = {
        "SIGKILL": [line for line in lines if not line["others"]],
        "SIGTERM, SIGINT, SIGHUP first": [line for line in lines if line["others"]],
    }
    rows = [
        [name, f"{len(found):,}", f"{sum(len(line['hits']) for line in found):,}", count(found, same=True)]
        for name, found in groups.items()
        if found
    ]
    kinds = [
        f"{len({line['method'] for line in lines})} methods",
        *(f"{count(lines, engine=name)} on the {name} engine" for name in ("stacked", "plain")),
        f"{count(lines, jobs=2)} with two processes",
        f"{count(lines, in_files=True)} with private models in files",
    ]
    text = table(["ended by", "trials", "signals that hit", "as undisturbed, byte by byte"], rows)
    return f"## Kills\n\n{text}\nTrials were of {', '.join(kinds)}.\n"


def damaged(lines: list[Line]) -> str:
    """What readers made of damaged files."""
    outcomes = ("right", "refused", "unfinished", "unseen", "wrong")
    rows = []
    for reader in dict.fromkeys(line["reader"] for line in lines):
        found = Counter(line["outcome"] for line in lines if line["reader"] == reader)
        rows.append([reader, *(f"{found[name]:,}" for name in outcomes)])
    bad = sum("Traceback" in line["bad"] for line in lines)
    words = (
        f"{bad} tracebacks. *Unfinished*: without summary.json a run counts as one that is not finished, and readers "
        "say so. *Unseen*: `check` has no check sum of that file.\n"
    )
    return f"## {len(lines):,} reads of damaged files\n\n{table(['reader', *outcomes], rows)}\n{words}"


def full(lines: list[Line]) -> str:
    """What commands did on a full disk."""
    rows = []
    for writer in dict.fromkeys(line["writer"] for line in lines):
        found = [line for line in lines if line["writer"] == writer]
        good = sum(not line["bad"] for line in found)
        rows.append([writer, str(len(found)), count(found, refused=True), str(good)])
    titles = ["command", "amounts of room", "refused", "clear, and exact once there was room"]
    return f"## A full disk\n\n{table(titles, rows)}"


def long(lines: list[Line]) -> str:
    """What long comparisons took."""
    rows = []
    for line in lines:
        opened = "no Chromium" if line["opened_seconds"] is None else f"{line['opened_seconds']:.2f}"
        grown = ", ".join(f"{name} {value:+.2f}" for name, value in line["growth"].items())
        size = f"{line['rounds']:,} x {line['clients']:,}"
        rows.append([size, str(line["peak_megabytes"]), grown, f"{line['page_megabytes']:.1f}", opened])
    titles = ["rounds x clients", "peak MB", "growth, MB in 1,000 rounds", "page, MB", "opened in, s"]
    return f"## Long runs\n\n{table(titles, rows)}"


if __name__ == "__main__":
    main()
