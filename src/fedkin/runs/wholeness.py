"""Which files of a run are whole, whether it is done or not: what `fedkin check` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fedkin.errors import BadInput
from fedkin.runs import files, manifest, schema, so_far
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.files import Damaged
from fedkin.runs.folder import RunFolder
from fedkin.runs.format import check_format

Readers = dict[str, Callable[[], object]]  # by the name of a file; each raises where its file is not what was written


def of_run(run: RunFolder) -> tuple[int, list[str]]:
    """Return how many files of a run can be checked, and the names of those that are damaged or missing."""
    names = [*manifest.read_or_nothing(run.path), *sorted(so_far.named(run.checkpoints()))]
    readers: Readers = {name: partial(read_file, run, name) for name in names}
    readers |= {"experiment.json": run.experiment, "clients.json": run.clients}
    if (run.path / "preparation.json").exists():
        readers["preparation.json"] = run.preparation
    readers |= {f"{path.parent.name}/{path.name}": partial(read_checkpoint, path) for path in run.checkpoints()}
    return looked_at(run.path, readers)


def of_command(place: CommandFolder) -> tuple[int, list[str]]:
    """Return the same of what a command wrote beside its runs."""
    names = manifest.read_or_nothing(place.path)
    readers: Readers = {name: partial(manifest.checked, place.path / name, place.path) for name in names}
    readers |= {"plan.json": place.sealed_plan} if place.has_plan else {}
    return looked_at(place.path, readers)


def looked_at(folder: Path, readers: Readers) -> tuple[int, list[str]]:
    """Read all these files and those that every folder has; returns how many they are, and which are damaged."""
    readers = readers | {"format.json": partial(check_format, folder)}
    if (folder / manifest.MANIFEST).exists():
        readers[manifest.MANIFEST] = partial(manifest.read, folder)
    return len(readers), [name for name, reader in readers.items() if is_damaged(reader)]


def is_damaged(reader: Callable[[], object]) -> bool:
    try:
        reader()
    except (Damaged, OSError, BadInput):
        return True
    return False


def read_file(run: RunFolder, name: str) -> None:
    """Look at a file of a run; raises `Damaged` where it is not what was written."""
    path = run.whole(name)
    if not path.exists():
        raise Damaged(f"{path} is missing")


def read_checkpoint(path: Path) -> None:
    """Read a checkpoint; raises `Damaged` where it is not what was written."""
    files.read_tensors(path.with_suffix(".safetensors"), schema.read(schema.CheckpointSaid, path)["checksum"])
