"""The table of a site as its samples, and how the site's configuration names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedkin.data.federation import Federation, Task
from fedkin.data.own_data import Pair
from fedkin.data.read_files import read_file
from fedkin.data.spec import Data
from fedkin.errors import BadInput, require, unknown
from fedkin.sites.columns import Column, told_column
from fedkin.sites.rows import Rows, read_rows
from fedkin.sites.samples import Arrays, Samples, Unreadable
from fedkin.sites.table_samples import check_agreed, made

OPTIONS = ("target-column", "client-column", "client", "features", "drop", "test", "validation", "seed")
KEYS = ("data", *OPTIONS, "standardise", "task")  # of a site's configuration, which are read here
OTHERS = ("name", "folder", "modules", "partition-id", "num-partitions")  # which are read elsewhere


@dataclass(frozen=True)
class Table:
    """The rows of a file, or of all files of a folder, as the samples of the site `name`.

    `target_column` is what is to be predicted. With a `client_column` only the rows of `client` are taken, which is the
    site's name unless it is said; of a folder without such a column, only the file called `client`. `features` are the
    only columns that are used, `drop` are columns that are not. `standardise` is "site", by the site's own training
    rows, or "none". `task`, "classify" or "regress", says what many whole numbers are.
    """

    name: str
    path: Path | str
    _: KW_ONLY
    target_column: str | None = None
    client_column: str | None = None
    client: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    test: float = 0.25
    validation: float = 0.0
    seed: int = 0
    standardise: Literal["site", "none"] = "site"
    task: Task | None = None

    def __post_init__(self) -> None:
        sentence = (
            "Sites do not tell their means, so numbers are not standardised over all sites; say 'site' or 'none'."
        )
        require(self.standardise in ("site", "none"), sentence)
        self.asked()  # for its checks

    def asked(self) -> Data:
        """Return how the rows are used and divided, as one says it for a simulation."""
        return Data(
            f"./{Path(self.path).name}",
            test=self.test,
            validation=self.validation,
            target=self.target_column,
            seed=self.seed,
            features=None if self.features is None else tuple(self.features),
            drop=tuple(self.drop) or None,
            standardise=self.standardise,
            task=self.task,
        )

    @cached_property
    def rows(self) -> Rows:
        """The site's rows, as they are."""
        path = Path(self.path).expanduser()
        try:
            return read_rows(path, self.name, self.asked(), self.client_column, self.client)
        except BadInput as error:
            raise Unreadable(str(error)) from error

    @cached_property
    def columns(self) -> list[Column]:
        """What the server is told of the columns, by training rows only."""
        training = self.rows.frame.iloc[self.rows.parts[0]]
        return [told_column(training[name], name in (self.features or ())) for name in training.columns]

    def told(self) -> dict[str, Any]:
        rows = self.rows
        if rows.x is not None:
            raise Unreadable("These samples are no rows of a table; give them as sites.Arrays.")
        labels = np.unique(rows.values) if rows.task == "classify" else rows.values[:0]
        return {
            "kind": "table",
            "sizes": dict(zip(("train", "validation", "test"), map(len, rows.parts), strict=True)),
            "task": rows.task,
            "target": rows.target,
            "labels": (labels if labels.dtype.kind == "U" else labels.astype(np.int64)).tolist(),
            "standardise": self.standardise,
            "columns": self.columns,
        }

    def federation(self, agreed: dict[str, Any]) -> Federation:
        check_agreed(agreed, self.told())
        return made(self.name, self.rows, self.columns, agreed, self.standardise)

    def digest(self, key: bytes) -> str:
        rows = self.rows
        parts = rows.frame.to_csv(index=False), rows.values.tolist(), [part.tolist() for part in rows.parts]
        return blake2b(repr(parts).encode(), digest_size=16, key=key).hexdigest()


def from_config(name: str, config: Mapping[str, Any]) -> Samples:
    """Return the samples that a site's own configuration names; all its values may be texts.

    It has `data`, which is a path, and the options of `Table` with dashes; `features` and `drop` are lists with commas.
    Images and other arrays in an npz file become `Arrays`.
    """
    for key in config:
        if key not in (*KEYS, *OTHERS):
            raise unknown("key of a site's configuration", key, (*KEYS, *OTHERS))
    require(config.get("data"), "A site's configuration names its data; add data='table.csv' to it.")
    options = {key.replace("-", "_"): option(key, config[key]) for key in KEYS[1:] if key in config}
    table = Table(name, str(config["data"]), **options)
    path = Path(table.path).expanduser()
    if path.suffix.lower() != ".npz" or not path.exists() or read_file(path).x is None:
        return table
    return Arrays(name, lambda: pair(table), None, table.task, table.test, table.validation, table.seed)


def pair(table: Table) -> Pair:
    """Return the images of a site and their labels."""
    images = table.rows.x
    assert images is not None  # the file was looked at
    return images, table.rows.values


def option(key: str, value: Any) -> Any:
    """Return an option of a site's configuration as `Table` wants it; refuses a number that is none."""
    if key in ("features", "drop"):
        return tuple(word.strip() for word in str(value).split(",") if word.strip())
    try:
        return {"test": float, "validation": float, "seed": int}.get(key, str)(value)
    except ValueError:
        raise BadInput(f"In a site's configuration '{key}' is a number, not '{value}'.") from None
