"""The command line: fedkin run, compare, methods, data, report."""

from __future__ import annotations

import errno
import json
import os
import sys
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from rich.console import Console
from rich.table import Table

from fedkin import compare as comparing
from fedkin.data.spec import Data
from fedkin.describe import with_settings
from fedkin.errors import BadInput, require
from fedkin.experiment import Experiment
from fedkin.methods import METHODS, named
from fedkin.parts import Method, Part
from fedkin.progress import Progress
from fedkin.results import files
from fedkin.results.table import accuracy_table, comparison_table

WIDTH = 118  # columns a comparison needs; a narrower terminal wraps its lines rather than losing numbers

app = typer.Typer(
    name="fedkin",
    help="Personalised federated learning in which each client learns from its kin.\n\n"
    "Try: fedkin compare fedavg fedprox --data synthetic --rounds 200",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at datasets and how they are divided among clients.", no_args_is_help=True)
app.add_typer(data_app, name="data")

DataName = Annotated[
    str | None, typer.Option("--data", help="A dataset (see 'fedkin data list') or a path to own data. [synthetic]")
]
Partition = Annotated[
    str | None,
    typer.Option(help="Who gets which samples: iid, dirichlet:0.5, classes:2, shards:2, natural, pfedme, ..."),
]
Clients = Annotated[int | None, typer.Option(help="Number of clients.")]
Samples = Annotated[int | None, typer.Option(help="At most so many training samples a client.")]
Holdout = Annotated[
    str | None,
    typer.Option(help="split: hold out a part of each client's share; official: the official test set. [split]"),
]
Validation = Annotated[float | None, typer.Option(help="Share of each client's samples held out for validation. [0]")]
DataSeed = Annotated[int | None, typer.Option(help="Seed of the data and their partition. [0]")]
ClientColumn = Annotated[
    str | None, typer.Option("--client-column", help="Own data: the column that says whose a sample is.")
]
TargetColumn = Annotated[str | None, typer.Option("--target-column", help="Own data: the column of the class.")]
Model = Annotated[
    str | None, typer.Option(help="mlr, dnn:100, mlp:200,200, lenet, cnn, cnn:fedmix, or package.module:Class. [mlr]")
]
Rounds = Annotated[int | None, typer.Option(help="Number of rounds. [100]")]
Seeds = Annotated[
    str | None,
    typer.Option(
        help="How many seeds (3: seeds 0, 1, 2) or which (as 0,5,7): of initialisation, selection and batches."
    ),
]
Engine = Annotated[
    str | None, typer.Option(help="stacked (many clients at once) or plain (one after another). [stacked]")
]
Every = Annotated[
    int | None,
    typer.Option("--evaluate-every", help="Score every so many rounds. [so that it costs about 15 % of the run]"),
]
Threads = Annotated[int | None, typer.Option(help="CPU threads. [1 for small models, else the machine's]")]
Chunk = Annotated[int | None, typer.Option(help="Clients trained at once by the stacked engine: a speed knob only.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. [cpu]")]
Out = Annotated[Path | None, typer.Option(help="Folder of the run. [runs/<a new name>]")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run in --out, or in the folder given instead of a method.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON, and nothing else, on standard output.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Change a part's field, as --set train.eta=0.1 or select.fraction=0.2; may be repeated."
    ),
]


@app.command()
def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="METHOD|FILE",
            help="A method, or a saved experiment.json or .toml, or with --resume the folder of a run.",
        ),
    ],
    data: DataName = None,
    partition: Partition = None,
    clients: Clients = None,
    samples: Samples = None,
    holdout: Holdout = None,
    validation: Validation = None,
    data_seed: DataSeed = None,
    client_column: ClientColumn = None,
    target_column: TargetColumn = None,
    model: Model = None,
    rounds: Rounds = None,
    seeds: Seeds = None,
    engine: Engine = None,
    evaluate_every: Every = None,
    threads: Threads = None,
    chunk: Chunk = None,
    device: Device = None,
    out: Out = None,
    resume: Resume = False,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Run one method.

    fedkin run fedavg --data mnist --partition dirichlet:0.5 --clients 20 --model dnn:100 --rounds 50
    """
    given = options(locals())
    folder = Path(target)
    if resume and out is None and folder.is_dir():
        resumed(folder, rounds, as_json)
        return
    experiment, found = read(target, given)
    method = with_settings(experiment.method, settings or [])
    start([method], experiment, found, out, resume, as_json, name=method.name)


@app.command()
def compare(
    targets: Annotated[
        list[str], typer.Argument(metavar="METHOD...", help="Methods to compare; Local is always added.")
    ],
    data: DataName = None,
    partition: Partition = None,
    clients: Clients = None,
    samples: Samples = None,
    holdout: Holdout = None,
    validation: Validation = None,
    data_seed: DataSeed = None,
    client_column: ClientColumn = None,
    target_column: TargetColumn = None,
    model: Model = None,
    rounds: Rounds = None,
    seeds: Seeds = None,
    engine: Engine = None,
    evaluate_every: Every = None,
    threads: Threads = None,
    chunk: Chunk = None,
    device: Device = None,
    out: Out = None,
    resume: Resume = False,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Run several methods on the same data, clients and batches, with training alone beside them.

    fedkin compare fedavg fedprox --data synthetic --rounds 200 --seeds 3
    """
    given = options(locals())
    if resume and out is None and len(targets) == 1 and Path(targets[0]).is_dir():
        resumed(Path(targets[0]), rounds, as_json)
        return
    methods = [applied(named(target), settings or [], len(targets) > 1) for target in targets]
    for setting in settings or []:
        path = setting.partition("=")[0]
        require(any(has(method, path) for method in methods), f"None of {', '.join(targets)} has a field '{path}'.")
    experiment, found = read(targets[0], given)
    methods = comparing.with_local(methods)
    start(methods, replace(experiment, method=methods[0]), found, out, resume, as_json, name="compare")


