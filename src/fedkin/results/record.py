"""What one run leaves in its folder, and how it is cut back to a checkpoint.

    experiment.json      the resolved experiment, with versions, engine, chunk, threads
    clients.json         what the clients are called, their samples, and who is irrelevant where that is known
    rounds.jsonl         a line a round; on evaluated rounds with the accuracies
    kin/                 round-<r>.safetensors: who learned from whom, at most 100 evaluated rounds
    marks/               round-<r>.safetensors: <part>/<name>, what a part thinks of every client; at most 100 rounds
    selected.bin         int32: who was selected, round after round (how many: 'selected' in rounds.jsonl)
    kept.bin             float32, aligned with selected.bin: how far each one's update counted; nan without a reply
    accuracy-<kind>.bin  float64: a row of all clients' accuracies an evaluated round
    checkpoints/         round-<r>.safetensors with its round-<r>.json; the last two are kept
    models.safetensors   the final models: global/<name>, personal/<name> (stacked)
    summary.json         written when the run is done
    .lock                empty; held while somebody is at work in the folder

rounds.jsonl and the arrays are only ever appended to. A checkpoint stores their lengths, so that resuming cuts them
back to the same round.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.engines.simulation import Score
from fedkin.errors import BadInput
from fedkin.messages import Kin
from fedkin.results import files
from fedkin.results.files import Damaged
from fedkin.round import Log, State

KEPT = 2  # checkpoints
SNAPSHOTS = 100  # rounds of which pictures are kept, of each of these kinds
PICTURES = ("kin", "marks")


@dataclass
class Recorder:
    """Appends to a run's files; knows their lengths."""

    folder: Path
    lengths: dict[str, int] = field(default_factory=dict)

    def append(self, name: str, content: bytes) -> None:
        with open(self.folder / name, "ab") as file:
            file.write(content)
        self.lengths[name] = self.lengths.get(name, 0) + len(content)

    def note(self, log: Log, scores: dict[str, Score] | None, parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Append one round; returns its line."""
        written = line(log, scores, parts)
        for kind, score in (scores or {}).items():
            if len(score.count) > 1 or kind != "test":
                rows = score.accuracy.numpy().astype("<f8").tobytes()
                self.append(f"accuracy-{kind.replace('/', '-')}.bin", rows)
        self.append("selected.bin", log.selected.numpy().astype("<i4").tobytes())
        self.append("kept.bin", log.weights.numpy().astype("<f4").tobytes())
        self.append("rounds.jsonl", (json.dumps(written, allow_nan=False) + "\n").encode())
        return written

    def draw(self, round: int, kin: Kin) -> None:
        """Keep who learned from whom in this round."""
        weights = {f"weights/{component}": value.float() for component, value in kin.weights.items()}
        self.snapshot("kin", round, weights | {"ids": kin.ids, "sources": kin.sources})

    def snapshot(self, kind: str, round: int, tensors: dict[str, Tensor]) -> None:
        place = self.folder / kind
        place.mkdir(exist_ok=True)
        files.write_tensors(place / f"round-{round:06d}.safetensors", tensors)

    def settle(self) -> None:
        """Flush what was appended to the disk, before a checkpoint says that it is there."""
        for name in self.lengths:
            with open(self.folder / name, "rb") as file:
                os.fsync(file.fileno())

    def cut(self, lengths: dict[str, int]) -> None:
        """Cut every appended file back to these lengths; what the checkpoint does not know is removed."""
        for path in [*self.folder.glob("*.bin"), self.folder / "rounds.jsonl"]:
            wanted = lengths.get(path.name, 0)
            size = path.stat().st_size if path.exists() else 0
            if size < wanted:
                raise Damaged(f"{path} is shorter than its checkpoint says")
            if wanted:
                os.truncate(path, wanted)
            else:
                path.unlink(missing_ok=True)
        self.lengths = dict(lengths)

    def forget(self, after: int) -> None:
        """Remove pictures of rounds that will be played again."""
        for kind in PICTURES:
            for path in (self.folder / kind).glob("round-*.safetensors"):
                if int(path.stem.removeprefix("round-")) > after:
                    path.unlink()


def line(log: Log, scores: dict[str, Score] | None, parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A round as rounds.jsonl has it."""
    result: dict[str, Any] = {
        "round": log.round,
        "selected": len(log.selected),
        "replied": log.replied,
        "kept": log.kept,
        **asdict(log.traffic),
        "seconds": {name: round(value, 6) for name, value in log.seconds.items()},
    }
    if log.dropped:
        result["dropped"] = log.dropped
    if scores is not None:
        result["accuracy"] = {kind: averages(score) for kind, score in scores.items()}
        result["loss"] = {kind: mean_loss(score) for kind, score in scores.items()}
    return result | {name: value for name, value in parts.items() if value}


def averages(score: Score) -> dict[str, float | None]:
    """macro: the mean over clients that have test samples; micro: over all samples. None where there are none."""
    have = score.count > 0
    if not have.any():
        return {"macro": None, "micro": None}
    return {
        "macro": float(score.accuracy[have].mean()),
        "micro": float(score.correct.sum() / score.count.sum().double()),
    }


def mean_loss(score: Score) -> float | None:
    """Over all samples; None where it is not finite."""
    value = float(score.loss.sum() / score.count.sum().double())
    return value if np.isfinite(value) else None


def save_checkpoint(
    folder: Path, state: State, slots: dict[str, Any], recorder: Recorder, time: dict[str, float]
) -> None:
    """Everything the next round depends on. The JSON file is written last: without it the tensors do not count."""
    recorder.settle()
    place = folder / "checkpoints"
    place.mkdir(exist_ok=True)
    server = {"select": state.select, "keep": state.keep, "collaborate": state.collaborate}
    everything = server | {"clients": slots}
    name = f"round-{state.round:06d}"
    total = files.write_tensors(place / f"{name}.safetensors", tree.flat(everything))
    about = {"round": state.round, "lengths": recorder.lengths, "time": time, "checksum": total}
    files.write_json(place / f"{name}.json", about)
    for old in sorted(place.glob("round-*.json"))[:-KEPT]:
        old.unlink()
        old.with_suffix(".safetensors").unlink(missing_ok=True)


@dataclass(frozen=True)
class Checkpoint:
    state: State
    slots: dict[str, Any]
    lengths: dict[str, int]
    time: dict[str, float]


def load_checkpoint(folder: Path, names: list[str], warn: Any = print) -> Checkpoint | None:
    """The newest good checkpoint, or None if the run has none yet. A damaged one is named, and the one before it taken.
    `names` is the order of the model's tensors, which a file does not keep."""
    found = sorted((folder / "checkpoints").glob("round-*.json"), reverse=True)
    for path in found:
        try:
            about = files.read_json(path)
            tensors = files.read_tensors(path.with_suffix(".safetensors"), about["checksum"])
            for file, length in about["lengths"].items():
                if (folder / file).stat().st_size < length:
                    raise Damaged(f"{folder / file} is shorter than {path.name} says")
            parts = ordered(tree.nested(tensors), names)
            slots = {name: parts.get(name, {}) for name in ("select", "keep", "collaborate", "clients")}
            state = State(about["round"], slots["select"], slots["keep"], slots["collaborate"])
            return Checkpoint(state, slots["clients"], about["lengths"], about["time"])
        except (Damaged, KeyError, OSError) as error:
            warn(f"The checkpoint {path.stem} is damaged ({error}); going back to the one before it.")
    if found:
        raise BadInput(f"Every checkpoint in {folder} is damaged, so the run cannot go on; start it anew elsewhere.")
    return None


def ordered(value: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The same nested dictionary with every model's tensors in the order of the model."""
    if set(value) == set(names):
        return {name: value[name] for name in names}
    return {key: ordered(inner, names) if isinstance(inner, dict) else inner for key, inner in value.items()}


# readers


@dataclass(frozen=True)
class Run:
    """A run as it lies in its folder."""

    folder: Path

    @property
    def experiment(self) -> dict[str, Any]:
        return dict(files.read_json(self.folder / "experiment.json"))

    @property
    def summary(self) -> dict[str, Any]:
        return dict(files.read_json(self.folder / "summary.json"))

    def rounds(self) -> list[dict[str, Any]]:
        """A line a round; a last line that was cut short by a kill does not count."""
        with open(self.folder / "rounds.jsonl") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def accuracy(self, kind: str) -> np.ndarray:
        """Of every client, a row an evaluated round."""  # (evaluations, n) float64
        path = self.folder / f"accuracy-{kind}.bin"
        n = int(self.experiment["resolved"]["clients"])
        return np.fromfile(path, "<f8").reshape(-1, n)

    def kin(self) -> dict[int, Kin]:
        """Who learned from whom, by round."""
        found, start = {}, "weights/"
        for round, tensors in self.pictures("kin").items():
            weights = {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
            found[round] = Kin(tensors["ids"], tensors["sources"], weights)
        return found

    def marks(self, part: str, name: str) -> dict[int, np.ndarray]:
        """What a part thought of every client, by round: ("select", "score") of AdaFL's attention."""  # (n,) each
        key = f"{part}/{name}"
        return {round: tensors[key].numpy() for round, tensors in self.pictures("marks").items() if key in tensors}

    def pictures(self, kind: str) -> dict[int, dict[str, Tensor]]:
        """The stored tensors of one of `PICTURES`, by round."""
        paths = sorted((self.folder / kind).glob("round-*.safetensors"))
        return {int(path.stem.removeprefix("round-")): files.read_tensors(path) for path in paths}

    def selected(self) -> list[np.ndarray]:
        """Who was selected, round by round."""
        return self.by_round(np.fromfile(self.folder / "selected.bin", "<i4"))

    def kept(self) -> list[np.ndarray]:
        """How far the update of each of them counted, round by round; nan for one that did not reply."""
        return self.by_round(np.fromfile(self.folder / "kept.bin", "<f4"))

    def by_round(self, values: np.ndarray) -> list[np.ndarray]:
        """A value a selected client, cut into rounds."""
        ends = np.cumsum([line["selected"] for line in self.rounds()], dtype=int)
        return np.split(values[: ends[-1]], ends[:-1]) if len(ends) else []  # a killed run may have written more

    def models(self) -> dict[str, dict[str, Tensor]]:
        """The final models: 'global', and 'personal' (stacked, a row a client), where the method has them."""
        parts = tree.nested(files.read_tensors(self.folder / "models.safetensors"))
        return {kind: {name: torch.as_tensor(v) for name, v in model.items()} for kind, model in parts.items()}  # type: ignore[attr-defined]
