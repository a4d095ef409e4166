"""Loads the federation that a `Data` describes, and lists the named datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedkin.data import scenarios, sources
from fedkin.data.catalogue import CATALOGUE, Entry
from fedkin.data.divide import divide
from fedkin.data.federation import Federation
from fedkin.data.named_data import read_named
from fedkin.data.notation import ATTACKS, partition_argument, scenario_arguments
from fedkin.data.own_tables import read_own
from fedkin.data.prepare import prepared
from fedkin.data.samples import Samples
from fedkin.data.spec import Data
from fedkin.data.uncollected import uncollected
from fedkin.errors import require


@uncollected()
def load(data: Data, progress: bool = True) -> Federation:
    """The federation that `data` describes. `progress` shows slow first-time work on stderr."""
    entry = None if data.own else CATALOGUE[data.dataset]
    if entry is None:
        samples = read_own(data, progress)
    else:
        _check_column(data, entry)
        samples = read_named(data, progress)
    samples = samples.checked(data.name)
    if data.irrelevant is None:
        return _divided(samples, data, entry)
    kind, arguments = scenario_arguments(data.irrelevant)
    if kind == "odd_even":
        return scenarios.odd_even(samples, data)
    federation = _divided(samples, data, entry)
    share: Any = arguments[0]
    second: Any = arguments[1] if len(arguments) > 1 else None
    if kind in ATTACKS:
        return scenarios.attacked(federation, kind, share, second, data.seed)
    if kind == "ood":
        return scenarios.ood(federation, share, second, data.seed, progress)
    if kind == "target":
        return scenarios.target(federation, share, second, data.seed)
    return scenarios.flip(federation, share, second, data.seed)


def _divided(samples: Samples, data: Data, entry: Entry | None) -> Federation:
    """The federation of these samples. Rows of a table become samples after the division, by its training rows."""
    federation = divide(samples, data, entry)
    return federation if samples.table is None else prepared(federation, samples.table, data)


def _check_column(data: Data, entry: Entry) -> None:
    """Refuse `natural:column` of a named dataset unless the column is the one that names its clients."""
    name, column = partition_argument(data.partition or entry.partition)
    if name == "natural" and column is not None:
        has = "hospital" if entry.kind == "table" else entry.columns[2] if len(entry.columns) == 3 else None
        hint = f"its clients are in the column '{has}'" if has else "it has no column of clients"
        require(column == has, f"{entry.name} cannot be divided by '{column}': {hint}.")


@dataclass(frozen=True)
class Listing:
    """A line of `fedkin data list`."""

    name: str
    description: str
    sources: tuple[str, ...]
    offline: bool  # whether the dataset can be loaded now without a network


def datasets() -> list[Listing]:
    """Every named dataset, and whether it can be loaded now without a network."""
    return [
        Listing(
            entry.name,
            entry.description,
            entry.sources,
            not entry.sources or sources.offline_source(entry) is not None,
        )
        for entry in CATALOGUE.values()
    ]
