"""Turns the rows of a table into the samples of a federation, once it is known which rows are for training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from fedkin.data.columns import COMMAS
from fedkin.data.federation import Federation
from fedkin.data.fitting import fit_features
from fedkin.data.preparation import Preparation, encoded, scaled
from fedkin.data.samples import Table
from fedkin.data.site_numbers import means_and_scales
from fedkin.data.spec import Data
from fedkin.errors import BadInput, require, unknown

AT_ONCE = 100_000  # rows that are scaled at once
TOLD = "Columns that are"  # so begins a sentence about columns


def prepared(federation: Federation, table: Table, data: Data) -> Federation:
    """The federation with samples made of the table's rows, by a preparation that is fitted on training rows only."""
    used = used_columns(table, data)
    rows, ends = federation.train.rows.numpy(), federation.train.start.tolist()
    training = {name: rows[a:b] for name, (a, b) in zip(federation.names, pairwise(ends), strict=True)}
    if table.fit is None:
        preparation = fit_features(table.frame[used], training, data.standardise, data.features or ())
    else:
        preparation = table.fit(table.frame, training)
    if federation.task == "regress":
        preparation = _with_target_numbers(preparation, federation, data.standardise)
    columns = _all_columns(preparation, federation, table, data)
    require(preparation["features"], f"{data.name} has no column to learn from: {said(columns)}.")
    about: Preparation = {"task": federation.task, "target": table.target, "client": table.client}
    about["labels"] = list(federation.class_names) if federation.task == "classify" else []
    preparation = about | preparation | {"columns": columns}
    x, y = _samples(preparation, federation, table)
    scale = [preparation["sites"][name]["target_scale"] for name in federation.names]
    return replace(
        federation,
        x=torch.from_numpy(x),
        y=y,
        target_scale=torch.tensor(scale) if federation.task == "regress" else None,
        preparation=preparation,
        notes=federation.notes + _notes(columns),
    )


def said(columns: list[dict[str, str]]) -> str:
    """What became of these columns, in one line."""
    return "; ".join(f"{column['name']}: {column['said']}" for column in columns)


def column_lines(columns: Sequence[Mapping[str, str]], most: int = 30) -> list[tuple[str, str]]:
    """Name and words for each column. Where there are more than `most`, columns with the same words share a line."""
    if len(columns) <= most:
        return [(column["name"], column["said"]) for column in columns]
    names: dict[str, list[str]] = {}
    for column in columns:
        names.setdefault(column["said"], []).append(column["name"])
    return [
        (", ".join(own[:3]) + (f", ... ({len(own):,} columns)" if len(own) > 3 else ""), words)
        for words, own in names.items()
    ]


def used_columns(table: Table, data: Data) -> list[str]:
    """The columns that the user wants to be used, in the order of the table."""
    have = [str(name) for name in table.frame.columns]
    for option, names in (("features", data.features), ("drop", data.drop)):
        for name in names or ():
            role = "is the column to predict" if name == table.target else "says whose a row is"
            other = name in table.columns and name not in have
            require(not other, f"'{option}' (--{option}) names '{name}', which {role} and is no feature; leave it out.")
            if name not in have:
                raise BadInput(f"{unknown('column', name, have)} It is named by '{option}' (--{option}).")
    used = [name for name in have if data.features is None or name in data.features]
    used = [name for name in used if name not in (data.drop or ())]
    require(used, f"'features' and 'drop' leave no column of {data.name}.")
    return used


def _with_target_numbers(preparation: Preparation, federation: Federation, standardise: str) -> Preparation:
    """The preparation with shift and scale of the target, by the same training rows as those of the features."""
    y = federation.y[federation.train.rows].numpy()
    common = _target_numbers(y, standardise)
    own = [common] * federation.n
    if standardise == "site":
        both = means_and_scales(y.astype(np.float64)[:, None], federation.train.sizes.numpy())
        shift, scale = (numbers[:, 0].tolist() for numbers in both)
        own = [{"target_shift": a, "target_scale": b} for a, b in zip(shift, scale, strict=True)]
    sites = {name: numbers | mine for (name, numbers), mine in zip(preparation["sites"].items(), own, strict=True)}
    return preparation | {"sites": sites, "all": preparation["all"] | common}


