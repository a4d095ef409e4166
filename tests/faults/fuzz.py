"""Plays odd commands on odd files, drawn by Hypothesis from a seed, and names every one that ends in a bad way.

    python tests/faults/fuzz.py --cases 5000 --seed 14 --log docs/results/reliability/fuzz.jsonl    plays, or goes on
    python tests/faults/fuzz.py --seed 14 --only 1234                                               shows one case

A case is good if it ends by itself with exit code 0, with one sentence and exit code 2, or with one sentence and exit
code 1 where that is documented (a damaged run that was looked at, a run that cannot go on). It may take long if it says
what it does, and then ends when it is asked to. No traceback, nothing written outside its folder, no half file left, no
code run that nobody asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import forked
from forked import Ended
from fuzz_cases import Case, cases
from fuzz_files import RAN
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisWarning
from logs import Log

SEED = 14
BLOCK = 100  # cases that are drawn together, from one seed
KEPT = "mine, and nobody else's\n"
HALF = (".part", ".tmp")
WATCHED = 2.0  # seconds for a page, which is served until Ctrl-C
MORE = 3  # times as many seconds where a command starts processes, which import all of fedkin: on a busy machine slowly
SHOWN = 200  # letters of a case's words in the log


def drawn(seed_of_block: int, whole: Path, number: int = BLOCK) -> list[Case]:
    """Return the cases of one block."""
    found: dict[tuple[str, ...], Case] = {}  # by their words: Hypothesis likes to draw the same again
    quiet = settings(
        max_examples=4 * number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @seed(seed_of_block)
    @quiet
    @given(cases(whole))
    def collect(case: Case) -> None:
        found.setdefault((*case.words, case.run), case)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)
        collect()
    return list(found.values())[:number]


def play(case: Case, whole: Path, seconds: float = forked.SECONDS) -> tuple[Ended, list[str]]:
    """Play a case in a new folder; returns how it ended, and what is bad about it."""
    with tempfile.TemporaryDirectory(prefix="case-", dir=whole.parent) as root:
        place = Path(root)
        outside = place / "outside"
        outside.mkdir()
        (outside / "kept.csv").write_text(KEPT)
        (place / "home").mkdir()
        case.make(place / "here", whole)
        before = set(names(place / "here"))
        os.environ |= {"HOME": str(place / "home"), "TMPDIR": root}
        seconds = WATCHED if case.words[0] == "watch" else seconds * (MORE if "--jobs" in case.words else 1)
        ended = forked.played(case.words, place / "here", seconds)
        bad = faults(case, ended, place)
        if ended.code == 2 and ended.err.startswith("fedkin: ") and not ended.out:
            new = sorted(set(names(place / "here")) - before)
            bad += (
                [f"refused, and left {new[0]}"] if new and "__pycache__" not in new[0] and ".lock" not in new[0] else []
            )
    return ended, bad


def names(folder: Path) -> Iterator[str]:
    """Yield everything in a folder."""
    for above, folders, files in os.walk(folder):
        yield from (os.path.relpath(os.path.join(above, name), folder) for name in (*folders, *files))


def faults(case: Case, ended: Ended, place: Path) -> list[str]:
    """Return what is bad about how a case ended; empty: nothing."""
    sentences = [line for line in ended.err.splitlines() if line.startswith("fedkin: ")]
    silent = not (ended.out + ended.err).strip()
    bad = {
        "traceback": "Traceback (most recent call last)" in ended.err + ended.out,
        "what should not be": "that should not" in ended.err,
        f"crash by signal {-ended.code}": ended.code < 0 and not ended.late,
        "hang": ended.late and (ended.code < 0 or silent),
        f"exit code {ended.code}": ended.code > 2 and not ended.late,
        "no sentence": ended.code in (1, 2) and not sentences and not said_by_check(case, ended),
        "several sentences": len(sentences) > 1,
        "a warning": any(f"{kind}Warning:" in ended.err for kind in ("Runtime", "User", "Future", "Deprecation")),
        "a very long sentence": any(len(line) > 1200 for line in sentences),
        "letters that do harm": any(not line.isprintable() for line in sentences),
        "code that nobody asked for": (place / RAN).exists() and "--trust" not in case.words,
        "a changed file outside": (place / "outside/kept.csv").read_text() != KEPT,
        "a half file": any(name.endswith(HALF) for name in names(place / "here")) and not ended.late,
    }
    there = {path.name for path in place.iterdir()} - {"here", "home", "outside", "out", "err", "table.csv", RAN}
    other = [*there, *(path.name for path in place.joinpath("outside").iterdir() if path.name != "kept.csv")]
    late = ("tmp", "pymp-", "wandb-", "torchinductor_")  # folders of processes that end later
    other = [name for name in other if not name.startswith(late)]
    return [name for name, true in bad.items() if true] + [f"{name} outside" for name in other]


def said_by_check(case: Case, ended: Ended) -> bool:
    """Whether this is `fedkin check`, which says by exit code 1 that something is damaged, or a help page."""
    return ("check" in case.words[:1] and "damaged" in ended.out) or "Usage:" in ended.out + ended.err


def outcome(ended: Ended, bad: list[str]) -> str:
    """Return how a case ended, in a word."""
    return "bad" if bad else "long" if ended.late else {0: "done", 1: "said", 2: "refused"}.get(ended.code, "bad")


def prepared(base: Path) -> Path:
    """Return the folder with whole files and whole runs, which cases take copies of."""
    whole = base / "whole"
    whole.mkdir()
    os.environ |= {"FEDKIN_CACHE": str(base / "cache"), "FEDKIN_DATA": ""}
    (base / "work").mkdir()
    from fuzz_whole import make_whole

    ended = forked.ended(forked.forked(lambda: make_whole(whole), base / "work"), base / "work", 300.0)
    if ended.code:
        sys.exit(f"The files that cases take copies of could not be made:\n{ended.err}")
    return whole


def line_of(number: int, case: Case, ended: Ended, bad: list[str]) -> dict[str, Any]:
    """Return what the log has of a case."""
    words = ascii(" ".join(case.words))[1:-1]
    harms = " ".join(harm.how for harm in case.harms)
    said = [line for line in ended.err.splitlines() if line.startswith("fedkin: ")]
    return {
        "case": number,
        "words": words if len(words) <= SHOWN else f"{words[:SHOWN]}...",
        **({"run": f"{case.run} {harms}".strip()} if case.run else {}),
        "outcome": outcome(ended, bad),
        "seconds": round(ended.seconds, 2),
        "megabytes": ended.megabytes,
        **({"bad": bad} if bad else {}),
        **({"said": ascii(said[-1])[1:SHOWN]} if said else {}),
    }


def show(case: Case, whole: Path) -> None:
    """Play one case and print everything about it."""
    print("\n".join(f"{name}: {str(value)[:3000]}" for name, value in asdict(case).items()))
    ended, bad = play(Case((*case.words, "--debug"), case.files, case.run, case.harms), whole)
    print(f"exit code {ended.code}, {ended.seconds:.1f} s, {ended.megabytes} MB, late: {ended.late}, bad: {bad}")
    print(ended.out[-3000:], ended.err[-6000:], sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Play odd commands, and name every one that ends in a bad way.")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="cases before this one are left out")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--log", type=Path, help="a line for each case; cases that it has are not played again")
    parser.add_argument("--only", type=int, nargs="+", help="show these cases")
    asked = parser.parse_args()
    log = Log(None if asked.only else asked.log, {"seed": asked.seed, "block": BLOCK})
    done = {line["case"] for line in log.lines}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as base:
        whole = prepared(Path(base))
        wanted = sorted(set(asked.only or range(asked.first, asked.cases)) - done)
        for block in sorted({number // BLOCK for number in wanted}):
            found = drawn(asked.seed * 1_000_003 + block, whole)
            for number in (number for number in wanted if number // BLOCK == block):
                case = found[number % BLOCK]
                if asked.only:
                    show(case, whole)
                    continue
                log.add(line_of(number, case, *play(case, whole)))
                if log.lines[-1]["outcome"] == "bad":
                    print(json.dumps(log.lines[-1]), flush=True)
    counts = Counter(line["outcome"] for line in log.lines)
    print(f"{len(log.lines)} cases of seed {asked.seed}: {dict(sorted(counts.items()))}")
    return int(counts["bad"] > 0)


if __name__ == "__main__":
    sys.exit(main())
