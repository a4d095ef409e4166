"""Damages every file of a run in every way and lets every reader read it: what comes out is right, or is refused.

    python tests/faults/damage.py --log docs/results/reliability/damage.jsonl    plays all, or goes on
    python tests/faults/damage.py --share 0.1                                    plays every tenth case

There are three folders: a comparison that is done, the same one stopped on the way, and the runs of a preset. A reader
is a command or, for `load` and `comparison`, Python. What it gives is compared with what it gives of the whole folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import forked
from fuzz_whole import make_whole
from kills import different
from logs import Log
from small import without_times
from tiny_preset import tiny

import fedkin as fk
from fedkin import presets
from fedkin.runs.files import Damaged

RUN = "here/fedmcsa/seed-0"
PRESET = ("preset", "tiny/table1", "--seeds", "2", "--jobs", "1", "--out", "here")


def deleted(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def digit(path: Path) -> None:
    """Another digit in the place of the last one; of a file without digits another byte."""
    content = bytearray(path.read_bytes())
    found = [i for i, byte in enumerate(content) if chr(byte).isdigit()] or [len(content) - 1]
    content[found[-1]] = ord("7") if content[found[-1]] != ord("7") else ord("3")
    path.write_bytes(bytes(content))


DAMAGES: dict[str, Callable[[Path], None]] = {one.__name__: one for one in (deleted, cut, zeroed, flipped, digit)}


# readers: each prints what it has read, as JSON


def told(read: dict[str, Callable[[], Any]]) -> int:
    """Print what each function gives, or that it refuses."""
    said = {}
    for name, function in read.items():
        try:
            said[name] = digest(function())
        except (fk.BadInput, Damaged):
            said[name] = "refused"
    print(json.dumps(said))
    return 0


def digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def loaded() -> int:
    """Load one run, and read everything of it."""
    try:
        run = fk.load_run(RUN)
    except (fk.BadInput, Damaged):
        return told({})
    return told(
        {
            "summary": lambda: without_times(run.summary),
            "lines": lambda: [{k: v for k, v in line.items() if k != "seconds"} for line in run.lines],
            "models": lambda: [(n, v.numpy().tobytes()) for m in run.models.values() for n, v in m.items()],
            "model": lambda: [value.detach().numpy().tobytes() for value in run.model("north").parameters()],
            "selected": lambda: [one.tolist() for one in run.selected],
            "kept": lambda: [one.tolist() for one in run.kept or []],
            "clients": lambda: run.clients().to_csv(),
            "kin": lambda: sorted((r, str(kin)) for r, kin in run.kin().items()),
            "preparation": lambda: run.preparation,
            "seed": lambda: run.seed,
        }
    )


def compared() -> int:
    """Load a comparison, and read its tables."""
    try:
        found = fk.load_comparison("here")
    except (fk.BadInput, Damaged):
        return told({})
    return told({"summary": lambda: without_times_anywhere(found.summary), "table": lambda: found.table().to_csv()})


def without_times_anywhere(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times_anywhere(v) for k, v in value.items() if k not in ("time", "seconds")}
    return [without_times_anywhere(one) for one in value] if isinstance(value, list) else value


READERS: dict[str, tuple[str, ...] | Callable[[], int]] = {
    "resume": ("compare", "--resume", "here"),
    "report": ("report", "here"),
    "check": ("check", "here"),
    "load": loaded,
    "comparison": compared,
    "preset": (*PRESET, "--read"),
    "preset, played": PRESET,
}
OF = {"whole": tuple(READERS)[:5], "half": tuple(READERS)[:5], "preset": tuple(READERS)[5:]}


class Suite:
    """The whole folders, and what readers give of them."""

    def __init__(self, base: Path):
        self.base, self.whole = base, base / "whole"
        self.whole.mkdir()
        presets.PRESETS["tiny/table1"] = tiny
        os.environ["FEDKIN_CACHE"] = str(base / "cache")
        made = forked.ended(forked.forked(lambda: make_whole(self.whole), self.whole), self.whole, 300.0)
        assert made.code == 0, made.err
        played = forked.played((*PRESET[:-1], "preset"), self.whole / "runs", 300.0)
        assert played.code == 0, played.err
        self.right = {(of, reader): self.read(of, reader)[1] for of in OF for reader in OF[of]}

    def files(self, of: str) -> list[str]:
        """Return the files of a folder that have something in them; of a preset those of its first run."""
        folder = self.whole / "runs" / of
        place = sorted(folder.glob("runs/*/seed-0"))[0] if of == "preset" else folder
        every = sorted(path for path in place.rglob("*") if path.is_file() and path.name != "report.html")
        return [str(path.relative_to(folder)) for path in every if path.stat().st_size]

    def read(self, of: str, reader: str, file: str = "", damage: str = "") -> tuple[forked.Ended, Any]:
        """Let a reader read a copy of a folder, a file of which may be damaged; returns how it ended, what it gave."""
        with tempfile.TemporaryDirectory(prefix="damaged-", dir=self.base) as root:
            place = Path(root) / "cwd"
            place.mkdir()
            shutil.copy(self.whole / "table.csv", root)
            shutil.copytree(self.whole / "runs" / of, place / "here")
            if file:
                DAMAGES[damage](place / "here" / file)
            work = READERS[reader]
            if callable(work):
                ended = forked.ended(forked.forked(work, place), place, 120.0)
            else:
                ended = forked.played(work, place, 120.0)
            return ended, self.given(of, reader, ended, place)

    def given(self, of: str, reader: str, ended: forked.Ended, place: Path) -> Any:
        """Return what a reader gave, in a form that can be compared; None: it refused."""
        if ended.code and reader != "check":
            return None
        if reader == "resume":
            return different(self.whole / "runs/whole", place / "here")
        if reader == "report":
            return digest((place / "here/report.html").read_text())
        if reader.startswith("preset"):
            result = json.loads((place / "here/tiny-table1-small/result.json").read_text())
            return [result["cells"], result["claims"]]
        return json.loads(ended.out) if reader in ("load", "comparison") else ended.code

    def judged(self, of: str, reader: str, file: str, damage: str) -> dict[str, Any]:
        """Return what a reader made of a damaged file: right, refused, unseen or wrong."""
        ended, found = self.read(of, reader, file, damage)
        right = self.right[of, reader]
        bad = ["Traceback"] if "Traceback" in ended.err or "should not" in ended.err else []
        if reader == "check":
            outcome = "refused" if ended.code in (1, 2) else "unseen"
        elif reader in ("load", "comparison") and found is not None:
            other = [name for name, value in found.items() if value not in (right.get(name), "refused")]
            outcome = "wrong" if other else "refused" if found != right else "right"
            bad += other
        else:
            outcome = "refused" if found is None else "right" if found == right else "wrong"
        if (outcome == "refused" and ended.code not in (0, 1, 2)) or (ended.code == 2 and "fedkin: " not in ended.err):
            bad.append(f"exit code {ended.code}")
        if bad or outcome == "wrong":
            bad.append((ended.err or str(found))[-400:])
        return {"folder": of, "reader": reader, "file": file, "damage": damage, "outcome": outcome, "bad": bad}


def expected(line: dict[str, Any]) -> bool:
    """Whether what looks wrong is what is documented: without summary.json a run is one that is not finished."""
    gone = line["damage"] == "deleted" and line["file"].endswith("summary.json")
    return gone and line["reader"] in ("report", "load", "comparison", "preset") and "Traceback" not in line["bad"]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Damage every file of a run in every way, and let all readers read it."
    )
    parser.add_argument("--share", type=float, default=1.0, help="of all cases, evenly")
    parser.add_argument("--log", type=Path)
    asked = parser.parse_args(words)
    log = Log(asked.log, {})
    with tempfile.TemporaryDirectory(prefix="damage-") as base:
        suite = Suite(Path(base))
        every = [(o, r, f, d) for o in OF for f in suite.files(o) for d in DAMAGES for r in OF[o]]
        known = {(line["folder"], line["reader"], line["file"], line["damage"]) for line in log.lines}
        for case in [case for case in every[:: max(round(1 / asked.share), 1)] if case not in known]:
            line = suite.judged(*case)
            if line["outcome"] == "wrong" and expected(line):
                line |= {"outcome": "unfinished", "bad": []}
            log.add(line)
            if line["bad"]:
                print(json.dumps(line), flush=True)
    counts = Counter(line["outcome"] for line in log.lines)
    bad = sum(bool(line["bad"]) or line["outcome"] == "wrong" for line in log.lines)
    print(f"{len(log.lines)} damaged files were read: {dict(sorted(counts.items()))}; {bad} bad")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
