"""The samples of a dataset that has a name."""

from __future__ import annotations

from fedkin.data import hub
from fedkin.data.catalogue import CATALOGUE
from fedkin.data.digits import digits
from fedkin.data.samples import Samples
from fedkin.data.spec import Data, partition_argument, synthetic_arguments
from fedkin.data.synthetic import synthetic


def named(data: Data, progress: bool = True) -> Samples:
    entry = CATALOGUE[data.dataset]
    if entry.kind == "synthetic":
        natural = partition_argument(data.partition or entry.partition)[0] == "natural"
        clients = (data.clients if natural else None) or entry.clients or 100
        return synthetic(*synthetic_arguments(data.name), clients, data.seed)
    if entry.kind == "digits":
        return digits()
    return hub.samples(entry, progress)
