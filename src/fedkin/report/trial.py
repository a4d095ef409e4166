"""One run as the report needs it. The report reads run folders only here and in `study.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from fedkin.parts import Kin
from fedkin.report.findings.participation import Participation
from fedkin.results import files
from fedkin.results.metrics import client_rounds
from fedkin.results.record import Run


class StoredRun(Run):
    """A run in its folder that reads each file at most once, except the kin, which may be large."""

    @cached_property
    def experiment(self) -> dict[str, Any]:
        return super().experiment

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        return super().rounds()

    @cached_property
    def stored_marks(self) -> dict[int, dict[str, Tensor]]:
        return super().pictures("marks")

    def rounds(self) -> list[dict[str, Any]]:
        return self.lines

    def pictures(self, kind: str) -> dict[int, dict[str, Tensor]]:
        return self.stored_marks if kind == "marks" else super().pictures(kind)


@dataclass(frozen=True)
class Trial:
    """One method with one seed, as far as it has come. It reads each file of its folder at most once."""

    seed: int
    run: StoredRun
    asked: int  # rounds

    def has(self, name: str) -> bool:
        return (self.run.folder / name).exists()

    @property
    def begun(self) -> bool:
        return self.has("experiment.json")

    @property
    def experiment(self) -> dict[str, Any]:
        return self.run.experiment

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """None if the run is not finished, or if more rounds are asked for by now than it has."""
        if not self.has("summary.json"):
            return None
        found = self.run.summary
        if found["rounds"] < self.asked:
            return None
        counted = {"client_rounds": client_rounds(self.lines)} | found["cost"]  # older versions wrote none
        return found | {"cost": counted}

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The rounds that are written down, a dictionary each."""
        return self.run.rounds() if self.has("rounds.jsonl") else []

    @property
    def scored(self) -> list[dict[str, Any]]:
        """The rounds in which accuracy was measured."""
        return [line for line in self.lines if "accuracy" in line]

    @cached_property
    def clients(self) -> dict[str, Any]:
        """The names of the clients, and what else was written down of each. Seeds differ in how samples are dealt."""
        n = int(self.experiment["resolved"]["clients"])
        stored: dict[str, Any] = files.read_json(self.run.folder / "clients.json") if self.lists_clients else {}
        known = {key: value for key, value in stored.items() if isinstance(value, list) and len(value) == n}
        return {"names": [str(i) for i in range(n)]} | known

    @property
    def lists_clients(self) -> bool:
        return self.has("clients.json")

    @property
    def reached(self) -> int:
        """The last round that is written down; 0 if there is none."""
        return int(self.lines[-1]["round"]) if self.lines else 0

    @cached_property
    def participation(self) -> Participation | None:
        """Who took part in which round; None before the first round."""
        if not self.lines or not self.has("selected.bin"):
            return None
        return Participation(self.clients["names"], self.clients.get("irrelevant"), self.run.selected(), self.kept())

    def kept(self) -> list[np.ndarray] | None:
        """How far the update of each selected client counted, by round. None if the method sends nothing, or if the run
        was begun by a version that did not write it down."""
        if not self.has("kept.bin") or not any(line["replied"] for line in self.lines):
            return None
        kept = self.run.kept()
        return kept if [len(row) for row in kept] == [line["selected"] for line in self.lines] else None

    def marks(self, part: str, name: str) -> dict[int, np.ndarray]:
        """What a part thought of every client, by round."""  # (n,) each
        return self.run.marks(part, name)

    def kin(self) -> dict[int, Kin]:
        """Who learned from whom, by round."""
        return self.run.kin() if self.begun else {}

    @cached_property
    def post(self) -> np.ndarray:
        """The clients' accuracies after local training in the last scored round."""  # (n,)
        last: np.ndarray = self.run.accuracy("post")[-1]
        return last
