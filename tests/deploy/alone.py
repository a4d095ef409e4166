"""Scripts of an exported folder, run where fedkin cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ALONE = """
import json, runpy, sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "fedkin":
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Gone())
path, several = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, path.rpartition("/")[0])  # as `python predict.py` does
for words in several:
    sys.argv = [path, *words]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as stop:
        print(stop.code, file=sys.stderr)
        if len(several) == 1:
            sys.exit(1)
assert not {name.split(".")[0] for name in sys.modules} & {"fedkin", "safetensors", "sklearn", "datasets", "rich"}
"""


def script(path: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a script in a process in which fedkin cannot be imported."""
    return scripts(path, [words])


def scripts(path: Path, several: Sequence[Sequence[object]]) -> subprocess.CompletedProcess[str]:
    """Run a script once for each list of words in one such process, since imports take longer than the script."""
    words = json.dumps([[str(word) for word in one] for one in several])
    return subprocess.run([sys.executable, "-I", "-c", ALONE, path, words], capture_output=True, text=True)
