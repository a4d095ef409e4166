"""Is a method better than training alone? Its runs against those of Local, client by client and seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedkin.methods.local import alone
from fedkin.metrics import METRICS
from fedkin.parts import Method
from fedkin.runs.run import Run

LOCAL, MATCHED = "local", "local_matched"
LEVEL = 0.05  # of the paired test that calls a difference a win


def gain(theirs: Run, local: Run) -> np.ndarray:
    """Return how much better each client's last `post` is than what it reaches alone, for one seed.

    It is a difference of the metric that decides, and positive is better. A client whose loss is infinite gains or
    loses as much as the most extreme of the others.

    It is nan for clients known to be irrelevant: anything beats their own labels, so their gain would flatter every
    method.
    """  # (n,)
    metric = theirs.metric
    with np.errstate(invalid="ignore"):  # infinite minus infinite
        gained: np.ndarray = METRICS[metric].gain(theirs.last(metric)["post"], local.last(metric)["post"])
    most = np.abs(gained[np.isfinite(gained)]).max(initial=0.0)
    gained = np.clip(gained, -most, most)
    irrelevant = theirs.about_clients.get("irrelevant")
    return gained if irrelevant is None else np.where(irrelevant, np.nan, gained)


def verdict(gains: np.ndarray) -> dict[str, Any]:
    """Return how many clients are better and worse off than alone, and whether the difference is a win.

    `gains` has a row for each seed and a column for each client. A win is a paired Wilcoxon test over clients, of means
    over seeds, and the same sign in every seed.
    """
    from scipy import stats  # takes a second to import, and only a comparison needs it

    known = ~np.isnan(gains).any(0)  # a metric may be undefined for a client in one seed only
    per_client = gains[:, known].mean(0)
    p = 1.0 if np.allclose(per_client, 0) else float(stats.wilcoxon(per_client).pvalue)
    signs = np.sign(gains[:, known].mean(1))
    sure = p < LEVEL and len(set(signs.tolist())) == 1
    return {
        "better": float((gains[:, known] > 0).mean()),
        "worse": float((gains[:, known] < 0).mean()),
        "gain": float(per_client.mean()),
        "p": p,
        "verdict": ("better" if signs[0] > 0 else "worse") if sure else "no clear difference",
    }


def uneven(methods: Sequence[Method]) -> list[str]:
    """Return a sentence for each method whose clients train otherwise than Local's: its gain is not only its own."""
    local = next((method for method in methods if method.name == LOCAL), None)
    if local is None:
        return []
    efforts = {method.name: effort(method) for method in methods}
    return [
        f"{name} trains {theirs} a round, Local {efforts[LOCAL]}; set train.* alike before comparing the two."
        for name, theirs in efforts.items()
        if theirs != efforts[LOCAL]
    ]


def effort(method: Method) -> str:
    """Return what a client does in a round, as Local would have to do it."""
    train = alone(method).train
    how = f"{train.epochs} epoch(s)" if train.epochs else f"{train.steps} steps"
    extra = [f"{name} {value:g}" for name in ("momentum", "weight_decay") if (value := train.values()[name])]
    return ", ".join([f"{how} of batch {train.batch} at rate {train.eta:g}", *extra])
