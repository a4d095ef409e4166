"""Makes the files and the runs without fault, of which the fuzzer and the damage suite take copies."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from forked import command
from fuzz_files import SITES, TEXTS, X, Y

import fedkin as fk

QUICK = ("--data", "../table.csv", "--evaluate-every", "1", "--threads", "1")


class Stops(fk.Callback):
    """Stops FedMCSA after two rounds."""

    def recorded(self, record: fk.Record) -> bool:
        return record.method != "fedmcsa" or record.round < 2


def make_whole(place: Path) -> int:
    """Make tables, a comparison, one that was stopped, a tuning, an exported model and a federation's folder."""
    torch.set_num_threads(1)
    tables(place)
    runs = place / "runs"
    runs.mkdir()
    os.chdir(runs)
    asked: dict[str, Any] = {"rounds": 3, "evaluate_every": 1, "threads": 1}
    data = fk.Data("../table.csv")
    fk.compare(["fedmcsa"], data, folder=runs / "whole", **asked)
    with suppress(fk.BadInput):  # it says that it was stopped
        fk.compare(["fedmcsa"], data, folder=runs / "half", callbacks=[Stops()], **asked)
    commands = (
        ("report", "whole"),
        ("tune", "fedavg", *QUICK, "--rounds", "1", "--trials", "2", "--out", "tuned"),
        ("export", "whole", "--client", "north", "-o", "model"),
        ("federation", "init", "study", "--sites", "a,b"),
    )
    return max(command(words, often=False) for words in commands)


def tables(place: Path) -> None:
    """Make a small table in every kind of file, and an experiment."""
    frame = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "label": Y, "client": SITES}).round(3)
    frame.to_csv(place / "table.csv", index=False)
    frame.to_csv(place / "table.tsv", index=False, sep="\t")
    frame.to_parquet(place / "table.parquet")
    frame.to_excel(place / "table.xlsx", index=False)
    frame.to_pickle(place / "table.pkl")
    np.savez(place / "table.npz", x=X, y=Y, client=SITES)
    torch.save({"x": torch.from_numpy(X)}, place / "table.pt")
    for kind in ("jsonl", "ndjson"):
        frame.to_json(place / f"table.{kind}", orient="records", lines=True)
    stored = fk.Experiment(fk.methods.fedavg(), fk.Data("digits", clients=3), rounds=2).described()
    (place / "table.json").write_text(json.dumps(stored))
    (place / "table.toml").write_text(str(TEXTS["experiment.toml"]))
    (place / "sites").mkdir()
    for name in ("north", "south"):
        frame[frame["client"] == name].drop(columns="client").to_csv(place / f"sites/{name}.csv", index=False)
