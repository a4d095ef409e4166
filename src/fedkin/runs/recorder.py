"""Writes a run down, round by round, and cuts what was written back to a checkpoint."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from math import isfinite
from typing import Any
from weakref import finalize

import torch
from torch import Tensor

from fedkin.engines.engine import Score
from fedkin.log import Log
from fedkin.messages import Kin
from fedkin.runs import files
from fedkin.runs.callback import Callback, Record
from fedkin.runs.diagnostics import mean_loss
from fedkin.runs.files import Damaged
from fedkin.runs.folder import KEPT, PICTURES, ROUNDS, SELECTED, RunFolder
from fedkin.runs.names import round_of, values_file

SNAPSHOTS = 100  # rounds of which pictures are kept


@dataclass
class Recorder(Callback):
    """Appends every round to the files of a run, and remembers how long these files are.

    Files stay open until the run ends. They have no buffer: what is appended is the system's at once, so that a kill
    loses nothing.
    """

    folder: RunFolder
    lengths: dict[str, int] = field(default_factory=dict)
    digests: dict[str, blake2b] = field(default_factory=dict, repr=False)  # of what was appended, by name
    drawn: dict[str, str] = field(default_factory=dict, repr=False)  # check sums of pictures, by name
    handles: dict[str, int] = field(default_factory=dict, repr=False)  # open files of the system, by name

    def __post_init__(self) -> None:
        finalize(self, close, self.handles)  # also where a run ends with an error

    def recorded(self, record: Record) -> None:
        if record.kin is not None:
            self.drawn |= self.folder.draw("kin", record.round, kin_tensors(record.kin))
        if record.marks:
            self.drawn |= self.folder.draw("marks", record.round, record.marks)
        for kind, score in (record.scores or {}).items():
            for metric, values in score.values.items() if len(score.count) > 1 or kind != "test" else ():
                if metric == "accuracy" or "/" not in kind:  # other metrics of validation samples: only their means
                    self.append(values_file(metric, kind), values.numpy().astype("<f8").tobytes())
        self.append(SELECTED, record.selected.astype("<i4").tobytes())
        self.append(KEPT, record.weights.astype("<f4").tobytes())
        self.append(ROUNDS, (json.dumps(record.line, allow_nan=False) + "\n").encode())

    def append(self, name: str, content: bytes) -> None:
        if name not in self.handles:
            self.handles[name] = self.folder.opened(name)
        files.write_whole(self.handles[name], content)
        self.lengths[name] = self.lengths.get(name, 0) + len(content)
        self.digests.setdefault(name, blake2b(digest_size=16)).update(content)

    def settle(self) -> None:
        """Flush what was appended to the disk, before a checkpoint says that it is there."""
        for (
            handle
        ) in self.handles.values():  # what an earlier process appended is on the disk since its last checkpoint
            files.settle(handle)

    def ended(self, finished: bool) -> None:
        close(self.handles)

    def cut(self, lengths: dict[str, int], round: int, drawn: dict[str, str] | None = None) -> None:
        """Cut the files back to these lengths and remove the pictures of later rounds than this one, and those that are
        not what was `drawn`; None: nobody knows what was."""
        for path in self.folder.appended():
            wanted = lengths.get(path.name, 0)
            size = path.stat().st_size if path.exists() else 0
            if size < wanted:
                raise Damaged(f"{path} is shorter than its checkpoint says")
            if wanted:
                os.truncate(path, wanted)
            else:
                path.unlink(missing_ok=True)
        for path in [path for kind in PICTURES for path in self.folder.picture_files(kind)]:
            name = f"{path.parent.name}/{path.name}"
            if round_of(path) > round or (drawn is not None and drawn.get(name) != files.checksum(path)):
                path.unlink()
        for path in [
            path for path in self.folder.checkpoints() if round_of(path) > round
        ]:  # damaged: else it was taken
            path.unlink()
            path.with_suffix(".safetensors").unlink(missing_ok=True)
        self.lengths, self.drawn = dict(lengths), dict(drawn or {})
        self.digests = {name: files.digest_of(self.folder.path / name, length) for name, length in lengths.items()}


WHOLE = 1_000_000  # weights of a component up to which all are written
NEAREST = 20  # weights of a client that are written where there are more


def close(handles: dict[str, int]) -> None:
    """Close these files, and forget them."""
    while handles:
        os.close(handles.popitem()[1])


def pictured(round: int, rounds: int, every: int) -> bool:
    """Whether the pictures of this scored round are kept: of at most 100 rounds, the last one included."""
    apart = every * -(-rounds // (every * (SNAPSHOTS - 1)))
    return round % apart == 0 or round == rounds


def kin_tensors(kin: Kin) -> dict[str, Any]:
    """Return who learned from whom as the tensors of a file: all weights or, of many clients, the largest of each."""
    kin = kin.whole() if len(kin.ids) * len(kin.sources) <= WHOLE else kin.largest(NEAREST)
    weights = {f"weights/{component}": value.float() for component, value in kin.weights.items()}
    nearest = {f"nearest/{component}": value.int() for component, value in kin.nearest.items()}
    return weights | nearest | {"ids": kin.ids, "sources": kin.sources}


def line(
    log: Log, scores: dict[str, Score] | None, parts: dict[str, dict[str, Any]], irrelevant: Tensor | None = None
) -> dict[str, Any]:
    """Return a round as rounds.jsonl has it; `parts` are further numbers, by who says them. Where it is known who is
    irrelevant, averages are over the others."""
    result: dict[str, Any] = {
        "round": log.round,
        "selected": len(log.selected),
        "replied": log.replied,
        "kept": log.counted,
        **asdict(log.traffic),
        "seconds": {name: round(value, 6) for name, value in log.seconds.items()},
    }
    if log.dropped:
        result["dropped"] = log.dropped
    if log.clipped:
        result["clipped"] = log.clipped
    if scores is not None:
        found: dict[str, dict[str, Any]] = {metric: {} for score in scores.values() for metric in score.values}
        for kind, score in scores.items():
            for metric in score.values:
                found[metric][kind] = averages(score, metric, None if kind == "test" else irrelevant)
        result |= {"accuracy": found.pop("accuracy")} if "accuracy" in found else {}
        result["metrics"] = found
        result["loss"] = {
            kind: mean_loss(score if kind == "test" else relevant(score, irrelevant)) for kind, score in scores.items()
        }
    return result | {name: value for name, value in parts.items() if value}


def averages(score: Score, metric: str = "accuracy", irrelevant: Tensor | None = None) -> dict[str, float | None]:
    """Return the macro value of a metric, the mean over clients, and the micro one, weighted by their samples.

    Where it is known who is irrelevant, (n,) bool, both are over the relevant clients; those over all clients, and over
    the irrelevant ones, have names of their own ('macro_all', 'macro_irrelevant').
    """
    if irrelevant is None or irrelevant.all() or not irrelevant.any():
        return averages_over(score, metric, slice(None))
    groups = {"": ~irrelevant, "_all": torch.ones_like(irrelevant), "_irrelevant": irrelevant}
    return {
        name + word: value for word, who in groups.items() for name, value in averages_over(score, metric, who).items()
    }


def relevant(score: Score, irrelevant: Tensor | None) -> Score:
    """Return the score of the clients that are not known to be irrelevant; of all where nobody else is there."""
    if irrelevant is None or irrelevant.all():
        return score
    who = ~irrelevant
    return Score(score.correct[who], score.loss[who], score.count[who])


def averages_over(score: Score, metric: str, who: Tensor | slice) -> dict[str, float | None]:
    """Return the two averages over those of some clients for whom the metric is defined; None where it is defined for
    none, or not finite."""
    values = (score.accuracy if metric == "accuracy" else score.values[metric])[who]
    have = ~values.isnan()
    if not have.any():
        return {"macro": None, "micro": None}
    count = score.count[who][have].double()
    right = score.correct[who].sum() if metric == "accuracy" else (values[have] * count).sum()
    found = {"macro": float(values[have].mean()), "micro": float(right / count.sum())}
    return {name: value if isfinite(value) else None for name, value in found.items()}


def in_order(scores: dict[str, Score]) -> dict[str, Score]:
    """Return the scores in the order of the record: `recv` and `global` of each split first, then the others."""
    first = [kind + suffix for suffix in ("", "/validation") for kind in ("recv", "global")]
    return {kind: scores[kind] for kind in [*first, *scores] if kind in scores}
