"""Kills commands at random moments and goes on with them: what comes out must be what an undisturbed command gives.

    python tests/faults/kills.py --kills 200 --seed 14 --log docs/results/reliability/kills.jsonl    plays, or goes on

A trial plays a command, ends it by a signal (SIGKILL unless another is asked for) when a random round is recorded or
after a random share of its time, perhaps ends the resumed command too, lets it go on to the end, and compares models,
records and summaries byte by byte. A signal that came too late does not count: the trial is played again.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked
from forked import Ended
from logs import Log
from small import same_runs

from fedkin.methods import METHODS

SEED, ROUNDS, TRIES = 14, 12, 20
DATA = ("--data", "digits", "--clients", "6", "--samples", "15", "--rounds", str(ROUNDS), "--evaluate-every", "2")
DATA += ("--irrelevant", "flip:0.2")  # the oracle asks who is irrelevant
DEEP = ("pfedsim", "fedper", "lgfedavg", "fedrep", "fedbabu")  # methods that need a network of several layers
WANTED = {"sfedavg": ("--server-validation", "60"), **dict.fromkeys(DEEP, ("--model", "dnn:10"))}
OTHERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ENDS = {signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGINT: 128 + signal.SIGINT}  # exit codes of commands that save
WHOM = ("command", "worker", "all")  # of two processes side by side


@dataclass(frozen=True)
class Trial:
    """What is played and how it is disturbed; all of it follows from the number of the trial."""

    method: str
    engine: str
    jobs: int
    in_files: bool
    often: bool
    kills: tuple[tuple[signal.Signals, float, str], ...]  # the signal, when (from 0 to 1), and whom

    @property
    def words(self) -> tuple[str, ...]:
        asked = ("compare" if self.jobs > 1 else "run", self.method, *DATA, "--threads", "1", "--engine", self.engine)
        files = ("--memory", "0", *(("--chunk", "2") if self.engine == "stacked" else ())) if self.in_files else ()
        return (*asked, *WANTED.get(self.method, ()), *files, *(("--jobs", "2") if self.jobs > 1 else ()))


def trial(seed: int, number: int, others: bool) -> Trial:
    """Draw a trial: every eighth has two processes, every fourth its private models in files."""
    draw = random.Random(f"{seed} {number} {others}")
    jobs = 2 if number % 8 == 7 else 1
    first = OTHERS[number % len(OTHERS)] if others else signal.SIGKILL
    again = draw.choice([(), (), (signal.SIGKILL,)])
    return Trial(
        method=draw.choice([name for name in METHODS if name != "pooled" or jobs == 1]),
        engine=draw.choice(["stacked", "plain"]),
        jobs=jobs,
        in_files=number % 4 == 1,
        often=draw.random() < 0.7,
        kills=tuple((one, draw.random(), draw.choice(WHOM)) for one in (first, *again)),
    )


@dataclass
class Suite:
    """Plays trials in a folder, and keeps what undisturbed commands gave."""

    base: Path
    whole: dict[tuple[str, ...], tuple[Path, float]] = field(default_factory=dict)

    def undisturbed(self, words: tuple[str, ...]) -> tuple[Path, float]:
        """Return what a command gives, and how many seconds it takes."""
        if words not in self.whole:
            place = self.base / f"whole-{len(self.whole)}"
            place.mkdir()
            ended = forked.played((*words, "--out", "here"), place, 300.0)
            if ended.code:
                raise AssertionError(f"{words} fails undisturbed: {ended.err}")
            self.whole[words] = place / "here", ended.seconds
        return self.whole[words]

    def play(self, one: Trial) -> dict[str, Any]:
        """Play a trial; returns what happened."""
        whole, seconds = self.undisturbed(one.words)
        place = self.base / "disturbed"
        missed, hits = 0, []
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for sent, moment, whom in one.kills:
            for tries in range(TRIES):
                at, ended = self.disturb(one, place, sent, moment * 0.8**tries, whom, seconds)
                if ended.code != 0:
                    hits.append([sent.name, at, ended.code])
                    break
                missed += 1
                shutil.rmtree(place / "here")  # it was over before the signal came: once more, earlier
        bad = [f"Traceback: {ended.err[-2000:]}"] if hits and "Traceback" in ended.err else []
        begun = (place / "here/plan.json").exists()
        last = forked.played(("run", "--resume", "here") if begun else (*one.words, "--out", "here"), place, 300.0)
        bad += [f"exit code {last.code}: {last.err[-2000:]}"] if last.code else different(whole, place / "here")
        about = {"method": one.method, "engine": one.engine, "jobs": one.jobs, "in_files": one.in_files}
        return about | {
            "often": one.often,
            "hits": hits,
            "missed": missed,
            "same": not bad,
            **({"bad": bad} if bad else {}),
        }

    def disturb(
        self, one: Trial, place: Path, sent: signal.Signals, moment: float, whom: str, seconds: float
    ) -> tuple[int, Ended]:
        """Play the command, or go on with it, until the moment comes; returns the round of that, and how it ended."""
        begun = (place / "here/plan.json").exists()
        words = ("run", "--resume", "here") if begun else (*one.words, "--out", "here")
        number = forked.started(words, place, often=one.often)
        began, lines = time.monotonic(), recorded(place)
        wanted = lines + int(moment * 2 * (ROUNDS - lines)) if moment < 0.5 else ROUNDS + 1
        late = seconds * (moment - 0.5) * 2.5 if moment >= 0.5 else 60.0
        while recorded(place) < wanted and time.monotonic() - began < late and not over(number):
            time.sleep(0.001)
        time.sleep(random.Random(moment).uniform(0, 0.02) if not over(number) else 0)
        at = recorded(place)
        hit(number, sent, whom if one.jobs > 1 else "command")
        if one.jobs > 1 and whom == "command":
            left_alone(number)
        return at, forked.ended(number, place, 120.0)


def recorded(place: Path) -> int:
    """Return how many rounds the first run has on the disk."""
    every = list(place.glob("here/*/seed-0/rounds.jsonl"))
    found = [path for path in every if path.parent.parent.name != "local"] or every
    try:
        return max((path.read_bytes().count(b"\n") for path in found), default=0)
    except FileNotFoundError:  # the run has just been begun anew
        return 0


def over(number: int) -> bool:
    """Whether a process has ended; it is not waited for."""
    return os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def hit(number: int, sent: signal.Signals, whom: str) -> None:
    """Send a signal to a command, to one of the processes that it started, or to all of them."""
    if whom == "all":
        os.killpg(number, sent)
        return
    workers = children(number) if whom == "worker" else []
    os.kill(workers[0] if workers else number, sent if not workers else signal.SIGKILL)


def children(number: int) -> list[int]:
    """Return the processes that play runs for a command."""
    found = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    return [int(one) for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def left_alone(number: int) -> None:
    """Wait until the processes of a command that was killed have seen it, and ended."""
    end = time.monotonic() + 30
    while any(group == number and one != number for one, group in groups()):
        assert time.monotonic() < end, "a killed command left processes behind"
        time.sleep(0.05)


def groups() -> list[tuple[int, int]]:
    """Return every process, and the group it belongs to."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has ended
            continue
        found += [(int(path.parent.name), int(group))] if state != "Z" else []
    return found


