"""`Data`, the user's description of a federation: a frozen record that can be written as JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Literal

from fedkin.data.catalogue import CATALOGUE
from fedkin.data.notation import parsed, partition_argument, scenario_arguments, synthetic_arguments
from fedkin.data.read_files import CONVERTED, TABLES
from fedkin.errors import require, unknown

CHOICES = {  # the values that these fields may have
    "holdout": ("split", "official"),
    "standardise": ("none", "site", "all"),
    "task": ("classify", "regress"),
}
FREE = ("name", "test", "irrelevant", "seed", "split", "without")  # fields that a published division leaves open


def is_path(name: str) -> bool:
    """Whether a dataset's name is a path to the user's own data.

    A path with a separator or a known ending need not exist, so that the record of a run can be read on any machine.
    """
    separators = {"/", os.sep}
    return name not in CATALOGUE and (
        any(separator in name for separator in separators)
        or name in {".", ".."}
        or PurePath(name).suffix.lower() in (*TABLES, *CONVERTED)
        or os.path.exists(name)
    )


BELOW = 2**32 - 1  # which numpy's seeds are


@dataclass(frozen=True)
class Data:
    """Which samples a federation has, how they are divided among how many clients, and what is held out.

    `name`: a dataset of `fedkin data list`, with arguments if it takes some, or a path to own data.
    `partition`: the rule that gives samples to clients. None is the dataset's default.
    `clients`: the number of clients. None is the dataset's default; with natural clients a number takes that many of
    them at random.
    `samples`: the most training samples a client may have. Test and validation sets are not cut.
    `test`, `validation`: the fractions of each client's own samples that are held out.
    `holdout`: "split" pools the official splits and holds out a part of every client's share. "official" divides the
    official training split, takes the official test split as the common test set, and gives each client the part of it
    that has the client's class proportions.
    `minimum`: the fewest samples a client may have. The partition dirichlet moves samples to reach it; with natural
    clients those with fewer samples are dropped.
    `client`, `target`: the columns of own data that hold a sample's client and what is to be predicted of it.
    `features`, `drop`: the only columns of a table that are used, or columns that are not; None is all and none.
    `standardise`: by which training rows the numbers of a table are standardised: each site by its own ("site"), by
    those of all sites ("all"), or not at all ("none"). Missing values are filled in each case.
    `task`: whether own data are to be classified or regressed. None is by the target: numbers with a fraction are
    regressed.
    `server`: the number of samples that are taken out before the partition, for the server's own validation set.
    `irrelevant`: which clients are of no use to the others. "flip:0.2" gives wrong labels to a fifth
    of the clients ("flip:0.1,0.2": to a fifth of the samples of a tenth of the clients). "ood:0.1" gives a tenth of the
    clients samples out of distribution: their own with permuted features, or noise ("ood:0.1,noise"), or those of
    another dataset. "target:0.2" lets a fifth of the clients call one class by the next one ("target:0.2,7": class 7).
    "odd_even" ("odd_even:6,4") makes 6 relevant and 4 irrelevant clients. Held-out samples stay clean. In
    "scale:0.1,-10", "sign:0.3" and "alie:0.2" all samples do, and irrelevant clients upload other updates than theirs.
    `Federation.irrelevant` says which clients are irrelevant, and only the evaluation sees it.
    `split`: the number of the division of each client's samples into training and held-out ones; each number is another
    random division of the same samples.
    `without`: names of clients that are left out, as if they had never been there.
    `seed`: the seed of everything random about the data. It is not the experiment's seed, so that experiments with
    different seeds can share their data.
    """

    name: str = "synthetic"
    partition: str | None = None
    clients: int | None = None
    samples: int | None = None
    test: float = 0.25
    validation: float = 0.0
    holdout: Literal["split", "official"] = "split"
    minimum: int | None = None
    client: str | None = None
    target: str | None = None
    server: int = 0
    irrelevant: str | None = None
    seed: int = 0
    split: int = 0
    without: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None
    standardise: Literal["none", "site", "all"] = "site"
    task: Literal["classify", "regress"] | None = None

    def __post_init__(self) -> None:
        self._check_name()
        self._check_numbers()
        self._check_sites()
        self._check_columns()
        self._check_published()
        if self.partition is not None:
            require(isinstance(self.partition, str), f"The partition must be text, not {self.partition!r}.")
            name, column = partition_argument(self.partition)
            require(
                name != "natural" or column is None or self.client in (None, column),
                f"partition='{self.partition}' and client='{self.client}' name two different columns; give one.",
            )
        if self.irrelevant is not None:
            require(isinstance(self.irrelevant, str), f"'irrelevant' must be text, not {self.irrelevant!r}.")
            kind, _ = scenario_arguments(self.irrelevant)
            require(
                kind != "odd_even" or (self.partition is None and self.clients is None),
                "'odd_even' makes its own clients; leave 'partition' and 'clients' out, and write 'odd_even:6,4' for "
                "other numbers of them.",
            )

    def _check_name(self) -> None:
        require(isinstance(self.name, str) and self.name.strip(), "A dataset needs a name or a path.")
        if self.own:
            return
        name, arguments = parsed(self.name)
        if name not in CATALOGUE:
            raise unknown("dataset", name, CATALOGUE)
        if name == "synthetic":
            synthetic_arguments(self.name)
        else:
            require(not arguments, f"The dataset '{name}' takes no arguments; write '{name}', not '{self.name}'.")

    def _check_sites(self) -> None:
        if self.without is not None:
            names = isinstance(self.without, list | tuple) and all(isinstance(name, str) for name in self.without)
            require(names, f"'without' is a list of clients' names, not {self.without!r}.")
            object.__setattr__(self, "without", tuple(sorted(set(self.without))) or None)  # JSON has lists
        official = self.holdout == "official" or str(self.irrelevant).startswith("odd_even")
        require(not (self.split and official), "An official test set is one split; several need holdout='split'.")

    def _check_columns(self) -> None:
        for field, choices in CHOICES.items():
            if (value := getattr(self, field)) not in choices and (field != "task" or value is not None):
                raise unknown(field, str(value), choices)
        for field, value in (("client", self.client), ("target", self.target)):
            named = value is None or (isinstance(value, str) and value)
            require(named, f"'{field}' must be the name of a column, not {value!r}.")
        for field in ("features", "drop"):
            columns = getattr(self, field)
            if isinstance(columns, list):  # as JSON gives it
                object.__setattr__(self, field, columns := tuple(columns))
            several = isinstance(columns, tuple) and columns and all(isinstance(name, str) and name for name in columns)
            require(columns is None or several, f"'{field}' must be a list of columns, not {columns!r}.")
        require(
            self.own or (self.client is None and self.target is None and self.task is None),
            f"'client', 'target' and 'task' are for own data; {self.name} has its own.",
        )
        require(
            self.has_table or (self.features is None and self.drop is None and self.standardise != "all"),
            f"'features', 'drop' and 'standardise' are for tables; {self.name} has no columns and is prepared already.",
        )

    def _check_published(self) -> None:
        """Refuse other ways to prepare and divide a dataset that is used as published; set the share it holds out."""
        share = None if self.own else CATALOGUE[self.dataset].test
        if share is None:
            return
        default = {field.name: field.default for field in fields(self)}
        given = [name for name in default if name not in FREE and getattr(self, name) != default[name]]
        given += ["test"] if self.test not in (default["test"], share) else []
        free = "only its split, its seed, 'without' and 'irrelevant' are free"
        require(
            not given, f"{self.name} is prepared and divided as published, and {free}; leave out {', '.join(given)}."
        )
        object.__setattr__(self, "test", share)

    def _check_numbers(self) -> None:
        numbers = {"clients": 1, "samples": 1, "minimum": 0, "server": 0, "seed": 0, "split": 0}
        for field, least in numbers.items():
            value = getattr(self, field)
            if value is None and field not in ("seed", "server", "split"):
                continue
            require(
                isinstance(value, int) and not isinstance(value, bool) and least <= value < BELOW,
                f"'{field}' must be a whole number of at least {least} and below 2**32 - 1, not {value!r}.",
            )
        for field in ("test", "validation"):
            value = getattr(self, field)
            require(
                isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1,
                f"'{field}' must be a fraction from 0 to below 1, not {value!r}.",
            )
        require(
            self.test + self.validation < 1,
            f"test={self.test} and validation={self.validation} leave nothing to train on; lower one.",
        )

    @property
    def own(self) -> bool:
        """Whether the name is a path to the user's own data."""
        return is_path(self.name)

    @property
    def has_table(self) -> bool:
        """Whether the samples may be rows of a table, with columns of their own."""
        return self.own or CATALOGUE[self.dataset].kind == "table"

    @property
    def dataset(self) -> str:
        """The dataset's name without its arguments, or the last part of the path to own data."""
        return (PurePath(self.name).stem or "own") if self.own else parsed(self.name)[0]
