"""The same command without some sites: a folder inside that of the command.

what-if/without-<names>/               the folder of a command, as folder.py has it
what-if/without-<names>/effects.json   what each of the others gains or loses by it
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from fedkin.runs import files
from fedkin.runs.folder import CommandFolder, RunFolder

LONGEST = 100  # letters of sites' names in the name of a folder


def folder_without(command: CommandFolder, sites: Sequence[str]) -> CommandFolder:
    """Return the folder of the same command without these sites."""
    name = "+".join("".join(c if c.isalnum() or c in "._-" else "-" for c in site) for site in sorted(sites))
    if len(name) > LONGEST:
        name = blake2b("/".join(sorted(sites)).encode(), digest_size=8).hexdigest()
    return CommandFolder(command.path / "what-if" / f"without-{name}")


def run_like(run: RunFolder, of: CommandFolder, there: CommandFolder) -> RunFolder:
    """Return the folder of a run that another command's folder keeps under the same name."""
    return RunFolder(there.path / run.path.relative_to(of.path))


def write_effects(folder: CommandFolder, effects: dict[str, Any]) -> None:
    """Write what leaving sites out does to the others."""
    files.write_json(folder.path / "effects.json", effects)
