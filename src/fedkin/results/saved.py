"""A finished run's models as ready modules: `fk.load("runs/x").model("hospital 3")`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from fedkin import models
from fedkin.core import tree
from fedkin.errors import BadInput, require, unknown
from fedkin.results import files
from fedkin.results.record import Run


class Saved(Run):
    """A run as it lies in its folder, with its models."""

    def model(self, client: int | str | None = None, module: nn.Module | None = None) -> nn.Module:
        """The personal model of a client, by number or name; without a client the common model. A run of a module that
        was handed in needs that module again."""
        found = self.models()
        kind = "global" if client is None else "personal"
        if kind not in found:
            other = "no common model; name a client" if client is None else "one model for all; leave the client out"
            raise BadInput(f"The method of {self.folder} has {other}.")
        values = found[kind] if client is None else tree.row(found[kind], self.number(client))
        built = self.network() if module is None else module
        names = {name for name, _ in built.named_parameters()}
        require(
            set(values) <= names,
            "This client is judged by two networks together, which is no single module; read .models() instead.",
        )
        with torch.no_grad():
            for name, parameter in built.named_parameters():
                if name in values:
                    parameter.copy_(values[name])
        return built.eval()

    def network(self) -> nn.Module:
        """The module of this experiment, as it was before training."""
        stored, resolved = self.experiment, self.experiment["resolved"]
        require(
            not stored["model"].startswith("given: "), "This run's module was handed to it; give model(..., module=)."
        )
        shape = tuple(resolved["shape"])
        return models.build(stored["model"], shape, resolved["classes"], stored["seed"], resolved["vocabulary"])

    def number(self, client: int | str) -> int:
        names = files.read_json(self.folder / "clients.json")["names"]
        n = self.experiment["resolved"]["clients"]
        if isinstance(client, str):
            if client not in names:
                raise unknown("client", client, names)
            return int(names.index(client))
        require(0 <= client < n, f"There is no client {client}; they are numbered from 0 to {n - 1}.")
        return client


def load(folder: Path | str) -> Saved:
    """The one finished run in a folder: a run's own folder, or that of a command which ran one method and one seed."""
    place = Path(folder)
    found = (
        [place]
        if (place / "experiment.json").exists()
        else sorted(p.parent for p in place.glob("*/seed-*/experiment.json"))
    )
    require(found, f"{place} is not a run of fedkin.")
    several = ", ".join(str(path.relative_to(place)) for path in found[:6])
    require(len(found) == 1, f"{place} holds {len(found)} runs; load one of them: {several} ...")
    require((found[0] / "models.safetensors").exists(), f"The run in {found[0]} is not finished; go on with --resume.")
    return Saved(found[0])
