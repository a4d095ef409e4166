"""Predicts each row by the model that a comparison recommends to its site."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fedkin.answers.sentences import together
from fedkin.data.values import texts
from fedkin.deploy.choice import Choice, Chooser
from fedkin.deploy.prediction import predict, rows_of_one, some_of
from fedkin.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

MOST = 5  # sites of a method that are named


def predict_by_site(
    chooser: Chooser, rows: pd.DataFrame | np.ndarray, seed: int | None, warn: Callable[[str], None]
) -> pd.DataFrame:
    """Return what the methods of a comparison predict: each row by the method that `Chooser` chooses for its site.

    Rows of a site that was not there, and rows that name no site, get the best common model; `warn` is told so, and
    which models are used.
    """
    import pandas as pd

    how = chooser.runs[0].preparation
    column = how["client"] if how is not None else None
    if not isinstance(rows, pd.DataFrame) or column not in rows.columns:
        common = chooser.choose(seed=seed)
        why = "The rows name no site" if column is None else f"The table has no column {column}"
        found = predict(common.run, rows, warn=warn)
        warn(f"{why}, so all are judged by the common model of {common.called}.")
        return found
    owners = np.array(texts(rows[column]), dtype=object)
    names = chooser.runs[0].about_clients["names"]
    if not len(rows):
        return predict(chooser.runs[0], rows, names[0])
    there = [name for name in names if (owners == name).any()]
    choices = {name: chooser.choose(name, seed=seed) for name in there}
    parts = {}  # the places of rows, and what is predicted for them
    for method in dict.fromkeys(choice.run.method for choice in choices.values()):
        mine = [name for name in there if choices[name].run.method == method]
        places = np.flatnonzero(np.isin(owners, mine))
        parts[method] = places, predict(choices[mine[0]].run, rows.iloc[places])
    strange = np.flatnonzero(~np.isin(owners, names))
    others = common_model(chooser, seed, some_of(owners[strange])) if len(strange) else None
    if others is not None:
        parts[""] = strange, rows_of_one(others.run, rows.iloc[strange], None, None)
    for sentence in said(choices):
        warn(sentence)
    if others is not None:
        named = some_of(owners[strange])
        warn(f"Not in the comparison, so judged by the common model of {others.called}: {named}.")
    order = np.argsort(np.concatenate([places for places, _ in parts.values()]))
    return pd.concat([found for _, found in parts.values()]).iloc[order]


def common_model(chooser: Chooser, seed: int | None, names: str) -> Choice:
    """Return the best method with a common model, for rows of sites that were not there."""
    try:
        return chooser.choose(seed=seed)
    except BadInput as error:
        raise BadInput(f"These rows are of no client of the comparison: {names}. {error}") from error


def said(choices: dict[str, Choice]) -> list[str]:
    """Return which models are used: a short line for each method, the one with the most sites last."""
    if len(choices) < 2:
        return [choice.said for choice in choices.values()]
    same = len({choice.which for choice in choices.values()}) == 1  # all methods have as many runs
    sites: dict[str, list[str]] = {}
    for name, choice in choices.items():
        sites.setdefault(f"{choice.run.method}{'' if same else choice.which}", []).append(name)
    which = next(iter(choices.values())).which if same else ""
    which = f",{which}" if which else ""
    lines = [f"Each site gets what the comparison recommends to it or, where that is unclear, the best there{which}:"]
    for place, (method, names) in enumerate(sorted(sites.items(), key=lambda group: len(group[1]))):
        many = f"{len(names)} {'others' if place else 'sites'}"
        lines.append(f"{method} for {together(names) if len(names) <= MOST else many}")
    return lines
