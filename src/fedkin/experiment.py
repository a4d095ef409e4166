"""An experiment: what is learned from what by which method, as one frozen record that survives JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn

from fedkin.data.federation import Federation
from fedkin.data.spec import Data
from fedkin.engines import ENGINES
from fedkin.errors import BadInput, require, unknown
from fedkin.evaluate import KINDS
from fedkin.part_json import from_json, to_json
from fedkin.parts import Method

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Experiment:
    """`data` is a `Data` or a ready `Federation`; `model` a name ("mlr", "dnn:100", "package.module:Class") or a
    module.

    `seed` is of initialisation, selection and batches; the data have a seed of their own (`Data.seed`). None for
    `evaluate_every`, `chunk` and `threads` means a choice made by the size of the work; what was chosen is recorded.
    Clients' private models beyond `slot_memory` gigabytes are kept in mapped files instead of memory. `score` are the
    kinds of accuracy that are computed, of "post", "global", "recv" and "test"; None is all that there are. With
    `heterogeneity` evaluated rounds also record PFedRe's gap and skew (definitions 2 and 3), which needs every client's
    training loss.
    """

    method: Method
    data: Data | Federation = field(default_factory=Data)
    model: str | nn.Module = "mlr"
    rounds: int = 100
    seed: int = 0
    engine: str = "stacked"
    evaluate_every: int | None = None
    chunk: int | None = None
    threads: int | None = None
    device: str = "cpu"
    dtype: str = "float32"
    slot_memory: float = 4.0
    score: tuple[str, ...] | None = None
    heterogeneity: bool = False

    def __post_init__(self) -> None:
        require(isinstance(self.method, Method), "An experiment's method is a Method, as fk.methods.fedavg() gives.")
        for name, least in (("rounds", 1), ("seed", 0), ("evaluate_every", 1), ("chunk", 1), ("threads", 1)):
            value = getattr(self, name)
            if value is None and name in ("evaluate_every", "chunk", "threads"):
                continue
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            require(whole, f"{name} must be a whole number of at least {least}, not {value}.")
        number = isinstance(self.slot_memory, int | float) and self.slot_memory >= 0
        require(number, f"slot_memory is a number of gigabytes from 0, not {self.slot_memory!r}.")
        for name in ("engine", "dtype", "device"):
            require(isinstance(getattr(self, name), str), f"{name} is a name, not {getattr(self, name)!r}.")
        require(isinstance(self.heterogeneity, bool), f"heterogeneity is true or false, not {self.heterogeneity!r}.")
        several = self.score is None or (isinstance(self.score, list | tuple) and self.score)
        require(several, f"score is a list of kinds, of {', '.join(KINDS)}, not {self.score!r}.")
        for kind in self.score or ():
            if kind not in KINDS:
                raise unknown("kind of accuracy", str(kind), KINDS)
        if self.engine not in ENGINES:
            raise unknown("engine", self.engine, ENGINES)
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)
        try:
            device = torch.device(self.device)
        except RuntimeError:
            raise BadInput(f"There is no device called '{self.device}'; use cpu, cuda or cuda:1.") from None
        require(device.type in ("cpu", "cuda"), f"fedkin runs on cpu or cuda, not on '{self.device}'.")
        require(device.type != "cuda" or torch.cuda.is_available(), "There is no CUDA device here; use --device cpu.")

    def described(self) -> dict[str, Any]:
        """As JSON. A federation or a module handed in is described by what can be seen of it."""
        data = asdict(self.data) if isinstance(self.data, Data) else {"given": self.data.name, "clients": self.data.n}
        given = self.model if isinstance(self.model, str) else f"given: {type(self.model).__name__}"
        plain = ["rounds", "seed", "engine", "evaluate_every", "chunk", "threads", "device", "dtype", "slot_memory"]
        plain.append("heterogeneity")
        rest = {name: getattr(self, name) for name in plain}
        score = None if self.score is None else [kind for kind in KINDS if kind in self.score]
        return {"method": to_json(self.method), "data": data, "model": given} | rest | {"score": score}

    @staticmethod
    def built(value: dict[str, Any]) -> Experiment:
        """From JSON, as `described` gives it; every field but the method may be left out."""
        names = list(Experiment.__dataclass_fields__)
        for name in value:
            if name not in names:
                raise unknown("field of an experiment", name, names)
        require("method" in value, "An experiment needs a method.")
        given = dict(value)
        method = given.pop("method")
        if isinstance(method, str):
            from fedkin.methods import named

            given["method"] = named(method)
        else:
            given["method"] = from_json(method)
        if "data" in given:
            data = given["data"]
            require(isinstance(data, str | dict), f"An experiment's data is a name or a table, not {data!r}.")
            if isinstance(data, dict) and "given" in data:
                raise BadInput("This experiment ran on data handed to it in Python; run it from Python again.")
            if isinstance(data, dict):
                for name in data:
                    if name not in Data.__dataclass_fields__:
                        raise unknown("field of data", name, Data.__dataclass_fields__)
            given["data"] = Data(data) if isinstance(data, str) else Data(**data)
        require(isinstance(given.get("model", "mlr"), str), "An experiment's model in a file is a name.")
        if isinstance(given.get("score"), list):
            given["score"] = tuple(given["score"])
        return Experiment(**given)