def different(whole: Path, other: Path) -> list[str]:
    """Return in what the runs of two folders differ; empty: in nothing."""
    runs = sorted(path.parent.relative_to(whole) for path in whole.glob("*/seed-*/summary.json"))
    bad = [] if runs else ["no runs"]
    for run in runs:
        try:
            same_runs(whole / run, other / run)
        except AssertionError as error:
            bad.append(f"{run}: {str(error)[:300]}")
    return bad + [str(path) for path in other.rglob(".*.part")]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kill commands, go on with them, and compare.")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--first", type=int, default=0, help="trials before this one are left out")
    parser.add_argument("--others", type=int, default=6, help="trials that are ended by other signals")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--log", type=Path)
    asked = parser.parse_args(words)
    log = Log(asked.log, {"seed": asked.seed})
    with tempfile.TemporaryDirectory(prefix="kills-") as base:
        os.environ["FEDKIN_CACHE"] = f"{base}/cache"
        suite = Suite(Path(base))
        for others, number in [(False, k) for k in range(asked.first, asked.kills)] + [
            (True, k) for k in range(asked.others)
        ]:
            if not log.has(trial=number, others=others):
                one = suite.play(trial(asked.seed, number, others))
                log.add({"trial": number, "others": others} | one)
                if not one["same"]:
                    print(log.lines[-1], flush=True)
    good = sum(line["same"] for line in log.lines)
    sent = sum(len(line["hits"]) for line in log.lines)
    print(f"{len(log.lines)} trials with {sent} signals: {good} as undisturbed, {len(log.lines) - good} not")
    return int(good < len(log.lines))


if __name__ == "__main__":
    sys.exit(main())
