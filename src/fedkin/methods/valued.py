"""FedAvg with clients drawn by a value: Active FL (Goetz et al. 2019) and S-FedAvg (Nagalapatti et al. 2021)."""

from dataclasses import replace

from fedkin.collaborate import Mean
from fedkin.methods.fedavg import fedavg
from fedkin.parts import Method
from fedkin.select import Active, Shapley


def active(fraction: float = 0.2) -> Method:
    """Clients with a high loss are drawn more often."""
    return replace(fedavg(), name="active", select=Active(fraction=fraction))


def sfedavg(fraction: float = 0.2) -> Method:
    """Clients that raise the accuracy on the server's own samples are drawn more often; replies have equal weights."""
    return replace(fedavg(), name="sfedavg", select=Shapley(fraction=fraction), collaborate=Mean(weights="uniform"))
