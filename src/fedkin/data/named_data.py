"""Reads the samples of a dataset of the catalogue."""

from __future__ import annotations

from fedkin.data import sources
from fedkin.data.catalogue import CATALOGUE
from fedkin.data.digits import digits
from fedkin.data.heart import heart
from fedkin.data.heart_flamby import heart_flamby
from fedkin.data.notation import partition_argument, synthetic_arguments
from fedkin.data.samples import Samples
from fedkin.data.spec import Data
from fedkin.data.synthetic import synthetic


def read_named(data: Data, progress: bool = True) -> Samples:
    """The samples of the dataset `data.name`: generated, from scikit-learn, from a folder or from the hub."""
    entry = CATALOGUE[data.dataset]
    if entry.kind == "synthetic":
        natural = partition_argument(data.partition or entry.partition)[0] == "natural"
        clients = (data.clients if natural else None) or entry.clients or 100
        return synthetic(*synthetic_arguments(data.name), clients, data.seed)
    if entry.kind == "digits":
        return digits()
    if entry.kind == "table":
        return heart_flamby() if entry.name == "heart_flamby" else heart()
    return sources.read_samples(entry, progress)
