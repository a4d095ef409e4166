"""Generates the synthetic(alpha, beta) dataset of FedProx, as pFedMe and FedMCSA use it.

Each client draws a softmax model and a distribution of inputs, and its labels are what its model says of its inputs.
`alpha` is the spread of the clients' models, `beta` the spread of their inputs. The draws and their order are those of
the published script (numpy's legacy generator), so that seed 0 gives the published sizes.
"""

from __future__ import annotations

import numpy as np
import torch

from fedkin.core.machine import free, readable
from fedkin.data.samples import Samples
from fedkin.errors import require

FEATURES, CLASSES = 60, 10
MEAN = 2267  # samples of a client: 5 (exp(4 + 2) + 50)


def sizes(stream: np.random.RandomState, clients: int) -> np.ndarray:  # (n,)
    """The clients' numbers of samples, drawn from a log-normal distribution."""
    return (stream.lognormal(4, 2, clients).astype(int) + 50) * 5


def check_room(clients: int) -> None:
    """Refuse more clients than there is memory for their samples, before any is drawn."""
    need = int(clients * MEAN * FEATURES * 4 * 2.5)  # what is drawn, and all of it joined
    said = f"{clients:,} synthetic clients need about {readable(need)}, and {readable(free())} are free"
    require(need <= free(), f"{said}; take fewer --clients.")


def synthetic(alpha: float, beta: float, clients: int, seed: int) -> Samples:
    """The samples of all clients, one client after another."""
    check_room(clients)
    stream = np.random.RandomState(seed)
    size = sizes(stream, clients)
    model_mean = stream.normal(0, alpha, clients)  # u
    input_mean = stream.normal(0, beta, clients)  # B
    centre = np.stack([stream.normal(mean, 1, FEATURES) for mean in input_mean])  # v, (n, 60)
    spread = np.sqrt(np.arange(1, FEATURES + 1) ** -1.2)  # square root of the diagonal of Sigma

    features, labels = [], []
    for mean, middle, count in zip(model_mean, centre, size, strict=True):
        weight = stream.normal(mean, 1, (FEATURES, CLASSES))
        bias = stream.normal(mean, 1, CLASSES)
        # the same bits as multivariate_normal(middle, Sigma), which would decompose Sigma again for every client
        x = stream.standard_normal((count, FEATURES)) * spread + middle  # (n_i, 60)
        features.append(x.astype(np.float32))
        labels.append(np.argmax(x @ weight + bias, axis=1))

    return Samples(
        x=torch.from_numpy(np.concatenate(features)),
        y=torch.from_numpy(np.concatenate(labels)),
        classes=CLASSES,
        owner=np.repeat(np.arange(clients), size),
        owners=tuple(str(client) for client in range(clients)),
        source={"kind": "generated", "id": f"synthetic({alpha}, {beta})", "rows": {"train": int(size.sum())}},
    )
