"""Writes a folder with all that a service needs to use a model without fedkin.

network.pt2          the network with its numbers, as torch.export writes it, for any number of rows
model.safetensors    the numbers alone
model.json           what the model is: task, classes, columns, where it comes from
preparation.json     how a row of a table becomes a sample at this site; absent for arrays
predict.py           predicts the rows of a file, with torch and pandas only
rows.py              what predict.py reads the file with
README.md            the model card
"""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedkin.data.values import BOOLEANS, MARKS
from fedkin.deploy.card import card, facts
from fedkin.deploy.prediction import labels_of, model_for
from fedkin.errors import BadInput, require
from fedkin.runs import files
from fedkin.runs.facts import versions
from fedkin.runs.judged import Mixture
from fedkin.runs.run import Run

MARK = "fedkin export"  # model.json says who wrote the folder
SCRIPTS = Path(__file__).parent / "scripts"
CLOSE = 1e-4  # how far the exported network's outputs may be from the module's, of their size


def export(run: Run, out: Path | str, client: str | None = None, module: nn.Module | None = None) -> Path:
    """Write the model of a client, or without a client the common model, into the folder `out`; returns its path.

    The folder is written whole or not at all. One that an earlier export wrote is replaced; any other is refused.
    `module` is the network of a run that was given one.
    """
    path = Path(out)
    check_free(path)
    name = None if client is None else run.about_clients["names"][run.number(client)]
    network = copy.deepcopy(model_for(run, name, module))
    example = example_of(run)
    program = exported(network, example)
    values = run.personal(name, module) if isinstance(network, Mixture) and name is not None else network.state_dict()
    about = described(run, name)
    prepared = preparation_for(run.preparation, name)
    with files.whole_folder(path) as folder:
        written = BytesIO()  # torch itself ends the process where the disk is full
        torch.export.save(program, written)
        files.write(folder / "network.pt2", written.getvalue())
        files.write_tensors(folder / "model.safetensors", dict(values))
        if prepared is not None:
            files.write_json(folder / "preparation.json", prepared)
        rows = SCRIPTS / ("rows_of_arrays.py" if prepared is None else "rows_of_tables.py")
        files.write(folder / "rows.py", rows.read_bytes())
        files.write(folder / "predict.py", (SCRIPTS / "predict.py").read_bytes())
        files.write(folder / "README.md", card(about, prepared).encode())
        files.write_json(folder / "model.json", about)
    return path


def check_free(path: Path) -> None:
    """Refuse a path where something lies that no export wrote, or that cannot be looked at."""
    try:
        free = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}; choose another -o.") from error
    if free:
        return
    try:
        about = files.read_json(path / "model.json")
        ours = isinstance(about, dict) and about.get("written_by") == MARK
    except files.Damaged:
        ours = False
    require(ours, f"{path} exists and was not written by fedkin export; choose another -o.")


def example_of(run: Run) -> Tensor:
    """Return two samples of the run's shape and type, of zeros."""
    resolved = run.experiment["resolved"]
    kind = torch.float32 if resolved["vocabulary"] is None else torch.int64
    return torch.zeros(2, *resolved["shape"], dtype=kind)


def exported(network: nn.Module, example: Tensor) -> torch.export.ExportedProgram:
    """Return the network as torch.export writes it, for any number of rows; checked against the network itself."""
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    try:
        rows = torch.export.Dim("rows")
        program = torch.export.export(network.eval(), (example,), dynamic_shapes=({0: rows},))
    except Exception as error:  # a user's module may do anything
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadInput(f"torch.export cannot take the network {type(network).__name__}: {reason}") from error
    gen = torch.Generator().manual_seed(0)
    for count in (1, 3):
        shape = (count, *example.shape[1:])
        x = torch.randn(shape, generator=gen) if example.is_floating_point() else torch.ones(shape, dtype=torch.int64)
        with torch.no_grad():
            wanted, found = network(x), program.module()(x)
        same = torch.allclose(found, wanted, rtol=CLOSE, atol=CLOSE)
        require(same, f"The exported network says something else than {type(network).__name__}; it cannot be used.")
    return program


def described(run: Run, client: str | None) -> dict[str, Any]:
    """Return what model.json says."""
    how = run.preparation
    columns = list(dict.fromkeys(feature["column"] for feature in how["features"])) if how else None
    resolved = run.experiment["resolved"]
    return {
        "written_by": MARK,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "client": client,
        "task": run.task,
        "target": how["target"] if how else None,
        "labels": labels_of(run) if run.task == "classify" else [],
        "columns": columns,
        "shape": resolved["shape"],
        "tokens": resolved["vocabulary"] is not None,
        "versions": versions(),
        **facts(run, client),
    }


def preparation_for(how: dict[str, Any] | None, client: str | None) -> dict[str, Any] | None:
    """Return how a row becomes a sample at one site or, without a client, at a site that is not known.

    The numbers and the counts of other sites are left out; names of columns and categories are what all agreed on.
    """
    if how is None:
        return None
    common = {"sites": {}, "all": how["all"]} if client is None else {"sites": {client: how["sites"][client]}}
    columns = [{"name": column["name"], "kind": column["kind"]} for column in how["columns"]]
    words = {"missing": sorted({mark.lower() for mark in MARKS}), "booleans": words_of(BOOLEANS)}
    kept = {name: how[name] for name in ("task", "target", "labels", "client", "standardise", "features")}
    return json.loads(json.dumps(kept | {"columns": columns} | common | words))  # type: ignore[no-any-return]


def words_of(booleans: dict[str, float]) -> dict[str, str]:
    """Return what the words for true and false are as numbers, written as text."""
    return {word: f"{value:g}" for word, value in booleans.items()}