def options(values: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, of a command's local variables."""
    names = {
        "data": "data.name",
        "partition": "data.partition",
        "clients": "data.clients",
        "samples": "data.samples",
        "holdout": "data.holdout",
        "validation": "data.validation",
        "data_seed": "data.seed",
        "client_column": "data.client",
        "target_column": "data.target",
    }
    plain = ("model", "rounds", "seeds", "engine", "evaluate_every", "threads", "chunk", "device")
    known = names | {name: name for name in plain}
    return {path: values[name] for name, path in known.items() if values.get(name) is not None}


def read(target: str, given: dict[str, Any]) -> tuple[Experiment, list[int]]:
    """The experiment and its seeds: from a file or a method's name, with the given options on top."""
    stored: dict[str, Any] = {"method": target}
    path = Path(target)
    if path.suffix in (".json", ".toml"):
        stored = from_file(path)
    elif target not in METHODS and path.is_dir() and (path / "experiment.json").exists():
        stored = from_file(path / "experiment.json")
    seeds = seeds_of(given.pop("seeds", None), stored)
    inner = stored.get("data", {})
    inner = {"name": inner} if isinstance(inner, str) else dict(inner)
    for name, value in given.items():
        if name.startswith("data."):
            inner[name.removeprefix("data.")] = value
        else:
            stored[name] = value
    return Experiment.built(stored | ({"data": inner} if inner else {})), seeds


def from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
        stored = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise BadInput(f"{path} is not a valid {path.suffix[1:].upper()} file: {error}.") from error
    require(isinstance(stored, dict), f"{path} does not hold an experiment.")
    stored.pop("resolved", None)
    return dict(stored)


def seeds_of(text: str | None, stored: dict[str, Any]) -> list[int]:
    if text is None:
        several = stored.pop("seeds", None)
        return (
            several if isinstance(several, list) else list(range(several)) if several else [int(stored.get("seed", 0))]
        )
    try:
        numbers = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise BadInput(f"--seeds takes a number of seeds (3) or a list of them (0,5,7), not '{text}'.") from None
    if len(numbers) == 1 and "," not in text:
        require(numbers[0] >= 1, f"--seeds must be at least 1, not {text}.")
        return list(range(numbers[0]))
    require(
        numbers and min(numbers) >= 0 and len(set(numbers)) == len(numbers),
        f"--seeds: '{text}' is not a list of different seeds.",
    )
    return numbers


def has(method: Method, path: str) -> bool:
    part: object = method
    for name in path.split("."):
        if not isinstance(part, Part) or name not in part.values():
            return False
        part = getattr(part, name)
    return True


def applied(method: Method, settings: list[str], several: bool) -> Method:
    """The settings that this method has fields for; with one method all must fit."""
    return with_settings(method, [s for s in settings if not several or has(method, s.partition("=")[0])])


def start(
    methods: list[Method],
    experiment: Experiment,
    seeds: list[int],
    out: Path | None,
    resume: bool,
    as_json: bool,
    name: str,
) -> None:
    folder = out or fresh_folder(name, experiment)
    busy = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    require(resume or not busy, f"{folder} exists already; choose another --out, or add --resume to go on with it.")
    if resume:
        require(out is not None, "--resume needs the folder of the run: give it with --out, or in place of the method.")
        comparing.stored_plan(folder)
    federation = comparing.federation_of(experiment)
    every = comparing.shared_cadence(experiment, methods, federation)
    experiment = replace(experiment, evaluate_every=every)
    plan = comparing.arms(experiment, methods, seeds, folder)
    if not resume:
        comparing.write_plan(folder, plan)
    finish(plan, folder, federation, resume, as_json)


def resumed(folder: Path, rounds: int | None, as_json: bool) -> None:
    """Go on with what a folder set out to do."""
    inner = folder if not (folder / "experiment.json").exists() else folder.parent.parent
    plan = comparing.stored_plan(inner)
    if rounds is not None:
        plan = [comparing.Arm(replace(arm.experiment, rounds=rounds), arm.folder) for arm in plan]
    finish(plan, inner, comparing.federation_of(plan[0].experiment), True, as_json)


def finish(plan: list[comparing.Arm], folder: Path, federation: Any, resume: bool, as_json: bool) -> None:
    screen = Console(stderr=True)
    with Progress(screen, plan) as progress:
        done = comparing.play(plan, federation, resume=resume, listener=progress.listener, warn=progress.warn)
    if done is None:
        screen.print(f"Stopped and saved. Go on with: fedkin run --resume {folder}", highlight=False, soft_wrap=True)
        raise typer.Exit(130)
    comparing.write_plan(folder, plan)
    summary = comparing.summarised(folder, plan)
    if as_json:
        sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    else:
        show = Console(width=max(WIDTH, Console().width))
        show.print(comparison_table(summary) if "methods" in summary else accuracy_table(summary))
    page = written_report(folder, screen)
    screen.print(
        f"The run is in {folder}" + (f", its report is {page}" if page else ""), highlight=False, soft_wrap=True
    )


def written_report(folder: Path, screen: Console) -> Path | None:
    try:
        from fedkin.results.report import write
    except ModuleNotFoundError:
        hint = f"For a report with pictures: pip install 'fedkin[report]', then: fedkin report {folder}"
        screen.print(hint, markup=False, highlight=False, soft_wrap=True)
        return None
    return write(folder)


def fresh_folder(name: str, experiment: Experiment) -> Path:
    data = experiment.data.name if isinstance(experiment.data, Data) else "data"
    word = "".join(c if c.isalnum() else "-" for c in Path(data).stem).strip("-")
    number = 1
    while (folder := Path("runs") / f"{name}-{word}-{number}").exists():
        number += 1
    return folder


@app.command()
def methods() -> None:
    """List the methods and what they are made of."""
    table = Table("method", "select", "train", "keep", "collaborate", box=None, pad_edge=False)
    for name in METHODS:
        method = named(name)
        table.add_row(name, *(shown(getattr(method, part)) for part in ("select", "train", "keep", "collaborate")))
    console = Console()
    console.print(table)
    console.print("Change a field with --set, as in: fedkin run fedavg --set train.eta=0.1 --set select.fraction=0.2")


def shown(part: Part) -> str:
    """A part with the fields that differ from its class's defaults."""
    default = {f.name: f.default for f in fields(part)}  # type: ignore[arg-type]
    inside = ", ".join(f"{name}={value}" for name, value in part.values().items() if value != default[name])
    return f"{type(part).__name__}({inside})"


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or a comparison.")]) -> None:
    """Write a page with the table, the curves and every client's gain over training alone."""
    require(comparing.stored_arms(folder), f"{folder} is not a run of fedkin; give the folder that 'fedkin run' named.")
    page = written_report(folder, Console(stderr=True))
    if page is None:
        raise typer.Exit(2)
    print(page)


@data_app.command("list")
def data_list() -> None:
    """List the datasets, and whether they are at hand."""
    from fedkin.data import datasets

    table = Table("name", "what it is", "from", "here", box=None, pad_edge=False)
    for row in datasets():
        table.add_row(row.name, row.description, ", ".join(row.sources), "yes" if row.offline else "no")
    Console().print(table)


@data_app.command("show")
def data_show(
    name: Annotated[str, typer.Argument(metavar="DATA", help="A dataset or a path to own data.")] = "synthetic",
    partition: Partition = None,
    clients: Clients = None,
    samples: Samples = None,
    holdout: Holdout = None,
    validation: Validation = None,
    data_seed: DataSeed = None,
    client_column: ClientColumn = None,
    target_column: TargetColumn = None,
    out: Annotated[Path | None, typer.Option(help="File of the picture. [<data>-<partition>.svg]")] = None,
) -> None:
    """Print how many samples of each class every client has, and draw it.

    fedkin data show mnist --partition dirichlet:0.5 --clients 20
    """
    from fedkin.data import load, picture

    given = {"data": name} | {k: v for k, v in locals().items() if k not in ("name", "out", "load", "picture")}
    values = {path.removeprefix("data."): value for path, value in options(given).items()}
    federation = load(Data(**values))
    for line in picture.table(federation):
        print(line)
    word = "-".join(w for w in (name, partition) if w)
    path = out or Path("".join(c if c.isalnum() or c in ".-" else "-" for c in word) + ".svg")
    picture.draw(federation, path)
    print(f"Picture: {path}")


def main() -> None:
    """Bad input is one sentence and exit code 2; anything else that fails keeps its traceback."""
    try:
        code = app(standalone_mode=False)
    except BadInput as error:
        code = complained(str(error))
    except files.Damaged as error:
        code = complained(f"{error}.")
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        code = complained(error.format_message())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOTDIR):
            raise
        where = f" at {error.filename}" if error.filename else ""
        advice = (
            "free some space and go on with --resume"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else "choose another --out"
        )
        code = complained(f"Cannot write{where}: {os.strerror(error.errno)}; {advice}.")
    sys.exit(code or 0)


def complained(sentence: str) -> int:
    Console(stderr=True).print(f"fedkin: {sentence}", style="red", highlight=False, markup=False, soft_wrap=True)
    return 2


if __name__ == "__main__":
    main()
