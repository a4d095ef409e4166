"""What a preset came to: the numbers of its cells, its claims judged, and its curves, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from fedkin.presets.claims import Claim, judged
from fedkin.presets.preset import Cell, Curve, Preset, needed
from fedkin.presets.readings import Reading, Score
from fedkin.reproduce.store import Store
from fedkin.runs.experiment import Experiment
from fedkin.runs.run import Run

Outcome = dict[str, Any]
POINTS = 60  # of a curve, at most


def outcome(preset: Preset, store: Store) -> Outcome:
    """Read what the finished runs of a preset say. A cell whose runs are not there has no values."""
    read = Reader(preset, store)
    cells = [read.cell(cell) for cell in preset.cells]
    found: Outcome = {
        "preset": preset.name,
        "scale": preset.scale,
        "title": preset.title,
        "note": preset.note,
        "axis": preset.axis,
        "vary": list(preset.vary),
        "rows": preset.rows,
        "columns": preset.columns,
        "cells": cells,
        "claims": [claimed(claim, cells, preset.overlap) for claim in preset.claims],
        "curves": [read.curve(curve) for curve in preset.curves],
        "rounds": sorted({cell.experiment.rounds for cell in preset.cells}),
        "runs": len(read.runs),
        "seconds": float(sum(run.summary["time"]["total_s"] for run in read.runs.values())),
    }
    return found | ({"picked": read.picked} if read.picked else {})


class Reader:
    """Reads cells and curves; each run is read once."""

    def __init__(self, preset: Preset, store: Store):
        self.preset, self.store = preset, store
        self.runs: dict[str, Run] = {}
        self.bases: dict[tuple[str, str], float | None] = {}
        self.picked: dict[str, list[Any]] = {}  # by cell: the method that validation samples chose, of each repetition

    def repetitions(self, of: Cell | Curve, less: bool = False) -> list[Run | None]:
        """The runs of a cell, None where one is not done."""
        if isinstance(of, Cell) and of.candidates:
            return [self.chosen(of, k) for k in range(self.preset.repetitions(of))]
        experiment = of.less if less and isinstance(of, Cell) else of.experiment
        assert experiment is not None
        return [self.run(experiment, k) for k in range(self.preset.repetitions(of))]

    def run(self, experiment: Experiment, k: int) -> Run | None:
        """Repetition k of an experiment, if it is done."""
        one = self.preset.repeated(experiment, k)
        key = str(self.store.place(one).path)
        if key not in self.runs and (run := self.store.finished(one)) is not None:
            self.runs[key] = run
        return self.runs.get(key)

    def chosen(self, cell: Cell, k: int) -> Run | None:
        """The candidate that is best by its validation samples; None while some candidate is not done."""
        runs = [self.run(one, k) for one in cell.candidates]
        if any(run is None for run in runs):
            return None
        assert isinstance(cell.reading, Score)
        values = [validated(run, cell.reading) for run in runs if run is not None]
        best = runs[int(np.argmax(values))]
        assert best is not None
        self.picked.setdefault(f"{cell.row}, {cell.column}", []).append(best.experiment["method"])
        return best

    def cell(self, cell: Cell) -> Outcome:
        values = self.values(cell)
        said: Outcome = {"row": cell.row, "column": cell.column, "is": cell.reading.words}
        if cell.less is not None:
            other = (cell.less_reading or cell.reading).words
            same = other == cell.reading.words
            said["is"] = f"difference of: {cell.reading.words}" if same else f"{cell.reading.words}, less {other}"
        said |= {"repetitions": list(values), "values": list(values.values())}
        said["digests"] = [digest(self.preset, cell, k, self.store) for k in values]
        if (base := self.base(cell.reading)) is not None:
            said["base"] = base
        if cell.published is not None:
            said["published"] = cell.published
        if cell.spread is not None:
            said["published_spread"] = cell.spread
        return said

    def values(self, cell: Cell) -> dict[int, float | None]:
        """The number of each repetition that was run; None where a run has no such number."""
        base = self.base(cell.reading)
        runs = self.repetitions(cell)
        others = self.repetitions(cell, less=True) if cell.less is not None else [None] * len(runs)
        found: dict[int, float | None] = {}
        for k, (run, other) in enumerate(zip(runs, others, strict=True)):
            if run is None or (cell.less is not None and other is None):
                continue
            value = cell.reading.read(run, base)
            if value is not None and other is not None:
                lower = (cell.less_reading or cell.reading).read(other, base)
                value = None if lower is None else value - lower
            found[k] = None if value is None else round(float(value), 6)
        return found

    def base(self, reading: Reading) -> float | None:
        """The mean of the cell that a reading is relative to."""
        if reading.over is None:
            return None
        if reading.over not in self.bases:
            cell = next(one for one in self.preset.cells if (one.row, one.column) == reading.over)
            values = [value for value in self.values(cell).values() if value is not None]
            self.bases[reading.over] = float(np.mean(values)) if values else None
        return self.bases[reading.over]

    def curve(self, curve: Curve) -> Outcome:
        """The mean over repetitions by round, and the lowest and highest; of at most POINTS rounds."""
        several = [curve.reading.series(run) for run in self.repetitions(curve) if run is not None]
        rounds = sorted(set.intersection(*(set(one) for one in several))) if several else []
        kept = [rounds[i] for i in sorted(set(np.linspace(0, len(rounds) - 1, min(len(rounds), POINTS)).astype(int)))]
        values = np.array([[one[r] for r in kept] for one in several])  # (repetitions, points)
        said: Outcome = {"name": curve.name, "panel": curve.panel, "is": curve.reading.words, "rounds": kept}
        said["digest"] = digest(self.preset, curve, 0, self.store)
        return said | {
            word: [round(float(v), 4) for v in f(values, axis=0)] if kept else []
            for word, f in (("mean", np.mean), ("low", np.min), ("high", np.max))
        }


def digest(preset: Preset, of: Cell | Curve, k: int, store: Store) -> str:
    """What tells the runs behind repetition k of a cell from all others: their places in the store."""
    places = [str(store.place(preset.repeated(one, k)).path.relative_to(store.path)) for one in needed(of)]
    return blake2b("|".join(places).encode(), digest_size=5).hexdigest()


def completed(found: Outcome, before: Outcome, preset: Preset, store: Store) -> Outcome:
    """Return an outcome with what an earlier one has of runs that are not in this store, so that a result may be made
    piece by piece on several machines. Only numbers of the very same runs are taken over; claims are judged anew."""
    old = {(cell["row"], cell["column"]): cell for cell in before["cells"]}
    cells, taken = [], 0
    for cell, place in zip(found["cells"], preset.cells, strict=True):
        there = dict(zip(cell["repetitions"], cell["values"], strict=True))
        other = old.get((place.row, place.column), {"repetitions": [], "values": [], "digests": []})
        based = cell.get("base") in (None, other.get("base"))  # a target that another number sets is another target
        for k, value, run in zip(other["repetitions"], other["values"], other.get("digests", []), strict=False):
            if k not in there and k < preset.repetitions(place) and based and run == digest(preset, place, k, store):
                there[k], taken = value, taken + 1
        order = sorted(there)
        numbers = {"repetitions": order, "values": [there[k] for k in order]}
        base = {"base": other["base"]} if "base" not in cell and "base" in other and there else {}
        cells.append(cell | base | numbers | {"digests": [digest(preset, place, k, store) for k in order]})
    if not taken:
        return found
    drawn = {(curve["name"], curve["panel"], curve.get("digest")): curve for curve in before["curves"]}
    curves = [
        curve if curve["rounds"] else drawn.get((curve["name"], curve["panel"], curve["digest"]), curve)
        for curve in found["curves"]
    ]
    claims = [claimed(claim, cells, preset.overlap) for claim in preset.claims]
    spent = {name: found[name] + before[name] for name in ("runs", "seconds")}
    return found | {"cells": cells, "curves": curves, "claims": claims} | spent


def validated(run: Run, reading: Score) -> float:
    """The best validation accuracy of a run, over its scored rounds."""
    values = [line["accuracy"].get(f"{reading.kind}/validation", {}).get(reading.average) for line in run.scored]
    known = [value for value in values if value is not None]
    return max(known) if known else -np.inf


def claimed(claim: Claim, cells: list[Outcome], overlap: float = 0.0) -> Outcome:
    """Judge a claim by the cells that were run."""
    values: Mapping[tuple[str, str], dict[int, float | None]] = {
        (cell["row"], cell["column"]): dict(zip(cell["repetitions"], cell["values"], strict=True)) for cell in cells
    }
    return judged(claim, values, overlap)
