"""What a comparison says of methods that were tuned: with which budget, and whether it was the same for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fedkin.comparison.arms import methods_of
from fedkin.comparison.experiment_files import files_among
from fedkin.data import Data
from fedkin.errors import require
from fedkin.metrics import METRICS
from fedkin.runs.experiment import Experiment, data_from_json
from fedkin.runs.experiment_file import read_file
from fedkin.runs.verdict import is_local

Notes = dict[str, dict[str, Any]]  # by method: how it was tuned, as `fedkin tune` writes it
SEVERAL_SPLITS = (
    "The methods were tuned on one division of the samples, so rows that chose their settings are test rows of other "
    "splits and other seeds of the data; gains may be flattered."
)


def notes_of(targets: Sequence[object], experiments: Sequence[Experiment]) -> Notes:
    """Return how the methods of these experiments were tuned, as files among the targets say it.

    A note holds only for the very settings that were found. One that was found on other data or with another model is
    marked as from `elsewhere`.
    """
    found: Notes = {}
    for path in files_among(targets):
        stored = read_file(path)
        notes = checked(stored.get("tuned", {}), path)
        for method in methods_of(str(path)) if notes else ():
            for one in experiments:
                if method.name in notes and replace(method, name=one.method.name) == one.method:
                    found[one.method.name] = notes[method.name] | {"elsewhere": not same_place(stored, one)}
    return found


def checked(notes: Any, path: Path) -> Notes:
    """Return the notes of a file, or refuse them in one sentence."""
    whole = isinstance(notes, dict) and all(
        isinstance(note, dict) and all(isinstance(note.get(word), int) for word in ("trials", "rounds"))
        for note in notes.values()
    )
    require(whole, f"What {path} says under 'tuned' is not as fedkin tune writes it; take it out.")
    return dict(notes)


def same_place(stored: Mapping[str, Any], experiment: Experiment) -> bool:
    """Whether an experiment has the data, the model and the weights of the file that says how its method was tuned."""
    if not isinstance(experiment.data, Data) or "data" not in stored:
        return False
    words = [(stored.get(word), getattr(experiment, word)) for word in ("model", "class_weights")]
    return asdict(data_from_json(stored["data"])) == asdict(experiment.data) and all(a == b for a, b in words)


def tuned_sentences(methods: Sequence[str], notes: Notes) -> list[str]:
    """Return what a reader must know of how the methods of a comparison were tuned; nothing if none was."""
    if not notes:
        return []
    asked = [name for name in methods if not is_local(name)]
    budgets = {name: budget(notes[name]) for name in methods if name in notes}
    untuned = [name for name in asked if name not in budgets]
    if not untuned and len(set(budgets.values())) == 1:
        first = notes[next(iter(budgets))]
        what = METRICS[first["metric"]].label if first.get("metric") in METRICS else "score"
        said = [f"Every method tuned with the same budget: {budget(first)}, by validation {what}."]
    else:
        each = ", ".join(f"{name} ({words})" for name, words in budgets.items())
        rest = f" Not tuned: {', '.join(untuned)}." if untuned else ""
        said = [f"Not every method was tuned with the same budget. Tuned: {each}.{rest}"]
    alone = [name for name in methods if is_local(name) and name not in budgets]
    if alone:
        said.append(f"Not tuned itself: {', '.join(alone)}, which has the steps and the rate of a method.")
    elsewhere = [name for name in budgets if notes[name].get("elsewhere")]
    if elsewhere:
        said.append(f"Tuned on other data or with another model: {', '.join(elsewhere)}.")
    return said


def budget(note: Mapping[str, Any]) -> str:
    """Return how much was tried: '20 trials of 100 rounds', with the number of seeds if there are several."""
    seeds = len(note.get("seeds") or [0])
    return f"{note['trials']} trials of {note['rounds']} rounds" + (f" x {seeds} seeds" if seeds > 1 else "")


def tuned_cautions(notes: Collection[str], splits: int) -> list[str]:
    """Return what to beware of where tuned methods are compared on so many splits."""
    return [SEVERAL_SPLITS] if notes and splits > 1 else []
