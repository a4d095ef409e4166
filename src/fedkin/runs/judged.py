"""The models by which clients are judged: made again where a run did not store them, and as modules."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedkin import models
from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.errors import BadInput, require
from fedkin.evaluate import blocks, personal_models
from fedkin.imports import named_in
from fedkin.parts import Train
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.experiment import Experiment
from fedkin.runs.facts import fingerprint
from fedkin.runs.part_json import from_json
from fedkin.runs.setup import engine_of, on_this_machine, set_up

if TYPE_CHECKING:
    from fedkin.runs.run import Run


class Mixture(nn.Module):
    """Predicts as a train part says whose personal model is more than one network: APFL's that mixes outputs."""

    def __init__(self, network: nn.Module, part: Train, personal: Model) -> None:
        super().__init__()
        self.network, self.part = copy.deepcopy(network), part
        self.names = tuple(personal)
        for i, value in enumerate(personal.values()):
            self.register_buffer(f"value_{i}", value.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        personal = {name: getattr(self, f"value_{i}") for i, name in enumerate(self.names)}
        return self.part.predicted(personal, {"x": x}, self.logits)

    def logits(self, model: Model, batch: Batch) -> Tensor:
        found: Tensor = functional_call(self.network, model, (batch["x"],))
        return found


def model(run: Run, client: int | str | None, module: nn.Module | None) -> nn.Module:
    """Return what `Run.model` says."""
    made = network(run) if module is None else module
    if client is None:
        none = f"The method of {run.folder or run.name} has no common model; name a client."
        require("global" in run.models, none)
        return module_of(made, run.models["global"])
    with named_in(run.folder):
        part = from_json(run.experiment["method"]).train
    return module_of(made, run.personal(client, module), part)


def personal(run: Run, client: int, module: nn.Module | None) -> Model:
    """Return the numbers of the model by which a client is judged, as they were stored or made again."""
    if "models" not in run.__dict__ and run.folder is not None:  # the file may be large, and one row is enough
        mine = run.files.model_row("personal/", client)
        return mine or again(run, client, module)
    stored = run.models.get("personal")
    return again(run, client, module) if stored is None else tree.row(stored, client)


def network(run: Run) -> nn.Module:
    """Return the network of a run as it was before training."""
    stored, resolved = run.experiment, run.experiment["resolved"]
    given = stored["model"].startswith("given: ")
    require(not given, "This run's module was handed to it; give model(..., module=).")
    shape = tuple(resolved["shape"])
    with named_in(run.folder):
        return models.build(stored["model"], shape, resolved["classes"], stored["seed"], resolved["vocabulary"])


def module_of(network: nn.Module, values: Model, part: Train | None = None) -> nn.Module:
    """Return a network with these values, ready to predict; `part` says how a personal model predicts."""
    if part is not None and part.predicts_itself:
        return Mixture(network, part, values).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name in values:
                parameter.copy_(values[name])
    return network.eval()


def again(run: Run, client: int, module: nn.Module | None = None) -> Model:
    """Return the model by which a run judged a client, bit for bit, from its last checkpoint and its data.

    `module` is the network, where the run was given one.
    """
    where = run.folder or run.name
    require(run.folder is not None, f"{where} did not keep its clients' models; give fk.run a folder.")
    try:
        federation = run.federation
    except BadInput as error:
        lost = "so its fine-tuned models cannot be made again; in Python, set run.federation to the data it had"
        raise BadInput(f"The data of {where} are not at hand ({str(error).rstrip('.')}), {lost}.") from error
    stored = run.experiment
    then = stored["resolved"]
    same = fingerprint(federation) == then["fingerprint"]
    require(same, f"The data are not those that {where} was trained on, so its fine-tuned models cannot be made again.")
    known = {entry.name: stored[entry.name] for entry in fields(Experiment) if entry.name in stored}
    with named_in(run.folder):
        experiment = replace(Experiment.from_json(known | {"data": {}, "device": "cpu"}), data=federation)
    experiment = replace(experiment, model=experiment.model if module is None else module)
    experiment = on_this_machine(replace(experiment, chunk=then.get("chunk"), threads=then.get("threads")))
    setup, method = set_up(experiment, federation), experiment.method
    found = load_checkpoint(run.files, list(setup.task.model))
    if found is None or found.state.round != run.reached:
        raise BadInput(f"{where} has no checkpoint of its last round, so its fine-tuned models cannot be made again.")
    scored = blocks(setup.task, size=method.train.personal_size)
    ids = next(some for some in scored if client in some)  # the block that was scored, to the last digit
    with engine_of(experiment, federation, setup) as engine:
        engine.prepare(method.train)
        engine.restore(found.private)
        models = personal_models(method, setup.task, engine, found.state, ids)
    return tree.row(models, client - int(ids[0]))
