"""Made-up runs, for pictures of more clients and rounds than a test can play."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fedkin as fk
from fedkin.runs import files, metrics
from fedkin.runs.recorder import Recorder

MadeUp = Callable[..., Path]


def made_up(
    folder: Path,
    n: int,
    ids: Sequence[Any],
    *,
    kept: Sequence[Any] | None = None,  # how far each counted, nan without a reply; 1 where not given
    irrelevant: Sequence[bool] | None = None,
    marks: dict[str, dict[int, Any]] | None = None,  # "select/score": {round: (n,)}
    filters: Sequence[dict[str, float | None] | None] | None = None,
    select: dict[str, float] | None = None,  # what the selection writes down in scored rounds
    method: fk.Method | None = None,
    name: str = "fedavg",
    names: Sequence[str] | None = None,
    post: Sequence[float] | None = None,  # clients' accuracies in every scored round
    seed: int = 0,
    every: int = 1,
    finished: bool = True,
) -> Path:
    """A run with these selections (a list of ids a round), as a method would have left it."""
    folder.mkdir(parents=True, exist_ok=True)
    rounds = len(ids)
    chosen = replace(method or fk.methods.fedavg(), name=name)
    about = fk.Experiment(chosen, fk.Data("digits", clients=n), rounds=rounds, seed=seed).described()
    about["resolved"] = {"clients": n, "evaluate_every": every, "parameters": 10}
    files.write_json(folder / "experiment.json", about)
    clients: dict[str, Any] = {"names": list(names or [str(i) for i in range(n)]), "train": [9] * n, "test": [3] * n}
    truth = {} if irrelevant is None else {"irrelevant": [bool(v) for v in irrelevant]}
    files.write_json(folder / "clients.json", clients | truth)
    recorder, lines = Recorder(folder), []
    for r in range(1, rounds + 1):
        who = np.asarray(ids[r - 1], dtype="<i4")
        weights = np.ones(len(who)) if kept is None else np.asarray(kept[r - 1], dtype=float)
        replied = int((~np.isnan(weights)).sum())
        line: dict[str, Any] = {"round": r, "selected": len(who), "replied": replied, "kept": float(np.nansum(weights))}
        line |= {"uploads": replied, "downloads": len(who), "bytes_up": 40 * replied, "bytes_down": 40 * len(who)}
        if filters is not None and filters[r - 1] is not None:
            line["filter"] = filters[r - 1]
        if r % every == 0 or r == rounds:
            line["accuracy"] = {"global": {"macro": r / rounds, "micro": r / rounds}}
            line |= {"select": select} if select else {}
            if post is not None:
                line["accuracy"]["post"] = {"macro": float(np.mean(post)), "micro": float(np.mean(post))}
                recorder.append("accuracy-post.bin", np.asarray(post, dtype="<f8").tobytes())
        recorder.append("selected.bin", who.tobytes())
        recorder.append("kept.bin", weights.astype("<f4").tobytes())
        recorder.append("rounds.jsonl", (json.dumps(line) + "\n").encode())
        stored = {key: torch.as_tensor(values[r]) for key, values in (marks or {}).items() if r in values}
        if stored:
            recorder.snapshot("marks", r, stored)
        lines.append(line)
    if finished:
        summary = {
            "method": name,
            "accuracy": metrics.accuracy(lines),
            "fairness": {},
            "stability": {},
            "cost": metrics.cost(lines, {}),
            "time": {"total_s": 1.0},
            "rounds": rounds,
            "evaluate_every": every,
            "dropped": 0,
            "never_selected": 0,
            "seeds": [seed],
            "experiment": about,
        }
        files.write_json(folder / "summary.json", summary)
    return folder


@pytest.fixture(name="made_up")
def fixture() -> MadeUp:
    return made_up
