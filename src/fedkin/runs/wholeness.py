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


def of_run(run: RunFolder) -> tuple[int, list[str]]:
    """Return how many files of a run have check sums, and the names of those that are damaged or missing."""
    names = [*manifest.read_or_nothing(run.path), *sorted(so_far.named(run.checkpoints()))]
    tried: dict[str, Callable[[], object]] = {name: partial(read_file, run, name) for name in names}
    tried |= {"format.json": partial(check_format, run.path), "experiment.json": run.experiment}
    tried |= {"clients.json": run.clients, "preparation.json": run.preparation}
    tried |= {f"{path.parent.name}/{path.name}": partial(read_checkpoint, path) for path in run.checkpoints()}
    if (run.path / manifest.MANIFEST).exists():
        tried[manifest.MANIFEST] = partial(manifest.read, run.path)
    return len(tried), [name for name, function in tried.items() if is_damaged(function)]


def of_command(place: CommandFolder) -> tuple[int, list[str]]:
    """Return the same of what a command wrote beside its runs."""
    tried: dict[str, Callable[[], object]] = {"format.json": partial(check_format, place.path)}
    tried |= {"plan.json": place.sealed_plan} if place.has_plan else {}
    names = list(manifest.read_or_nothing(place.path))
    tried |= {name: partial(manifest.checked, place.path / name, place.path) for name in names}
    if (place.path / manifest.MANIFEST).exists():
        tried[manifest.MANIFEST] = partial(manifest.read, place.path)
    return len(tried), [name for name, function in tried.items() if is_damaged(function)]


def is_damaged(function: Callable[[], object]) -> bool:
    """Whether a file that this function reads is not what was written."""
    try:
        function()
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
