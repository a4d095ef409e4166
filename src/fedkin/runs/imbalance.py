"""Says where one class outweighs all others, so that accuracy flatters who always predicts it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SHARE = 0.8  # of the training samples in one class, from which accuracy flatters
MANY = 0.2  # of the clients, from which it is worth a word
ADVICE = "accuracy flatters there; try --metric balanced_accuracy or auc."


def one_sided(counts: np.ndarray, names: Sequence[str], labels: Sequence[str], metric: str | None) -> list[str]:
    """Return a sentence if one class has more than 80 % of all samples, or of those of many clients; else nothing.

    counts (n, classes): the samples of each class at each client. A metric that was chosen on purpose needs no word.
    """
    if metric is not None or not counts.size or not counts.sum():
        return []
    called = [f"'{label}'" for label in labels] or [f"of class {c}" for c in range(counts.shape[1])]
    whole, have = counts.sum(0), np.flatnonzero(counts.sum(1))
    if whole.max() > SHARE * whole.sum():
        share = f"{100 * whole.max() / whole.sum():.0f} %"
        return [f"{share} of all training rows are {called[int(whole.argmax())]}: {ADVICE}"]
    shares = counts[have].max(1) / counts[have].sum(1)  # (clients with samples,)
    many = int((shares > SHARE).sum())
    if many < max(1, MANY * len(have)):
        return []
    most = have[int(shares.argmax())]
    said = f"{100 * shares.max():.0f} % of the training rows of {names[most]} are {called[int(counts[most].argmax())]}"
    others = f", and {many - 1} more of {len(have)} clients have above 80 % in one class" if many > 1 else ""
    return [f"{said}{others}: {ADVICE}"]
