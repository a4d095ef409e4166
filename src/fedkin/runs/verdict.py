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


def is_local(name: str) -> bool:
    """Whether a method of a comparison is Local: 'local', or Local with another budget, as 'local@epochs=1'."""
    return name.partition("@")[0] == LOCAL


def compared_with(methods: Sequence[Method]) -> dict[str, str]:
    """Return for each method the Local that its clients are compared with: the one with their own budget of steps at
    their rate or, if there is none, plain Local. Nothing is compared where there is no Local."""
    locals = {method.name: method for method in methods if is_local(method.name)}
    found: dict[str, str] = {}
    for method in methods:
        if method.name in locals:
            continue
        budget = alone(method).train
        same = [name for name, local in locals.items() if local.train == budget]
        if same or LOCAL in locals:
            found[method.name] = min(same, key=len) if same else LOCAL
    return found


def gain(theirs: Run, local: Run) -> np.ndarray:
    """Return how much better each client's last score is, of the kind the method is judged by, than what it reaches
    alone.

    It is a difference of the metric that decides, and positive is better. A client whose loss is infinite gains or
    loses as much as the most extreme of the others.

    It is nan for clients known to be irrelevant: anything beats their own labels, so their gain would flatter every
    method.
    """  # (n,)
    metric = theirs.metric
    with np.errstate(invalid="ignore"):  # infinite minus infinite
        gained: np.ndarray = METRICS[metric].gain(theirs.last(metric)[theirs.judged], local.last(metric)["post"])
    most = np.abs(gained[np.isfinite(gained)]).max(initial=0.0) or 1.0  # where all are infinite, only the sign counts
    gained = np.clip(gained, -most, most)
    irrelevant = theirs.about_clients.get("irrelevant")
    return gained if irrelevant is None else np.where(irrelevant, np.nan, gained)


def verdict(gains: np.ndarray, seeds: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how many clients are better and worse off than alone, and whether the difference is a win.

    `gains` has a row for each run and a column for each client; `seeds` are those of the rows, by default all
    different. A win is a paired Wilcoxon test over clients, of means over runs, and the same sign in every seed, of
    means over its splits.
    """
    from scipy import stats  # takes a second to import, and only a comparison needs it

    known = ~np.isnan(gains).any(0)  # a metric may be undefined for a client in one seed only
    if not known.any():
        return {"better": 0.0, "worse": 0.0, "gain": 0.0, "p": 1.0, "verdict": "no clear difference"}
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
    """Return a sentence for each method whose clients train otherwise than those of the Local it is compared with: its
    gain is not only its own."""
    efforts = {method.name: effort(method) for method in methods}
    return [
        f"{name} trains {efforts[name]} a round, Local {efforts[local]}; set train.* alike before comparing the two."
        for name, local in compared_with(methods).items()
        if efforts[name] != efforts[local]
    ]


def effort(method: Method) -> str:
    """Return what a client does in a round, as Local would have to do it."""
    train = alone(method).train
    how = f"{train.epochs} epoch(s)" if train.epochs else f"{train.steps} steps"
    extra = [f"{name} {value:g}" for name in ("momentum", "weight_decay") if (value := train.values()[name])]
    return ", ".join([f"{how} of batch {train.batch} at rate {train.eta:g}", *extra])
