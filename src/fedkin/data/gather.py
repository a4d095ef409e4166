"""`Data` -> `Federation`, whatever the source."""

from __future__ import annotations

from dataclasses import dataclass

from fedkin.data import hub, own
from fedkin.data.catalogue import CATALOGUE, Entry
from fedkin.data.digits import digits
from fedkin.data.divide import divide
from fedkin.data.federation import Federation
from fedkin.data.samples import Samples
from fedkin.data.spec import Data, partition_argument, synthetic_arguments
from fedkin.data.synthetic import synthetic
from fedkin.errors import require


def load(data: Data, progress: bool = True) -> Federation:
    """The federation that `data` describes; `progress` shows what is slow the first time, on stderr."""
    if data.own:
        samples = own.read(data)
        return divide(samples.checked(data.name), data)
    entry = CATALOGUE[data.dataset]
    _check_column(data, entry)
    return divide(_samples(data, entry, progress).checked(data.name), data, entry)


def _samples(data: Data, entry: Entry, progress: bool) -> Samples:
    if entry.kind == "synthetic":
        natural = partition_argument(data.partition or entry.partition)[0] == "natural"
        clients = (data.clients if natural else None) or entry.clients or 100
        return synthetic(*synthetic_arguments(data.name), clients, data.seed)
    if entry.kind == "digits":
        return digits()
    return hub.samples(entry, progress)


def _check_column(data: Data, entry: Entry) -> None:
    """`natural:column` of a named dataset can only be the column that its clients come from."""
    name, column = partition_argument(data.partition or entry.partition)
    if name == "natural" and column is not None:
        has = entry.columns[2] if len(entry.columns) == 3 else None
        hint = f"its clients are in the column '{has}'" if has else "it has no column of clients"
        require(column == has, f"{entry.name} cannot be divided by '{column}': {hint}.")


@dataclass(frozen=True)
class Listing:
    """A line of `fedkin data list`."""

    name: str
    description: str
    sources: tuple[str, ...]
    offline: bool  # whether it can be had now without a network


def datasets() -> list[Listing]:
    """Every named dataset, and whether it can be had without a network."""
    return [
        Listing(entry.name, entry.description, entry.sources, not entry.sources or hub.offline(entry) is not None)
        for entry in CATALOGUE.values()
    ]
