"""Is a method better than training alone? Its runs against those of Local, client by client and seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedkin.methods.local import alone
from fedkin.parts import Method
from fedkin.runs.run import Run

LOCAL, MATCHED = "local", "local_matched"
LEVEL = 0.05  # of the paired test that calls a difference a win


def gain(theirs: Run, local: Run) -> np.ndarray:
    """Return each client's last `post` accuracy minus what it reaches alone, for one seed.

    It is nan for clients known to be irrelevant: anything beats their own labels, so their gain would flatter every
    method.
    """  # (n,)
    gained: np.ndarray = theirs.accuracies["post"] - local.accuracies["post"]
    irrelevant = theirs.about_clients.get("irrelevant")
    return gained if irrelevant is None else np.where(irrelevant, np.nan, gained)


def verdict(gains: np.ndarray, seeds: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how many clients are better and worse off than alone, and whether the difference is a win.

    `gains` has a row for each run and a column for each client; `seeds` are those of the rows, by default all
    different. A win is a paired Wilcoxon test over clients, of means over runs, and the same sign in every seed, of
    means over its splits.
    """
    from scipy import stats  # takes a second to import, and only a comparison needs it

    known = ~np.isnan(gains).all(0)
    per_client = gains[:, known].mean(0)
    p = 1.0 if np.allclose(per_client, 0) else float(stats.wilcoxon(per_client).pvalue)
    of = np.arange(len(gains)) if seeds is None else np.array(seeds)
    signs = np.sign([gains[of == seed][:, known].mean() for seed in dict.fromkeys(of.tolist())])
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
