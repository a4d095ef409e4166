"""An experiment: what is learned from what by which method, as one frozen record that survives JSON."""

from __future__ import annotations

from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any

import torch
from torch import nn

from fedkin import models
from fedkin.data.federation import Federation
from fedkin.data.spec import Data, is_path
from fedkin.engines import ABOVE, ENGINES
from fedkin.errors import BadInput, require, unknown
from fedkin.evaluate import KINDS
from fedkin.fields import WHOLE
from fedkin.imports import check_trusted
from fedkin.methods import named
from fedkin.metrics import named as named_metric
from fedkin.parts import Method
from fedkin.privacy import Privacy, protected, read
from fedkin.runs import memory, part_json

DTYPES = {"float32": torch.float32, "float64": torch.float64}


OPTIONAL = ("evaluate_every", "chunk", "threads", "actors", "score_clients")
MOST = {"threads": 1024, "actors": 1024, "seed": 2**63 - 1}
COUNTS = (("rounds", 1), ("seed", 0), *((name, 1) for name in OPTIONAL))


def free(default: Any) -> Any:
    """Make a field that may change when a run is resumed, because it does not make it another experiment."""
    return field(default=default, metadata={"free": True})


@dataclass(frozen=True)
class Experiment:
    """What to run: a method on data with a model.

    `data` is a `Data` or a ready `Federation`; `model` is a name ("mlr", "dnn:100", "package.module:Class") or a
    module. `seed` is that of initialisation, selection and batches; the data have a seed of their own (`Data.seed`).
    None for `evaluate_every`, `chunk` and `threads` means a choice made by the size of the work; what was chosen is
    recorded. The engine "ray" divides the clients among `actors` (None: one a core) of the cluster at `ray_address`
    (None: on this machine). Clients' private models beyond `memory`, gigabytes or a text as "500MB", lie in files; None
    means half of what is free, at most 500 MB. With `score_clients` only so many clients are scored, a fixed random
    sample. With `heterogeneity` scored rounds also record PFedRe's gap and skew (definitions 2 and 3), which needs all
    clients' training losses; with `gradient_norm` the norm of the gradient that FedACS's theorem bounds, which needs a
    pass over all training samples. `score` names the kinds of accuracy that are computed, of "post", "global", "recv"
    and "test"; None means all that there are. `metric` names the one that decides whether a client is better off
    (`metrics.METRICS`); by default accuracy or, where the targets are numbers, R2. All metrics are recorded in any
    case. With `class_weights="balanced"` all classes of a client count the same in its training. With `dp`, as
    "clip=1.0,noise=0.8", updates are clipped and noised before they leave a client (docs/privacy.md), and the method is
    changed so that nothing else leaves it.

    JSON and resuming go by this list of fields. An option of the command line that is named as a field sets it.
    """

    method: Method
    data: Data | Federation = field(default_factory=Data)
    model: str | nn.Module = "mlr"
    rounds: int = free(100)
    seed: int = 0
    engine: str = "stacked"
    evaluate_every: int | None = free(None)
    chunk: int | None = free(None)
    threads: int | None = free(None)
    actors: int | None = free(None)
    ray_address: str | None = free(None)
    device: str = "cpu"
    dtype: str = "float32"
    memory: float | str | None = free(None)
    heterogeneity: bool = False
    gradient_norm: bool = False
    score: tuple[str, ...] | None = None
    metric: str | None = free(None)
    class_weights: str | None = None
    score_clients: int | None = None
    dp: str | None = None

    def __post_init__(self) -> None:
        require(isinstance(self.method, Method), "An experiment's method is a Method, as fk.methods.fedavg() gives.")
        data = isinstance(self.data, Data | Federation)
        require(data, f"An experiment's data is an fk.Data or a federation, not {self.data!r}; try fk.Data(...).")
        model = isinstance(self.model, str | nn.Module)
        require(model, f"An experiment's model is a name or a module, not {self.model!r}.")
        for name, least in COUNTS:
            value = getattr(self, name)
            if value is None and name in OPTIONAL:
                continue
            most = MOST.get(name, WHOLE)
            whole = isinstance(value, int) and not isinstance(value, bool)
            sentence = f"{name} must be a whole number of at least {least} and at most {most:,}, not {value!r}."
            require(whole and least <= value <= most, sentence)
        if self.memory is not None:
            memory.in_bytes(self.memory)  # for its check
        for name in ("engine", "dtype", "device"):
            require(isinstance(getattr(self, name), str), f"{name} is a name, not {getattr(self, name)!r}.")
        for name in ("heterogeneity", "gradient_norm"):
            value = getattr(self, name)
            require(isinstance(value, bool), f"{name} is true or false, not {value!r}.")
        several = self.score is None or (isinstance(self.score, list | tuple) and self.score)
        require(several, f"score is a list of kinds, of {', '.join(KINDS)}, not {self.score!r}.")
        for kind in self.score or ():
            if kind not in KINDS:
                raise unknown("kind of accuracy", str(kind), KINDS)
        if self.metric is not None:
            named_metric(str(self.metric))
        weights = self.class_weights in (None, "balanced")
        require(weights, f"class_weights is 'balanced' or nothing, not {self.class_weights!r}.")
        if self.dp is not None:
            privacy = read(self.dp)
            object.__setattr__(self, "dp", str(privacy))  # so that one wish is one text, however it was written
            object.__setattr__(self, "method", protected(self.method, privacy))
        if self.engine not in (*ENGINES, *ABOVE):
            raise unknown("engine", self.engine, (*ENGINES, *ABOVE))
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)
        check_device(self.device)
        text = self.ray_address is None or (isinstance(self.ray_address, str) and self.ray_address)
        require(text, f"ray_address is auto or host:port, not {self.ray_address!r}.")
        other = self.engine != "ray" and (self.actors is not None or self.ray_address is not None)
        require(not other, "Actors, and the address of a cluster, are of the engine ray; add --engine ray.")

    @property
    def names_modules(self) -> bool:
        """Whether a part or the model is named by the module that it is imported from."""
        own = any(":" in label for label in part_json.labels(self.method))
        return own or (isinstance(self.model, str) and models.is_imported(self.model))

    @property
    def privacy(self) -> Privacy | None:
        """How updates are clipped and noised; None where they are not."""
        return None if self.dp is None else read(self.dp)

    def described(self) -> dict[str, Any]:
        """Return the experiment as JSON. A federation or a module handed in is described by what can be seen of it."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        found["method"] = part_json.to_json(self.method)
        data = self.data
        found["data"] = asdict(data) if isinstance(data, Data) else given_data(data)
        found["model"] = self.model if isinstance(self.model, str) else f"given: {type(self.model).__name__}"
        found["score"] = None if self.score is None else [kind for kind in KINDS if kind in self.score]
        return found

    @staticmethod
    def from_json(value: dict[str, Any]) -> Experiment:
        """Make an experiment from JSON as `described` gives it; every field but the method may be left out."""
        names = [entry.name for entry in fields(Experiment)]
        if "slot_memory" in value:  # as older versions called it
            value = {"memory": value["slot_memory"]} | {k: v for k, v in value.items() if k != "slot_memory"}
        for name in value:
            if name not in names:
                raise unknown("field of an experiment", name, names)
        require("method" in value, "An experiment needs a method.")
        given = dict(value)
        method = given["method"]
        given["method"] = named(method) if isinstance(method, str) else part_json.from_json(method)
        if "data" in given:
            given["data"] = data_from_json(given["data"])
        require(isinstance(given.get("model", "mlr"), str), "An experiment's model in a file is a name.")
        if models.is_imported(given.get("model", "mlr")):
            check_trusted(f"the model '{given['model']}'")
        if isinstance(given.get("score"), list):
            given["score"] = tuple(given["score"])
        return Experiment(**given)


def given_data(data: Federation) -> dict[str, Any]:
    """Return what is written down of data that were handed over: their name, the clients, and which division it is."""
    split = data.source.get("split", 0)
    return {"given": data.name, "clients": data.n} | ({"split": split} if split else {})


def data_from_json(value: Any) -> Data:
    require(isinstance(value, str | dict), f"An experiment's data is a name or a table, not {value!r}.")
    if isinstance(value, str):
        return Data(value)
    if "given" in value:
        raise BadInput("This experiment ran on data handed to it in Python; run it from Python again.")
    for name in value:
        if name not in Data.__dataclass_fields__:
            raise unknown("field of data", name, Data.__dataclass_fields__)
    return Data(**(older_meaning(value) | value))


def older_meaning(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a record of an older version meant by not having a field that there is now.

    Versions wrote down every field they knew, and those without `standardise` did not scale own tables.
    """
    whole = {"name", "partition", "irrelevant", "seed"} <= value.keys()
    old = whole and "standardise" not in value and is_path(str(value["name"]))
    return {"standardise": "none"} if old else {}


def check_device(name: str) -> None:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise BadInput(f"There is no device called '{name}'; use cpu, cuda or cuda:1.") from None
    require(device.type in ("cpu", "cuda"), f"fedkin runs on cpu or cuda, not on '{name}'.")
    if device.type == "cuda":
        number = torch.cuda.device_count() if torch.cuda.is_available() else 0
        require(number, "There is no CUDA device here; use --device cpu.")
        there = (device.index or 0) < number
        require(there, f"There is no '{name}' here, the last device is cuda:{number - 1}; use that, or --device cpu.")


def fixed_fields() -> list[Field[Any]]:
    """Return the fields that make an experiment what it is: with another value it is another experiment."""
    return [entry for entry in fields(Experiment) if not entry.metadata.get("free")]
