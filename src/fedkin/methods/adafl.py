"""AdaFL: attention decides which clients train, a schedule decides how many, in front of any base method.

Round t:
    select       K = fraction(t) N clients in proportion to their scores a_i
    the base     trains them and makes the new model W
    select       a_i <- alpha a_i + (1 - alpha) (d_i / sum d) sum a over the selected (2), d_i = |W - W_i|
"""

from dataclasses import replace

from fedkin.methods.bases import require_method
from fedkin.methods.fedavg import fedavg
from fedkin.parts import Method
from fedkin.select import Attention, Constant, Steps


def adafl(
    base: Method | None = None, alpha: float = 0.9, start: float = 0.1, end: float = 0.5, levels: int = 5
) -> Method:
    """The base method with AdaFL's selection. The base is FedAvg if none is given."""
    require_method(base)
    chosen = base or fedavg()
    name = "adafl" if base is None else f"adafl_{base.name}"
    return replace(chosen, name=name, select=Attention(alpha, Steps(start, end, levels)))


def attn(fraction: float = 0.1, alpha: float = 0.9, base: Method | None = None) -> Method:
    """Attention with a constant fraction: one ablation of AdaFL."""
    require_method(base)
    name = "attn" if base is None else f"attn_{base.name}"
    return replace(base or fedavg(), name=name, select=Attention(alpha, Constant(fraction)))


def dyn_fedavg(start: float = 0.1, end: float = 0.5, levels: int = 5) -> Method:
    """The dynamic fraction with fixed probabilities n_i / n: the other ablation of AdaFL."""
    return replace(fedavg(), name="dyn_fedavg", select=Attention(1.0, Steps(start, end, levels)))
