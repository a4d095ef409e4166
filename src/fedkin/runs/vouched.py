"""Which runs have check sums that vouch for their files; what others say may be of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fedkin.errors import shown
from fedkin.runs import files, manifest
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.files import Damaged
from fedkin.runs.folder import SEALED, RunFolder


def vouched(run: RunFolder) -> bool:
    """Whether check sums say that the files of a run are what was written."""
    try:
        if run.summarised:
            return bool(manifest.read(run.path)) and not manifest.damaged(run.path)
        newest = [run.read_checkpoint(path)[0] for path in run.checkpoints()[:1]]
        sealed = all(manifest.SEAL in files.read_json(run.path / name) for name in SEALED)
        return sealed and bool(run.experiment()) and all("digests" in about for about in newest)
    except (Damaged, OSError, TypeError):  # the last one: JSON that is no object
        return False


def not_vouched(words: Sequence[str]) -> str:
    """Return the first run in a folder among these words whose files no check sums vouch for; '' where there is none.

    It may be somebody else's, damaged, or changed by hand.
    """
    for word in words:
        with suppress(OSError):
            for run in CommandFolder(Path(word)).runs() if Path(word).is_dir() else ():
                if not vouched(run):
                    return shown(str(run.path))
    return ""
