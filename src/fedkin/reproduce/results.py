"""The committed results of presets: docs/results/<paper>/<place>-<scale>.json."""

from __future__ import annotations

import json
from pathlib import Path

from fedkin.presets import PRESETS, SCALES
from fedkin.reproduce.outcome import Outcome


def committed_folder() -> Path:
    """The folder of committed results: that of the sources if they are at hand, else that of the current folder."""
    beside = Path(__file__).parents[3] / "docs" / "results"
    return beside if beside.is_dir() else Path("docs/results")


def result_path(name: str, scale: str, folder: Path | None = None) -> Path:
    """Where the result of a preset lies."""
    paper, _, place = name.partition("/")
    return (folder or committed_folder()) / paper / f"{place}-{scale}.json"


def committed(name: str, scale: str, folder: Path | None = None) -> Outcome | None:
    """The committed result of a preset; None if there is none."""
    path = result_path(name, scale, folder)
    if not path.is_file():
        return None
    found: Outcome = json.loads(path.read_text(encoding="utf-8"))
    return found


def all_committed(folder: Path | None = None) -> dict[tuple[str, str], Outcome]:
    """Every committed result, by preset and scale, in the order of the presets."""
    found = {}
    for name in PRESETS:
        for scale in SCALES:
            if (outcome := committed(name, scale, folder)) is not None:
                found[name, scale] = outcome
    return found
