"""Do the models of the other sites contradict a site's labels? What tells wrong labels from merely different data.

Every site has the model that it trained alone. For each training sample of a site, the models of the other sites vote.
Where the others' vote goes with their own labels everywhere but against the labels of one site, that site's labels are
likely to be wrong. How common a class is at a site does not matter: the agreement is counted beyond chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedkin import metrics
from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.data.federation import Federation
from fedkin.data.seeds import keyed_generator

VOTERS = 24  # models that are asked about a site, at most
ROWS = 200  # training samples of a site that they are asked about, at most
AGREED = 0.2  # the median agreement from which most sites agree
FEWEST = 10  # rows from which an agreement is spoken of

Logits = Callable[[Model, Batch], Tensor]


@dataclass(frozen=True)
class Agreement:
    """How far the others' vote goes with each site's labels beyond chance: 1 fully, 0 by chance, below 0 against."""

    value: np.ndarray  # (n,); nan where it cannot be told
    error: np.ndarray  # (n,) the standard error


def votes(
    logits: Logits, models: Model, federation: Federation, trusted: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each site the labels of (some of) its training rows and the others' mean output there.

    trusted: which sites' models vote, (n,) bool. The outputs are mean probabilities, or mean numbers in a regression.
    """
    like = next(iter(models.values()))
    found = []
    for site, name in enumerate(federation.names):
        gen = keyed_generator(0, "audit", name)
        rows = federation.train[site].numpy()
        rows = np.sort(gen.permutation(rows)[:ROWS])
        others = np.flatnonzero(trusted & (np.arange(federation.n) != site))
        voters = torch.from_numpy(np.sort(gen.permutation(others)[:VOTERS]))
        x = federation.x[torch.from_numpy(rows)]
        x = x.to(like.device, like.dtype if x.is_floating_point() else x.dtype)
        with torch.no_grad():
            said = [logits(tree.row(models, int(voter)), {"x": x}) for voter in voters]
        outputs = torch.stack(said) if said else torch.zeros(1, len(rows), federation.classes)
        mean = (outputs.softmax(-1) if federation.task == "classify" else outputs).mean(0)
        found.append((federation.y[torch.from_numpy(rows)].numpy(), mean.cpu().double().numpy()))
    return found


def contradicted(found: Agreement) -> np.ndarray:
    """Return whose labels the others contradict, (n,) bool.

    The others must agree with most sites: without that nobody can be called wrong. A site is contradicted where its
    agreement, two standard errors up, is below half of the median one.
    """
    known = np.isfinite(found.value)
    middle = float(np.median(found.value[known])) if known.any() else 0.0
    if middle < AGREED:
        return np.zeros(len(known), dtype=bool)
    return np.asarray(known & (np.nan_to_num(found.value) + 2 * np.nan_to_num(found.error) < middle / 2))


def agreement(said: list[tuple[np.ndarray, np.ndarray]], regress: bool = False) -> Agreement:
    """Return the agreement of every site's labels with the others' vote.

    In a classification it is 2 AUC - 1 of the vote for the labels, in a regression the correlation of the two.
    """
    one = correlation if regress else ranking
    pairs = [one(y, outputs) if len(y) >= FEWEST else (np.nan, np.nan) for y, outputs in said]
    value, error = np.array(pairs, dtype=float).T
    return Agreement(value, error)


def ranking(y: np.ndarray, outputs: np.ndarray) -> tuple[float, float]:
    """2 AUC - 1 of the vote, mean over the site's samples of the class against all others, and its standard error were
    there no relation; nan with one class only. It asks whether the samples of a class have larger votes for it than the
    others have, so it does not matter how common a class is at a site."""
    values, errors, shares = [], [], []
    for label, count in zip(*np.unique(y, return_counts=True), strict=True):
        if count == len(y):
            return np.nan, np.nan
        score = np.stack([-outputs[:, label], outputs[:, label]], 1)
        values.append(2 * metrics.value("auc", score, (y == label).astype(np.int64)) - 1)
        errors.append(2 * np.sqrt((len(y) + 1) / (12 * count * (len(y) - count))))
        shares.append(count / len(y))
    return float(np.dot(shares, values)), float(np.dot(shares, errors))


def correlation(y: np.ndarray, outputs: np.ndarray) -> tuple[float, float]:
    """The correlation of the targets with the mean prediction, and its standard error."""
    told = outputs[:, 0]
    if y.std() == 0 or told.std() == 0:
        return np.nan, np.nan
    r = float(np.corrcoef(y, told)[0, 1])
    return r, float((1 - r * r) / np.sqrt(len(y)) + 1 / len(y))
