"""Plays every command that writes on a disk with little room: it must say so, and be as ever once there is room.

    python tests/faults/full_disk.py --log docs/results/reliability/full-disk.jsonl

The disk is a small file system in memory that only the processes of a case see. Where the system does not allow that,
no file may grow above the room that there is, which ends a write at the same places. After the sentence room is made,
and the command is played again, with --resume where it can go on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
from forked import Ended
from fuzz_whole import make_whole
from kills import different
from logs import Log

DISK = 64 * 2**20  # bytes of the disk
ROOMS = (0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)  # kilobytes that are left of it
FULL = ("No space left on device", "File too large", "disk is full")
NEW_USER, NEW_MOUNTS, PRIVATE = 0x10000000, 0x00020000, 0x40000 | 0x4000  # of the system
DATA = ("--data", "digits", "--clients", "5", "--samples", "15", "--evaluate-every", "1", "--threads", "1")
RUN = ("run", "fedmcsa", *DATA, "--rounds", "4")


@dataclass(frozen=True)
class Writer:
    """A command that writes to disk/, how it goes on (None: it is played again), and the runs it gives, if any."""

    words: tuple[str, ...]
    again: tuple[str, ...] | None = None
    gives: str = ""


WRITERS = {
    "run": Writer((*RUN, "--out", "disk/here"), ("run", "--resume", "disk/here"), "disk/here"),
    "models in files": Writer(
        (*RUN, "--memory", "0", "--chunk", "2", "--out", "disk/here"), ("run", "--resume", "disk/here"), "disk/here"
    ),
    "compare on two cores": Writer(
        ("compare", "fedavg", *DATA, "--rounds", "3", "--jobs", "2", "--out", "disk/here"),
        ("compare", "--resume", "disk/here"),
        "disk/here",
    ),
    "tables": Writer(("report", "real", "--export", "disk/t.csv", "--export-clients", "disk/c.md")),
    "tune": Writer(
        ("tune", "fedavg", *DATA, "--rounds", "2", "--trials", "2", "--out", "disk/here"),
        ("tune", "--resume", "disk/here"),
    ),
    "what-if": Writer(("what-if", "disk/whole", "--without", "north")),
    "report": Writer(("report", "disk/whole")),
    "export": Writer(("export", "disk/whole", "--client", "north", "-o", "disk/model")),
    "predict": Writer(("predict", "disk/whole", "table.csv", "-o", "disk/p.csv")),
    "save": Writer((*RUN, "--save", "disk/saved.toml")),
    "picture": Writer(("data", "show", "digits", "--clients", "5", "--out", "disk/p.svg")),
    "federation": Writer(("federation", "init", "disk/study", "--sites", "a,b")),
}


def mounted(folder: Path) -> bool:
    """Put a small file system in memory at this folder, for this process and those it starts; False: not allowed."""
    system = ctypes.CDLL(None, use_errno=True)
    flags = NEW_MOUNTS if os.getuid() == 0 else NEW_MOUNTS | NEW_USER
    if system.unshare(flags):
        return False
    system.mount(None, b"/", None, PRIVATE, None)  # nobody else sees what is mounted now
    return system.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, f"size={DISK}".encode()) == 0


def fill(disk: Path, room: int) -> None:
    """Leave so many bytes of room on a disk."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(disk / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free - room, 1))


def play(name: str, room: int, place: Path, whole: Path) -> dict[str, Any]:
    """Play one writer with so many bytes of room; returns what happened. It is played in a process of its own."""
    writer, disk = WRITERS[name], place / "disk"
    disk.mkdir()
    small = mounted(disk)
    for folder in (place, place.parent):  # a run's plan says ../table.csv
        shutil.copy(whole / "table.csv", folder)
    for copy in (disk / "whole", place / "real"):
        shutil.copytree(whole / "runs/whole", copy)
    if small:
        fill(disk, room)
        first = forked.played(writer.words, place, 120.0)
        (disk / "filler").unlink()
    else:
        first = forked.ended(forked.forked(lambda: limited(writer.words, room), place), place, 120.0)
    bad = [] if first.code == 0 else unclear(first)
    last = first
    if first.code:
        begun = writer.again is not None and (place / writer.again[-1]).joinpath(NOTED[writer.words[0]]).exists()
        last = forked.played(writer.again if begun and writer.again else writer.words, place, 120.0)
        bad += [f"then exit code {last.code}: {last.err[-500:]}"] if last.code else []
    if writer.gives and not last.code:
        bad += different(whole / "expected" / name, place / writer.gives)
    how = "disk" if small else "limit"
    return {"writer": name, "room": room // 1024, "how": how, "refused": first.code != 0, "bad": bad}


NOTED = {"run": "plan.json", "compare": "plan.json", "tune": "tuning.json"}  # with which a folder can be gone on with


def limited(words: Sequence[str], room: int) -> int:
    """Play a command that may make no file larger than this."""
    forked.limit(resource.RLIMIT_FSIZE, max(room, 1))
    return forked.command(words, often=False)


def unclear(ended: Ended) -> list[str]:
    """Return what is wrong with how a command says that the disk is full."""
    said = [line for line in ended.err.splitlines() if line.startswith("fedkin: ")]
    good = ended.code == 2 and len(said) == 1 and any(word in said[0] for word in FULL)
    return [] if good and "Traceback" not in ended.err else [f"exit code {ended.code}: {ended.err[-700:]}"]


def one(name: str, room: int, base: Path) -> dict[str, Any]:
    """Play one writer in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="disk-", dir=base) as root:
        place = Path(root) / "here"
        place.mkdir()

        def work() -> int:
            place.with_name("found.json").write_text(json.dumps(play(name, room, place, base / "whole")))
            return 0

        os.environ["TMPDIR"] = root
        ended = forked.ended(forked.forked(work, place), place, 400.0)
        found = place.with_name("found.json")
        if ended.code or not found.exists():
            return {"writer": name, "room": room // 1024, "bad": [f"the suite itself: {ended.err[-2000:]}"]}
        return dict(json.loads(found.read_text()))


def prepare(base: Path) -> None:
    """Make the runs that commands read, and what undisturbed commands give."""
    whole = base / "whole"
    whole.mkdir()
    os.environ["FEDKIN_CACHE"] = str(base / "cache")
    if forked.ended(forked.forked(lambda: make_whole(whole), whole), whole, 300.0).code:
        sys.exit("The runs that commands read could not be made.")
    for name, writer in WRITERS.items():
        if writer.gives:
            words = [str(whole / "expected" / name) if word == writer.gives else word for word in writer.words]
            ended = forked.played(words, whole, 300.0)
            assert ended.code == 0, ended.err


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Play every command that writes on a disk with little room.")
    parser.add_argument("--rooms", type=int, nargs="+", default=ROOMS, help="kilobytes that are left")
    parser.add_argument("--writers", nargs="+", default=list(WRITERS))
    parser.add_argument("--log", type=Path)
    asked = parser.parse_args(words)
    log = Log(asked.log, {})
    with tempfile.TemporaryDirectory(prefix="full-") as base:
        prepare(Path(base))
        for name in asked.writers:
            for room in asked.rooms:
                if not log.has(writer=name, room=room):
                    log.add(one(name, room * 1024, Path(base)))
                    if log.lines[-1]["bad"]:
                        print(json.dumps(log.lines[-1]), flush=True)
    bad = sum(bool(line["bad"]) for line in log.lines)
    print(f"{len(log.lines)} cases, {sum(line.get('refused', False) for line in log.lines)} of them refused, {bad} bad")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
