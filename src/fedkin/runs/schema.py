"""What the JSON files of a folder must be like, so that whoever reads them need not ask.

A folder may be damaged, or be made by somebody who means harm: a number that is a text would otherwise go into names of
files, pages and tables. Fields that are not named here may be anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from fedkin.errors import shown
from fedkin.fields import names_a_folder
from fedkin.runs.files import Damaged, read_json, text_of
from fedkin.runs.manifest import unsealed

SIZE = 2**63  # whole numbers are below it


def folder_name(value: str) -> str:
    """Return a text that can name a folder; anything else is refused."""
    if not names_a_folder(value):
        raise ValueError(f"{shown(value)} cannot name a folder")
    return value


From0 = Annotated[StrictInt, Field(ge=0, lt=SIZE)]
From1 = Annotated[StrictInt, Field(ge=1, lt=SIZE)]
Name = Annotated[StrictStr, AfterValidator(folder_name)]


class Said(BaseModel):
    """An object of JSON of which some fields are known."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class MethodSaid(Said):
    """A method: its name, and its parts."""

    name: Name


class DataSaid(Said):
    """Which data: what can be counted of them."""

    split: From0 | None = None
    seed: From0 | None = None


class Asked(Said):
    """An experiment as it was asked for."""

    method: MethodSaid
    data: DataSaid
    model: StrictStr
    rounds: From1
    seed: From0
    metric: StrictStr | None = None


class PlanSaid(Said):
    """plan.json: the experiments of a command, and how they are played."""

    arms: Annotated[list[Asked], Field(min_length=1)]
    jobs: From1 = 1
    against: dict[str, StrictStr] | None = None
    tuned: dict[str, Any] | None = None
    targets: list[Any] = []
    cluster: StrictStr | None = None


class Resolved(Said):
    """What was chosen for an experiment."""

    clients: From1
    classes: From0
    parameters: From0
    evaluate_every: From1
    shape: list[From0]
    vocabulary: From0 | None = None
    fingerprint: StrictStr
    versions: dict[str, StrictStr | None]


class ExperimentSaid(Asked):
    """experiment.json: an experiment, and what was chosen for it."""

    resolved: Resolved


class ClientsSaid(Said):
    """clients.json: lists with an entry for each client."""

    names: list[StrictStr] = []


class SummarySaid(Said):
    """summary.json of a run."""

    rounds: From1


class Rows(Said):
    """A file of rows of private models, as a checkpoint names it."""

    file: Name
    rows: From1
    checksum: StrictStr


class Spent(Said):
    """The seconds that were spent until a checkpoint."""

    train_s: float
    mix_s: float
    evaluate_s: float
    total_s: float


class CheckpointSaid(Said):
    """The JSON file of a checkpoint."""

    round: From0
    checksum: StrictStr
    lengths: dict[Name, From0]
    time: Spent
    digests: dict[Name, StrictStr] = {}
    drawn: dict[StrictStr, StrictStr] | None = None
    segments: list[Rows] = []
    layout: StrictStr = ""


class Line(TypedDict):
    """A line of rounds.jsonl."""

    round: From1
    selected: From0
    replied: From0


LINES = TypeAdapter(list[Line])


def read(kind: type[Said], path: Path) -> dict[str, Any]:
    """Return a JSON file that is like this, and what was once written; raises `Damaged` where it is not."""
    found: dict[str, Any] = checked(kind.model_validate, unsealed(read_json(path), path), path)
    return found


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of rounds.jsonl. A last one that was cut short by a kill does not count."""
    try:
        found = [json.loads(line) for line in text_of(path).split("\n")[:-1]]
    except ValueError as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    lines: list[dict[str, Any]] = checked(LINES.validate_python, found, path)
    return lines


def checked(validate: Callable[[Any], object], value: Any, path: Path) -> Any:
    """Return a value that is like it should be, as it is; raises `Damaged` where it is not."""
    try:
        validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise Damaged(f"{path} is damaged: {where}: {first['msg']}") from None
    return value
