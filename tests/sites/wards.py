"""Tables of three sites that differ: in columns, in categories, in how dates are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedkin.sites import Here, Site, Sites, Table, meet

Told = dict[str, Any]
NAMES = ("north", "south", "west")


def column(name: str, kind: str = "number", **more: Any) -> Told:
    plain = {"categories": ["a", "b"], "other": False} if kind == "category" else {"varies": True}
    return {"name": name, "kind": kind, "missing": False} | plain | more


def site(*columns: Told, train: int = 100, labels: tuple[Any, ...] = ("no", "yes"), **more: Any) -> Told:
    told = {"kind": "table", "task": "classify", "target": "y", "labels": list(labels), "standardise": "site"}
    return told | {"columns": list(columns), "sizes": {"train": train, "test": 9}} | more


def frames() -> dict[str, pd.DataFrame]:
    """North has no column lactate, south another ward and days first, west a column of its own and few rows."""
    rng = np.random.default_rng(5)
    made = {}
    for name, size in zip(NAMES, (80, 60, 40), strict=True):
        day = pd.Timestamp("2024-01-15") + pd.to_timedelta(rng.integers(0, 300, size), unit="D")
        made[name] = pd.DataFrame(
            {
                "age": rng.integers(20, 95, size),
                "ward": rng.choice(["eyes", "heart", "skin"], size),
                "admitted": day.strftime("%d.%m.%Y" if name == "south" else "%Y-%m-%d"),
                "lactate": rng.normal(2, 0.5, size).round(2),
                "outcome": rng.choice(["home", "ward"], size),
            }
        )
    made["north"] = made["north"].drop(columns="lactate")
    made["south"].loc[:20, "ward"] = "bones"
    made["west"].insert(1, "smoker", rng.choice(["yes", "no"], 40))
    made["west"].loc[:9, "lactate"] = np.nan
    return made


def written(folder: Path, tables: Mapping[str, pd.DataFrame]) -> dict[str, Path]:
    """Write each site's table into a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return {name: folder / f"{name}.csv" for name in tables}


class Round:
    """Sites with a table each, in this process."""

    def __init__(self, folder: Path, files: Mapping[str, Path], options: Mapping[str, Any] | None = None):
        """`options` are those of all tables; under a site's name, those of its own."""
        self.folder, self.files, self.options = folder, files, dict(options or {})
        self.said: list[str] = []  # at the server
        self.heard: list[str] = []  # at the sites

    def table(self, name: str) -> Table:
        common = {key: value for key, value in self.options.items() if key not in self.files}
        return Table(name, self.files[name], **{"target_column": "outcome"} | common | self.options.get(name, {}))

    def site(self, name: str) -> Site:
        return Site(name, self.folder / "sites" / name, self.table(name), warn=self.heard.append)

    def here(self, kind: type[Here] = Here) -> Here:
        return kind({name: (lambda name=name: self.site(name)) for name in reversed(list(self.files))})

    def met(self, sites: int | None = None, transport: Here | None = None, **more: Any) -> Sites:
        count = len(self.files) if sites is None else sites
        return meet(transport or self.here(), count, warn=self.said.append, wait=0.0, pause=0.01, **more)
