"""FedAvg with a server that tolerates bad updates: Krum and Multi-Krum (Blanchard et al. 2017), and the trimmed mean
and the median of each number (Yin et al. 2018)."""

from dataclasses import replace

from fedkin.collaborate import Mean, Median, TrimmedMean
from fedkin.keep import Krum, MultiKrum
from fedkin.methods.fedavg import fedavg
from fedkin.parts import Method


def krum(f: float = 0.2) -> Method:
    """The update that is nearest to others gives the next model. `f` of the replies may be bad."""
    return replace(fedavg(), name="krum", keep=Krum(f), collaborate=Mean(weights="uniform"))


def multikrum(f: float = 0.2) -> Method:
    """The plain mean of the updates that are nearest to others. `f` of the replies may be bad."""
    return replace(fedavg(), name="multikrum", keep=MultiKrum(f), collaborate=Mean(weights="uniform"))


def trimmed_mean(trim: float = 0.1) -> Method:
    """The mean of each number without the share `trim` of the largest and of the smallest values."""
    return replace(fedavg(), name="trimmed_mean", collaborate=TrimmedMean(trim))


def median() -> Method:
    """The median of each number."""
    return replace(fedavg(), name="median", collaborate=Median())
