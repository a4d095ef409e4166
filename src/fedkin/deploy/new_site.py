"""A site that was not in a run: its rows, prepared as the federation's were, on several splits at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fedkin.data import preparation as preparing
from fedkin.data.federation import Federation, Index
from fedkin.data.fitting import fitted_numbers
from fedkin.data.holdout import split
from fedkin.data.values import numbers, texts
from fedkin.deploy.prediction import samples
from fedkin.errors import BadInput, require
from fedkin.runs.run import Run

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 8  # rows of a site of which something could be said


@dataclass(frozen=True)
class NewSite:
    """The rows of a new site before anything is fitted on them, and their targets."""

    name: str
    encoded: np.ndarray  # (rows, features) as `preparation.encoded` gives them, or samples as they are
    y: np.ndarray  # (rows,)


def new_site(run: Run, rows: pd.DataFrame | tuple[np.ndarray, np.ndarray], name: str) -> NewSite:
    """Return the rows of a new site, a table or arrays (x, y), as a run's clients have them."""
    found = array_rows(run, *rows) if isinstance(rows, tuple) else table_rows(run, rows)
    count = len(found[1])
    require(count >= FEWEST, f"{name} has {count} rows with a target; a site needs at least {FEWEST}.")
    return NewSite(name, *found)


def as_federation(run: Run, site: NewSite, test: float, splits: int) -> Federation:
    """Return a federation in which client k is the site on its split number k.

    Row i of the site has the number i + k * rows on split k, since its features differ between splits: the fills,
    shifts and scales are fitted on the training rows of the split.
    """
    require(0 < test < 1, f"--test is a share between 0 and 1, not {test}.")
    require(splits >= 1, f"--splits is a number from 1, not {splits}.")
    count = len(site.y)
    parts = [split(np.arange(count), test, 0.0, 0, site.name, number=k) for k in range(splits)]
    made = [prepared(run, site, train) for train, _, _ in parts]
    regress = run.task == "regress"
    return Federation(
        name=site.name,
        x=torch.cat([x for x, _, _ in made]),
        y=torch.cat([target for _, target, _ in made]),
        classes=run.experiment["resolved"]["classes"],
        train=Index.of([train + k * count for k, (train, _, _) in enumerate(parts)]),
        test=Index.of([held + k * count for k, (_, _, held) in enumerate(parts)]),
        clients=tuple(f"split {k}" for k in range(splits)),
        vocabulary=run.experiment["resolved"]["vocabulary"],
        task="regress" if regress else "classify",
        labels=tuple(run.labels),
        target_scale=torch.tensor([scale for _, _, scale in made]) if regress else None,
    )


def table_rows(run: Run, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of a table before they are filled and scaled, and its targets; rows without one are left."""
    how = run.preparation
    if how is None:
        raise BadInput(f"{run.folder or run.name} was trained on arrays, not on a table; give an .npz with x and y.")
    target = how["target"]
    has = ", ".join(map(str, table.columns))
    require(target in table.columns, f"The table lacks the column {target}, which is to be predicted; it has {has}.")
    if how["task"] == "regress":
        y: np.ndarray = numbers(table[target])
        known = np.isfinite(y)
    else:
        y = preparing.targets(how, table[target], None)
        words = texts(table[target])
        known = np.array([text is not None for text in words])
        strange = sorted({str(text) for text in words[known & (y < 0)]})
        labels = ", ".join(how["labels"])
        require(not strange, f"The column {target} has {', '.join(strange[:5])}, but the run knows only {labels}.")
    return preparing.encoded(how, table)[known], y[known]


def array_rows(run: Run, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return checked samples and targets."""
    require(run.preparation is None, f"{run.folder or run.name} was trained on a table; give a table of its columns.")
    require(len(x) == len(y), f"There are {len(x)} samples but {len(y)} targets.")
    classes = run.experiment["resolved"]["classes"]
    if run.task == "classify":
        whole = y.dtype.kind in "iu" and (not len(y) or (y.min() >= 0 and y.max() < classes))
        require(whole, f"The targets must be class numbers from 0 to {classes - 1}.")
    return np.asarray(samples(run, x).numpy()), y


def prepared(run: Run, site: NewSite, train: np.ndarray) -> tuple[Tensor, Tensor, float]:
    """Return all rows as samples, their targets and the targets' scale; every number is fitted on the training rows."""
    how, encoded, y = run.preparation, site.encoded, site.y
    if how is None:
        target = torch.from_numpy(y.astype(np.float32 if run.task == "regress" else np.int64))
        return torch.from_numpy(encoded), target, 1.0
    fitted = fit_site(how, encoded[train])
    x = torch.from_numpy(preparing.scaled(encoded, fitted))
    if how["task"] != "regress":
        return x, torch.from_numpy(y), 1.0
    shift, scale = target_numbers(how, y[train])
    return x, torch.from_numpy(((y - shift) / scale).astype(np.float32)), scale


def fit_site(how: dict[str, Any], training: np.ndarray) -> dict[str, Any]:
    """Return the fills, shifts and scales of a site, by its own training rows and as the federation's were made."""
    if how["standardise"] == "all":
        return dict(how["all"])
    measured = np.array([feature["is"] in ("number", "date") for feature in how["features"]], dtype=bool)
    return fitted_numbers(training, measured, how["standardise"], how["all"])


def target_numbers(how: dict[str, Any], training: np.ndarray) -> tuple[float, float]:
    """Return the shift and the scale of a regression's target at a new site."""
    if how["standardise"] != "site":
        return float(how["all"]["target_shift"]), float(how["all"]["target_scale"])
    spread = float(training.std())
    return float(training.mean()), spread if spread > 0 else 1.0
