"""What the models of a run predict for the rows of a table or for arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fedkin.data import preparation as preparing
from fedkin.data.values import texts
from fedkin.errors import BadInput, require
from fedkin.runs.run import Run

if TYPE_CHECKING:
    import pandas as pd

ROWS = 4096  # that go through a network at once


def predict(
    run: Run,
    rows: pd.DataFrame | np.ndarray | Tensor,
    client: str | None = None,
    *,
    module: nn.Module | None = None,
    warn: Callable[[str], None] = print,
) -> pd.DataFrame:
    """Return what a run's models predict: a row for each of these rows.

    `rows` is a table with the columns that the run was trained on, or an array of samples. Every row is judged by the
    model of its client: of `client` or, where the table has the run's column of clients, of the one it names there. A
    client that was not in the run gets the common model. The result has the columns 'prediction' and, for classes, a
    'probability <class>' for each; its index is that of the table.
    """
    import pandas as pd

    how = run.preparation
    if not isinstance(rows, pd.DataFrame):
        x = samples(run, rows)
        return answers(run, outputs(model_for(run, client, module), x), client, range(len(x)))
    if how is None:
        raise BadInput(f"{run.folder or run.name} was trained on arrays, not on a table; give an .npz with x.")
    column = how["client"]
    if client is not None or column is None or column not in rows.columns:
        return rows_of_one(run, rows, client, module)
    owners = pd.Series(texts(rows[column]), index=rows.index)
    known = set(run.about_clients["names"])
    strange = [owner for owner in owners if owner not in known]
    if strange:
        names = some_of(strange)
        common = "global" in run.models
        require(common, f"{run.method} has no common model, and these rows are of no client of the run: {names}.")
        warn(f"Not in the run, so judged by the common model: {names}.")
    parts, places = [], []
    for owner in dict.fromkeys(owner if owner in known else None for owner in owners):
        mine = (owners == owner) if owner is not None else ~owners.isin(known)
        places.append(np.flatnonzero(mine))
        parts.append(rows_of_one(run, rows[mine.to_numpy()], owner, module))
    return pd.concat(parts).iloc[np.argsort(np.concatenate(places))] if parts else rows_of_one(run, rows, None, module)


def some_of(owners: Iterable[object]) -> str:
    """Return the first names of sites, each once."""
    names = sorted({str(owner) for owner in owners})
    return f"{', '.join(names[:5])}{' ...' if len(names) > 5 else ''}"


def rows_of_one(run: Run, rows: pd.DataFrame, client: str | None, module: nn.Module | None) -> pd.DataFrame:
    """Return what one client's model, or the common one, predicts for the rows of a table."""
    x = torch.from_numpy(preparing.apply(run.preparation or {}, rows, client))
    return answers(run, outputs(model_for(run, client, module), x), client, rows.index)


def model_for(run: Run, client: str | None, module: nn.Module | None = None) -> nn.Module:
    """Return the model that the table judged for a client, or without a client the common one.

    Where a client's own model never sees the others, the table judged the common model.
    """
    return run.model(None if run.judged == "global" else client, module)


def samples(run: Run, rows: np.ndarray | Tensor) -> Tensor:
    """Return an array of samples as the networks of a run take them."""
    shape, x = tuple(run.experiment["resolved"]["shape"]), torch.as_tensor(rows)
    same = tuple(x.shape[1:]) == shape
    require(
        same, f"The samples are of shape {tuple(x.shape[1:])}, but the run was trained on samples of shape {shape}."
    )
    return x if run.experiment["resolved"]["vocabulary"] is not None else x.float()


@torch.no_grad()
def outputs(module: nn.Module, x: Tensor) -> np.ndarray:  # (rows, outputs)
    """Return what a network says of these samples, as many at a time as is good for the memory."""
    parts = [module(some) for some in x.split(ROWS)] if len(x) else [module(x)]
    return np.asarray(torch.cat(parts).float().numpy())


def answers(run: Run, out: np.ndarray, client: str | None, index: Any) -> pd.DataFrame:
    """Return a network's outputs in the user's words: names of classes with probabilities, or values."""
    import pandas as pd

    if run.task == "regress":
        how = run.preparation
        fitted = {"target_shift": 0.0, "target_scale": 1.0} if how is None else how["sites"].get(client, how["all"])
        value = out[:, 0].astype(np.float64) * fitted["target_scale"] + fitted["target_shift"]
        return pd.DataFrame({"prediction": value}, index=index)
    labels = labels_of(run)
    chance = torch.from_numpy(out).double().softmax(1).numpy()
    named = pd.DataFrame({"prediction": np.array(labels, dtype=object)[out.argmax(1)]}, index=index)
    each = {f"probability {label}": chance[:, i] for i, label in enumerate(labels)}
    return pd.concat([named, pd.DataFrame(each, index=index)], axis=1)


def labels_of(run: Run) -> list[str]:
    """Return the names of the classes, or their numbers where they have none."""
    return list(run.labels) or [str(i) for i in range(run.experiment["resolved"]["classes"])]
