"""The layout of folders on disk. No other module knows the name of a file in them.

The folder of a run (`RunFolder`):

    format.json          the version of this layout
    experiment.json      the resolved experiment, with versions, engine, chunk, threads
    clients.json         what the clients are called, their samples, and who is irrelevant where that is known
    preparation.json     how the rows of a table became samples (`data/preparation.py`); only where data are a table
    rounds.jsonl         a line a round; on scored rounds with the accuracies
    kin/                 round-<r>.safetensors: who learned from whom, at most 100 scored rounds
    marks/               round-<r>.safetensors: <part>/<name>, what a part thinks of every client; at most 100 rounds
    selected.bin         int32: who was selected, round after round (how many: 'selected' in rounds.jsonl)
    kept.bin             float32, aligned with selected.bin: how far each one's update counted; nan without a reply
    accuracy-<kind>.bin  float64: a row of all clients' accuracies a scored round; <metric>-<kind>.bin other metrics
    checkpoints/         round-<r>.safetensors with its round-<r>.json; the last two are kept. Where clients' private
                         models are large they are in rows-<k>.safetensors (`segments.py`), each needed by some of them
    models.safetensors   the final models: global/<name>, personal/<name> (stacked)
    predictions.safetensors  what the final models say of the test samples: rows, client, y, post, global; not if large
    summary.json         written when the run is done
    manifest.json        sizes and digests of all these files, written last (`manifest.py`)
    profile.json         where the time went when the run was last played, if that was asked for
    tracked-<name>.json  which run of a tracker this one is, and the last round it was told of
    .lock                empty; held while somebody is at work in the folder

rounds.jsonl and the arrays are only ever appended to. A checkpoint stores their lengths, so that resuming cuts them
back to the same round.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from fedkin.errors import require
from fedkin.runs import files, manifest, piecewise, schema, so_far
from fedkin.runs.files import Damaged
from fedkin.runs.format import FORMAT, SEGMENTED, check_format, write_format
from fedkin.runs.names import numbered, round_name, round_of, tracked_file, values_file

NEEDED = ("experiment.json", "format.json")  # a run cannot go on without them
SEALED = ("experiment.json", "clients.json")  # each has its check sum in it
PICTURES = ("kin", "marks")  # folders of tensors by round
MODELS, PREDICTIONS = "models.safetensors", "predictions.safetensors"
ROUNDS, SELECTED, KEPT = "rounds.jsonl", "selected.bin", "kept.bin"  # files that grow with every round


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run: where its files are, and how they are read and written."""

    path: Path

    @property
    def begun(self) -> bool:
        return (self.path / "experiment.json").exists()

    @property
    def has_rounds(self) -> bool:
        """Whether any round was recorded."""
        return self.has(ROUNDS)

    @property
    def has_models(self) -> bool:
        return (self.path / MODELS).exists()

    @property
    def summarised(self) -> bool:
        return (self.path / "summary.json").exists()

    def checked(self) -> RunFolder:
        """Return this folder; refuses one whose layout is not known, or of which a file is gone."""
        check_format(self.path)
        if self.summarised:
            manifest.check_complete(self.path)
        return self

    def whole(self, name: str) -> Path:
        """Return the path of a file that is what was written; raises `Damaged` where it is not."""
        path = files.plain(self.path / name)
        return manifest.checked(path, self.path) if self.summarised else so_far.checked(path, name, self.checkpoints())

    def has(self, name: str) -> bool:
        """Whether a run has a file, or had it at its last checkpoint: then its loss is noticed where it is read."""
        return (self.path / name).exists() or (not self.summarised and name in so_far.named(self.checkpoints()))

    def experiment(self) -> dict[str, Any]:
        return schema.read(schema.ExperimentSaid, self.whole("experiment.json"))

    def clients(self) -> dict[str, Any]:
        """Return what clients.json says; empty where there is none."""
        path = self.whole("clients.json")
        so_far.check_there(path, self.path / "experiment.json")
        return schema.read(schema.ClientsSaid, path) if path.exists() else {}

    def preparation(self) -> dict[str, Any] | None:
        """Return how rows of a table became samples; None where the data were no table."""
        path = self.whole("preparation.json")
        return manifest.unsealed(files.read_json(path), path) if path.exists() else None

    def summary(self) -> dict[str, Any]:
        return schema.read(schema.SummarySaid, self.whole("summary.json"))

    def rounds(self) -> list[dict[str, Any]]:
        """Return a line for each round. A last line that was cut short by a kill does not count."""
        return schema.read_lines(self.whole(ROUNDS))

    def profile(self) -> dict[str, Any] | None:
        """Return where the time of the run went; None where nobody asked for it."""
        path = self.path / "profile.json"
        return dict(files.read_json(path)) if path.exists() else None

    def tracked(self, tracker: str) -> dict[str, Any]:
        """Return what a tracker has noted of the run; empty where it has noted nothing."""
        path = self.path / tracked_file(tracker)
        return dict(files.read_json(path)) if path.exists() else {}

    def changed(self) -> float:
        """Return when the last round was recorded, as a time of day."""
        return (self.path / ROUNDS).stat().st_mtime

    def selected(self) -> np.ndarray:
        """Return who was selected, all rounds in one array."""
        return np.fromfile(self.whole(SELECTED), "<i4")

    def kept(self) -> np.ndarray | None:
        """Return how far the updates counted, aligned with `selected`; None where an old version did not write it."""
        return np.fromfile(self.whole(KEPT), "<f4") if self.has(KEPT) else None

    def values(self, metric: str, kind: str) -> np.ndarray:
        """Return a metric of all clients, all scored rounds in one array."""
        return np.fromfile(self.whole(values_file(metric, kind)), "<f8")

    def has_values(self, metric: str, kind: str) -> bool:
        return self.has(values_file(metric, kind))

    def models(self) -> dict[str, Tensor]:
        return files.read_tensors(self.whole(MODELS))

    def model_row(self, prefix: str, client: int) -> dict[str, Tensor]:
        """Return one client's row of the final models whose names begin with a prefix, and nothing else of the file."""
        return files.read_row(self.whole(MODELS), prefix, client)

    def predictions(self) -> dict[str, Tensor] | None:
        """Return the stored predictions; None where there are none."""
        path = self.whole(PREDICTIONS)
        return files.read_tensors(path) if path.exists() else None

    def pictures(self, kind: str) -> dict[int, dict[str, Tensor]]:
        """Return the stored tensors of one of `PICTURES`, by round."""
        known = set() if self.summarised else so_far.named(self.checkpoints())
        names = {path.name for path in self.picture_files(kind)} | {
            n[len(kind) + 1 :] for n in known if n.startswith(kind)
        }
        paths = sorted(map(Path, names), key=round_of)
        return {round_of(path): files.read_tensors(self.whole(f"{kind}/{path}")) for path in paths}

    def picture_files(self, kind: str) -> list[Path]:
        return numbered(self.path / kind, "round-", ".safetensors")

    def checkpoints(self) -> list[Path]:
        """Return the JSON files of the stored checkpoints, the newest first."""
        return numbered(self.path / "checkpoints", "round-", ".json")[::-1]

    def segments(self) -> list[Path]:
        """Return the files of rows of private models, the oldest first."""
        return numbered(self.path / "checkpoints", "rows-", ".safetensors")

    def new_segment(self) -> Path:
        """Return where the next file of rows is to be, and note that older versions cannot read this run."""
        place = self.path / "checkpoints"
        place.mkdir(exist_ok=True)
        numbers = [int(path.stem.removeprefix("rows-")) for path in self.segments()]
        if not numbers:
            write_format(self.path, SEGMENTED)
        return place / f"rows-{max(numbers, default=0) + 1:06d}.safetensors"

    def appended(self) -> list[Path]:
        """Return the files that grow with every round."""
        return [*self.path.glob("*.bin"), self.path / ROUNDS]

    def begin(
        self, experiment: dict[str, Any], clients: dict[str, Any], preparation: dict[str, Any] | None = None
    ) -> None:
        """Write what is known before round 1. What lies there of a run that lost its experiment goes."""
        files.make_folder(self.path)
        drawn = [path for kind in PICTURES for path in self.picture_files(kind)]
        for path in [*self.appended(), *self.checkpoints(), *drawn, self.path / manifest.MANIFEST]:
            path.unlink(missing_ok=True)
        write_format(self.path)
        if preparation is not None:
            files.write_json(self.path / "preparation.json", manifest.sealed(preparation))
        files.write_json(self.path / "clients.json", manifest.sealed(clients))
        files.write_json(self.path / "experiment.json", manifest.sealed(experiment))

    def go_on(
        self, experiment: dict[str, Any], clients: dict[str, Any], preparation: dict[str, Any] | None = None
    ) -> None:
        """Write what is to be done now, and remove the summary and the predictions of what was done before, and files
        that a killed command left half written."""
        for place in (self.path, *(self.path / name for name in (*PICTURES, "checkpoints"))):
            for path in place.glob(".*.part"):
                path.unlink()
        write_format(self.path, SEGMENTED if self.segments() else FORMAT)
        files.write_json(self.path / "experiment.json", manifest.sealed(experiment))
        if not (self.path / "clients.json").exists():
            files.write_json(self.path / "clients.json", manifest.sealed(clients))
        if preparation is not None and not (self.path / "preparation.json").exists():
            files.write_json(self.path / "preparation.json", manifest.sealed(preparation))
        for name in ("summary.json", PREDICTIONS, manifest.MANIFEST):
            (self.path / name).unlink(missing_ok=True)

    def reopen(self, damaged: Sequence[str]) -> None:
        """Make a run that is done one that goes on from its last checkpoint, because files of it are damaged."""
        lost = next((name for name in NEEDED if name in damaged), "")
        require(not lost, f"{self.path / lost} is damaged, so the run cannot go on; start it anew elsewhere.")
        for name in ("summary.json", manifest.MANIFEST, *damaged):
            if not name.endswith((".bin", ROUNDS)):  # which a checkpoint cuts back
                (self.path / name).unlink(missing_ok=True)

    def finish(
        self,
        models: dict[str, Tensor],
        predictions: dict[str, Tensor] | None,
        summary: dict[str, Any],
        pieces: Iterator[dict[str, Tensor]] | None = None,
    ) -> None:
        """Write what came out of the whole run; the summary, which says that the run is done, comes last.

        `pieces` are further models, stacked, that are too large to be held at once.
        """
        if pieces is None:
            files.write_tensors(self.path / MODELS, models)
        else:
            piecewise.write_stacked(self.path / MODELS, models, summary["experiment"]["resolved"]["clients"], pieces)
        if predictions is not None:
            files.write_tensors(self.path / PREDICTIONS, predictions)
        files.write_json(self.path / "summary.json", summary)
        manifest.write(self.path)

    def write_tracked(self, tracker: str, value: dict[str, Any]) -> None:
        """Note something for a tracker, perhaps in every round: it survives a kill, but perhaps no power cut."""
        with files.whole_file(self.path / tracked_file(tracker), settled=False) as file:
            file.write(json.dumps(value).encode())

    def write_profile(self, value: dict[str, Any]) -> None:
        files.write_json(self.path / "profile.json", value)

    def opened(self, name: str) -> int:
        """Open one of the files that grow with every round, and return the system's handle of it."""
        return os.open(self.path / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)

    def draw(self, kind: str, round: int, tensors: dict[str, Tensor]) -> dict[str, str]:
        """Store tensors of one of `PICTURES` for a round; returns the check sum of the file, by its name."""
        (self.path / kind).mkdir(exist_ok=True)
        name = f"{kind}/{round_name(round)}.safetensors"
        return {name: files.write_tensors(self.path / name, tensors)}

    def write_checkpoint(self, round: int, tensors: dict[str, Tensor], about: dict[str, Any], most: int) -> None:
        """Write a checkpoint and remove all but the last `most`, and the files of rows that none of them needs.

        The JSON file is written last: without it the tensors do not count.
        """
        place = self.path / "checkpoints"
        place.mkdir(exist_ok=True)
        total = files.write_tensors(place / f"{round_name(round)}.safetensors", tensors)
        files.write_json(place / f"{round_name(round)}.json", manifest.sealed(about | {"checksum": total}))
        for old in self.checkpoints()[most:]:
            old.unlink()
            old.with_suffix(".safetensors").unlink(missing_ok=True)
        needed = {name for path in self.checkpoints() for name in rows_files(path)} if self.segments() else set()
        for path in self.segments():
            if path.name not in needed:
                path.unlink()

    def read_checkpoint(self, path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what a checkpoint says and its tensors; raises `Damaged` where they are not what was written."""
        about = schema.read(schema.CheckpointSaid, path)
        tensors = files.read_tensors(path.with_suffix(".safetensors"), about["checksum"])
        for name, length in about["lengths"].items():
            if (self.path / name).stat().st_size < length:
                raise Damaged(f"{self.path / name} is shorter than {path.name} says")
        for name, digest in about.get("digests", {}).items():
            if files.digest_of(self.path / name, about["lengths"][name]).hexdigest() != digest:
                raise Damaged(f"{self.path / name} is not what was written (its check sum differs)")
        return about, tensors


def rows_files(checkpoint: Path) -> list[str]:
    """Return the files of rows that a checkpoint needs; none where it cannot be read, since it is of no use then."""
    try:
        return [one["file"] for one in files.read_json(checkpoint).get("segments", [])]
    except (Damaged, AttributeError, KeyError, TypeError):
        return []
