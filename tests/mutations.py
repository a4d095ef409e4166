"""Small wrong changes of the source, each of which the tests must catch.

    python tests/mutations.py                     try all of them
    python tests/mutations.py --only krum median  try these
    python tests/mutations.py --list              say where each one applies, and try none
    python tests/mutations.py --unchanged         run the named tests on the source as it is: they must pass

A mutation is found by its text, not by its place, so that it survives when lines move to other files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutation_table import MUTATIONS, Mutation
from mutation_table_cluster import CLUSTER
from mutation_table_comparisons import ABOVE_RUNS
from mutation_table_engines import ENGINES
from mutation_table_methods import METHODS
from mutation_table_own import OWN
from mutation_table_privacy import PRIVACY
from mutation_table_rivals import RIVALS
from mutation_table_scale import SCALE
from mutation_table_sites import SITES
from mutation_table_tables import TABLES
from mutation_table_trust import TRUST

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 600  # seconds after which the tests count as hanging
OPTIONS = ("-x", "-n", "0", "-q", "-p", "no:cacheprovider", "--tb", "no")
PASSED, FAILED, NOTHING_COLLECTED = 0, 1, 5  # exit codes of pytest


def places(mutation: Mutation) -> list[tuple[Path, int, str]]:
    """Every file and line of the source that a mutation would change, and the file's text with that one change. Line
    breaks and indentation inside `before` do not matter."""
    found = []
    for before, after in mutation.changes():
        pattern = re.compile(r"\s+".join(re.escape(word) for word in before.split()))
        for file in sorted((ROOT / "src" / "fedkin").rglob("*.py")):
            text = file.read_text()
            for match in pattern.finditer(text):
                changed = text[: match.start()] + after + text[match.end() :]
                found.append((file.relative_to(ROOT), text.count("\n", 0, match.start()) + 1, changed))
    return found


def tried(folder: Path, tests: str) -> tuple[int | None, str]:
    """Run tests in a folder: pytest's exit code (None if it does not end) and the first test that failed. Where the
    named paths hold nothing, the words are looked for in all tests."""
    paths, _, words = tests.partition("-k ")
    there = [f"tests/{path}" for path in paths.split() if (folder / "tests" / path).exists()]
    env = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    code, out = NOTHING_COLLECTED, "no such tests"
    for where in [there, ["tests"]] if words else [there]:
        command = [sys.executable, "-m", "pytest", *OPTIONS, *where, *(["-k", words.strip()] if words else [])]
        if where and code == NOTHING_COLLECTED:
            try:
                done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                return None, ""
            code, out = done.returncode, done.stdout + done.stderr
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", out, re.MULTILINE)
    return code, failed[1] if failed else " ".join(out.split())[-200:]


def outcome(mutation: Mutation, unchanged: bool) -> tuple[str, str]:
    """'caught', 'survived', 'passed' or 'error', and what to say of it."""
    found = places(mutation)
    if len(found) != 1 and not unchanged:
        return "error", f"its text occurs {len(found)} times in the source, not once"
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        for item in ("src", "tests"):
            shutil.copytree(ROOT / item, folder / item, ignore=shutil.ignore_patterns("__pycache__"))
        for item in ("pyproject.toml", "README.md"):
            shutil.copy2(ROOT / item, folder / item)
        if not unchanged:
            (folder / found[0][0]).write_text(found[0][2])
        code, said = tried(folder, mutation.tests)
    if code == PASSED:
        return ("passed" if unchanged else "survived"), mutation.tests
    if unchanged or code not in (FAILED, None):
        return "error", f"pytest ended with code {code}: {said}"
    return "caught", said or f"no end within {LIMIT} s"


def listed(mutations: list[Mutation]) -> int:
    """Say where each mutation applies; 1 if one of them does not apply exactly once."""
    found = {mutation.name: [f"{file}:{line}" for file, line, _ in places(mutation)] for mutation in mutations}
    for name, lines in found.items():
        print(f"{name:30} {', '.join(lines) or 'nowhere'}")
    bad = sum(len(lines) != 1 for lines in found.values())
    print(f"{len(found)} mutations, {bad} of which cannot be applied")
    return int(bad > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Try small wrong changes of the source; the tests must catch each.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these mutations")
    parser.add_argument("--list", action="store_true", help="say where each one applies, and try none")
    parser.add_argument("--unchanged", action="store_true", help="run the named tests on the source as it is")
    parser.add_argument("--jobs", type=int, default=1, help="mutations tried side by side [1]")
    asked = parser.parse_args()
    methods = [*MUTATIONS, *METHODS, *RIVALS, *OWN, *SCALE, *ENGINES]
    tables = [*methods, *CLUSTER, *SITES, *TABLES, *PRIVACY, *TRUST, *ABOVE_RUNS]
    known = {mutation.name: mutation for mutation in tables}
    if missing := sorted(set(asked.only or ()) - set(known)):
        parser.error(f"there is no mutation called {', '.join(missing)}")
    chosen = [known[name] for name in asked.only or known]
    if asked.list:
        return listed(chosen)
    if asked.unchanged:
        chosen = list({mutation.tests: mutation for mutation in chosen}.values())

    def timed(mutation: Mutation) -> tuple[str, str, float]:
        start = time.monotonic()
        return *outcome(mutation, asked.unchanged), time.monotonic() - start

    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(asked.jobs) as pool:
        for mutation, (word, said, seconds) in zip(chosen, pool.map(timed, chosen), strict=True):
            counts[word] += 1
            print(f"{word:9} {mutation.name:30} {seconds:4.0f} s  {said}", flush=True)
    good, bad = ("passed", "error") if asked.unchanged else ("caught", "survived")
    errors = f", {counts['error']} could not be tried" if counts["error"] and not asked.unchanged else ""
    print(f"{counts[good]} {good}, {counts[bad]} {bad}{errors}")
    return int(counts[good] < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
