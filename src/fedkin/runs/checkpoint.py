"""Checkpoints: everything that the next round depends on, written to the disk and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedkin.core import tree
from fedkin.core.rows import Rows, Sealed
from fedkin.core.tree import Message
from fedkin.errors import BadInput
from fedkin.round import State
from fedkin.runs import segments
from fedkin.runs.files import Damaged
from fedkin.runs.folder import RunFolder, rows_files
from fedkin.runs.recorder import Recorder

MOST = 2  # checkpoints that are kept
SLOTS = ("select", "keep", "collaborate")


@dataclass(frozen=True)
class Checkpoint:
    """The server's state, the clients' private slots, the lengths of the run's files, and the seconds spent."""

    state: State
    private: Message | Sealed  # stacked, or where their rows lie
    lengths: dict[str, int]
    time: dict[str, float]
    drawn: dict[str, str] | None = None  # check sums of pictures; None where an older version wrote none


def save_checkpoint(state: State, private: Message | Rows, recorder: Recorder, time: dict[str, float]) -> None:
    """Write a checkpoint of this state into the recorder's folder. Of rows, only those that changed are written."""
    recorder.settle()
    server = {name: getattr(state, name) for name in SLOTS}
    digests = {name: digest.hexdigest() for name, digest in recorder.digests.items()}
    about: dict[str, Any] = {"round": state.round, "lengths": recorder.lengths, "digests": digests}
    about |= {"drawn": recorder.drawn, "time": time}
    if not isinstance(private, Rows):
        recorder.folder.write_checkpoint(state.round, tree.flat(server | {"clients": private}), about, MOST)
        return
    sealed = segments.seal(recorder.folder, private)
    said, where = segments.described(sealed)
    recorder.folder.write_checkpoint(state.round, tree.flat(server) | where, about | said, MOST)
    private.settle(sealed)


def load_checkpoint(folder: RunFolder, names: Sequence[str], warn: Callable[[str], None] = print) -> Checkpoint | None:
    """Return the newest good checkpoint, or None if the run has none, so that it is to be played from round 1.

    A damaged checkpoint is named, and the one before it taken. `names` is the order of the model's tensors, which a
    file does not keep.
    """
    found = folder.checkpoints()
    for place, path in enumerate(found):
        try:
            about, tensors = folder.read_checkpoint(path)
            parts = ordered(tree.nested(tensors), names)
            state = State(about["round"], *(parts.get(name, {}) for name in SLOTS))
            private = parts.get("clients", {})
            if "segments" in about:
                older = {name for other in found[place + 1 :] for name in rows_files(other)}
                private = segments.read(path.parent, about, parts["rows"], older)
            return Checkpoint(state, private, about["lengths"], about["time"], about.get("drawn"))
        except (Damaged, KeyError, OSError) as error:
            if refused(error):
                raise BadInput(f"{error}; it may be whole, so make it readable and go on with --resume.") from error
            back = "to the one before it" if place + 1 < len(found) else "to round 1: there is no good one before it"
            warn(f"The checkpoint {path.stem} is damaged ({error}); going back {back}.")
    return None


def refused(error: Exception) -> bool:
    """Whether the system refused to read a file that is there, and may be whole."""
    cause = error.__cause__ or error
    return isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)


def ordered(value: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the same nested dictionary with every model's tensors in the order of the model."""
    if set(value) == set(names):
        return {name: value[name] for name in names}
    return {key: ordered(inner, names) if isinstance(inner, dict) else inner for key, inner in value.items()}


def moved(value: Any, device: torch.device) -> Any:
    """Return nested dictionaries of tensors on another device."""
    return {k: moved(v, device) for k, v in value.items()} if isinstance(value, dict) else value.to(device)
