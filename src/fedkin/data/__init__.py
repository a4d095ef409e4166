"""Datasets, partitions, and federations: samples together with the clients that own them."""

from fedkin.data import scenarios
from fedkin.data.catalogue import CATALOGUE
from fedkin.data.federation import Federation, Index
from fedkin.data.loading import Listing, datasets, load
from fedkin.data.notation import PARTITIONS, parsed
from fedkin.data.own_data import from_clients
from fedkin.data.partition import partition
from fedkin.data.spec import Data

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
