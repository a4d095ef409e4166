"""Datasets, and how they are divided among clients."""

from fedkin.data import scenarios
from fedkin.data.catalogue import CATALOGUE
from fedkin.data.federation import Federation, Index
from fedkin.data.gather import Listing, datasets, load
from fedkin.data.own import from_clients
from fedkin.data.partition import partition
from fedkin.data.spec import PARTITIONS, Data, parsed

NAMES = tuple(CATALOGUE)

__all__ = [
    "NAMES",
    "PARTITIONS",
    "Data",
    "Federation",
    "Index",
    "Listing",
    "datasets",
    "from_clients",
    "load",
    "parsed",
    "partition",
    "scenarios",
]
