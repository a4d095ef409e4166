"""The log of a suite: a first line about all of it, and a line for each case. A suite that is stopped goes on."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

from fedkin.runs.facts import versions


class Log:
    """Lines that are kept in memory and, where a path is given, in a file."""

    def __init__(self, path: Path | None, about: dict[str, Any]):
        self.path = path
        self.lines: list[dict[str, Any]] = []
        if path is None:
            return
        if path.exists():
            first, *lines = path.read_text().splitlines()
            said = {name: json.loads(first).get(name) for name in about}
            if said != about:
                sys.exit(f"{path} is of other cases ({said}, not {about}); remove it first.")
            self.lines = [json.loads(line) for line in lines]
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        here = {"date": time.strftime("%Y-%m-%d"), "fedkin": versions()["fedkin"], "torch": torch.__version__}
        path.write_text(json.dumps(about | here) + "\n")

    def has(self, **what: Any) -> bool:
        """Whether there is a line that says this."""
        return any(all(line.get(name) == value for name, value in what.items()) for line in self.lines)

    def add(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")
