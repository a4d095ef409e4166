"""What a run writes down of its data and of the choices made for it, before round 1."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fedkin.core import tree
from fedkin.data.federation import Federation
from fedkin.engines.convolution import WAYS
from fedkin.engines.network import Network
from fedkin.parts import Method
from fedkin.runs.experiment import Experiment
from fedkin.runs.setup import Setup

VERSIONS = ("fedkin", "torch", "numpy")
LABELLED = 100_000  # numbers up to which each client's training samples are written down by class
MANY = 5000  # clients from which on scoring a sample of them is suggested
LOOKED = 20_000  # samples that a fingerprint looks at


def resolved(federation: Federation, setup: Setup, method: Method) -> dict[str, Any]:
    """Return what experiment.json says under 'resolved': what the data are, and what was chosen for the run."""
    return {
        "clients": federation.n,
        "shape": list(federation.shape),
        "classes": federation.classes,
        "vocabulary": federation.vocabulary,
        "task": federation.task,
        "labels": list(federation.labels),
        "evaluate_every": setup.evaluate_every,
        **({} if setup.sample is None else {"scored_clients": len(setup.sample)}),
        "judged": method.judged if method.judged in setup.kinds else "post",
        "pools": method.train.pools,
        "chunk": setup.chunk,
        "threads": setup.threads,
        **convolved(setup.network),
        "parameters": tree.size([setup.task.model])[0],
        "source": federation.source,
        "fingerprint": fingerprint(federation),
        "versions": versions(),
    }


def convolved(network: Network) -> dict[str, str]:
    """Return in which way images are convolved, where that was chosen."""
    found = [name for name, way in WAYS.items() if network.fused is not None and network.fused.way == way]
    return {"convolutions": found[0]} if found else {}


def scored_words(resolved: Mapping[str, Any]) -> str:
    """Return of whom the scores are, where not all clients were scored; empty where they were."""
    number = resolved.get("scored_clients")
    return "" if number is None else f"scores of {number:,} of {resolved['clients']:,} clients, a fixed random sample"


def scoring_advice(experiment: Experiment, n: int) -> list[str]:
    """Return a sentence where so many clients are scored that a sample of them would do."""
    if n < MANY or experiment.score_clients is not None:
        return []
    return [
        f"All {n:,} clients are scored, which takes long; --score-clients 1000 scores a fixed random sample of them."
    ]


def about_clients(federation: Federation) -> dict[str, Any]:
    """Return what clients.json says; the names are empty where clients have none."""
    sizes = {"train": federation.train.sizes.tolist(), "test": federation.test.sizes.tolist()}
    here = federation.task == "classify" and not federation.elsewhere
    few = here and federation.n * federation.classes <= LABELLED
    labels = {"labels": federation.label_counts().tolist()} if few else {}
    truth = {} if federation.irrelevant is None else {"irrelevant": federation.irrelevant.tolist()}
    unit = {} if federation.target_scale is None else {"scale": federation.target_scale.tolist()}
    return {"names": list(federation.clients)} | sizes | labels | truth | unit


def fingerprint(federation: Federation) -> str:
    """Return a check sum of the data: who owns what, all labels, up to 20,000 samples, who is irrelevant, and
    what these upload instead of their updates.

    Of samples that lie elsewhere it is one of the check sums that were told (`source`).
    """
    digest = blake2b(digest_size=8)
    if federation.elsewhere:
        digest.update(json.dumps(federation.source, sort_keys=True).encode())
    step = max(1, len(federation.x) // LOOKED)
    lists = [index for index in (federation.train, federation.test, federation.validation) if index is not None]
    parts = [federation.y, federation.x[::step], *(t for index in lists for t in (index.rows, index.start))]
    for part in [*parts, federation.irrelevant] if federation.irrelevant is not None else parts:
        digest.update(part.contiguous().numpy().tobytes())
    if federation.attack is not None:
        digest.update(f"{federation.attack.kind} {federation.attack.strength}".encode())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