def _target_numbers(y: np.ndarray, standardise: str) -> dict[str, float]:
    from sklearn.preprocessing import StandardScaler

    if standardise == "none":
        return {"target_shift": 0.0, "target_scale": 1.0}
    scaler = StandardScaler().fit(y.astype(np.float64)[:, None])
    return {"target_shift": float(scaler.mean_[0]), "target_scale": float(scaler.scale_[0])}


def _all_columns(preparation: Preparation, federation: Federation, table: Table, data: Data) -> list[dict[str, str]]:
    """What became of every column of the table, in its order."""
    known = {column["name"]: column for column in preparation["columns"]}
    classes = ", ".join(federation.class_names[:5]) + (", ..." if federation.classes > 5 else "")
    how = "" if data.standardise == "none" else ", standardised"
    target = (
        f"number to predict{how}"
        if federation.task == "regress"
        else f"to predict, {federation.classes} classes: {classes}"
    )
    result = []
    for name in table.columns:
        if name == table.target:
            result.append({"name": name, "kind": "target", "said": target})
        elif name == table.client:
            result.append({"name": name, "kind": "client", "said": "says whose a row is"})
        elif name in known:
            result.append(known[name])
        else:
            why = "as --drop says" if name in (data.drop or ()) else "not among --features"
            why = why if name in table.frame.columns else "names the clients"
            result.append({"name": name, "kind": "left out", "said": f"left out, {why}"})
    return result


def _samples(preparation: Preparation, federation: Federation, table: Table) -> tuple[np.ndarray, torch.Tensor]:
    """x and y of all rows: those of a site by its own numbers, those of no site by the numbers of all."""
    features = encoded(preparation, table.frame)
    x, y = np.empty(features.shape, dtype=np.float32), federation.y.double()
    splits = [index for index in (federation.train, federation.validation, federation.test) if index is not None]
    taken = torch.cat([index.rows for index in splits])
    owner = torch.cat([torch.arange(federation.n).repeat_interleave(index.sizes) for index in splits])
    shared = len(torch.unique(taken)) < len(taken)
    require(
        not shared or preparation["standardise"] != "site",
        "In this partition clients share rows, so a row has no site of its own; say --standardise all or none.",
    )
    fitted = [*(preparation["sites"][name] for name in federation.names), preparation["all"]]
    numbers = {name: np.array([one[name] for one in fitted], dtype=np.float64) for name in fitted[-1]}
    site = torch.full((len(y),), -1).scatter_reduce(0, taken, owner, "amax").numpy()  # of a shared row the last
    for some in np.split(np.arange(len(y)), range(AT_ONCE, len(y), AT_ONCE)):
        of_rows = {name: values[site[some]] for name, values in numbers.items()}  # -1 is that of all
        x[some] = scaled(features[some], of_rows)
        y[some] = (y[some] - torch.from_numpy(of_rows["target_shift"])) / torch.from_numpy(of_rows["target_scale"])
    return x, y.float() if federation.task == "regress" else federation.y


def _notes(columns: list[dict[str, str]]) -> tuple[str, ...]:
    """A sentence that names the columns that were left out unasked, or that look wrong, and why."""
    out = [column for column in columns if column["kind"] == "left out" and "--" not in column["said"]]
    odd = [column for column in columns if column["kind"] == "category" and COMMAS in column["said"]]
    notes = []
    if out:
        listed = "; ".join(f"{column['name']} ({column['said'].removeprefix('left out, ')})" for column in out)
        notes.append(f"{TOLD} left out: {listed}.")
    if odd:
        listed = ", ".join(column["name"] for column in odd)
        notes.append(f"{TOLD} categories but {COMMAS}: {listed}.")
    return tuple(notes)
