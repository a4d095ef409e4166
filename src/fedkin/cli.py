"""The command line: fedkin run, compare, preset, methods, data, report."""

from __future__ import annotations

import errno
import json
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from rich.console import Console
from rich.table import Table

from fedkin import compare as comparing
from fedkin import jobs, presets
from fedkin.data import Data
from fedkin.errors import BadInput, require
from fedkin.experiment import Experiment
from fedkin.methods import METHODS, named
from fedkin.options import DataOptions, PlayOptions, PresetOptions, RunOptions, shared
from fedkin.parts import Method, Part
from fedkin.play import cores
from fedkin.presets import Preset
from fedkin.progress import Progress
from fedkin.results import files, published
from fedkin.results.table import accuracy_table, comparison_table
from fedkin.settings import with_settings

WRITING = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EACCES", "EROFS", "ENOTDIR", "EEXIST", "EISDIR")}
WIDTH = 118  # columns a table has at least; a narrower terminal wraps its lines rather than losing numbers


class Unfinished(Exception):
    """Something stopped the command that is no mistake of the user's; the sentence says how to go on."""


app = typer.Typer(
    name="fedkin",
    help="Personalised federated learning in which each client learns from its kin.\n\n"
    "Try: fedkin compare fedavg fedprox --data synthetic --rounds 200",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at datasets and how they are divided among clients.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Target = Annotated[
    str,
    typer.Argument(
        metavar="METHOD|FILE", help="A method, a saved experiment.json or .toml, or with --resume the folder of a run."
    ),
]
PresetName = Annotated[str, typer.Argument(metavar="PRESET|list", help="A preset, or 'list'.")]
Targets = Annotated[list[str], typer.Argument(metavar="METHOD...", help="Methods to compare; Local is always added.")]


@app.command()
@shared(RunOptions)
def run(target: Target, options: RunOptions) -> None:
    """Run one method: METHOD|FILE is a method ('fedkin methods'), a saved experiment.json or .toml, or, with --resume,
    the folder of a run.

    fedkin run fedavg --data mnist --partition dirichlet:0.5 --clients 20 --model dnn:100 --rounds 50
    """
    if options.resume and options.out is None and target not in METHODS:
        resumed(Path(target), options)
        return
    experiment, seeds = read(target, options)
    method = with_settings(experiment.method, options.settings or [])
    begin(experiment, [method], seeds, options, method.name)


@app.command()
@shared(RunOptions)
def compare(targets: Targets, options: RunOptions) -> None:
    """Run several methods on the same data, clients and batches, always with Local, training alone, beside them.

    fedkin compare fedavg fedprox --data synthetic --rounds 200 --seeds 3
    """
    if options.resume and options.out is None and len(targets) == 1 and targets[0] not in METHODS:
        resumed(Path(targets[0]), options)
        return
    settings = options.settings or []
    methods = [applied(named(target), settings, len(targets) > 1) for target in targets]
    for path in (setting.partition("=")[0] for setting in settings):
        require(any(has(method, path) for method in methods), f"None of {', '.join(targets)} has a field '{path}'.")
    experiment, seeds = read(targets[0], options)
    methods = comparing.with_local(methods)
    begin(experiment, methods, seeds, options, "compare")


@app.command()
@shared(PresetOptions)
def preset(name: PresetName, options: PresetOptions) -> None:
    """Run a table of a paper, all its rows and seeds, and print our numbers beside the published ones; 'fedkin preset
    list' says which there are.

    fedkin preset adafl-mnist-reduced --jobs 2
    """
    if name == "list":
        list_presets()
        return
    chosen = presets.named(name)
    experiments = chosen.experiments(options.rounds)
    seeds = seeds_of(options.seeds, {"seeds": list(chosen.seeds)})
    number = jobs_of(options.jobs or "auto", len(experiments) * len(seeds), experiments[0].device)
    folder = options.out or Path("runs") / name
    start(experiments, seeds, replace(options, out=folder), lambda: folder, number, chosen)


def list_presets() -> None:
    table = Table("preset", "what it is", "rows", "seeds", "rounds", box=None, pad_edge=False)
    for found in presets.PRESETS.values():
        rounds = sorted({row.rounds for row in found.rows})
        numbers = (str(len(found.rows)), str(len(found.seeds)), " to ".join(map(str, {rounds[0]: 0, rounds[-1]: 0})))
        table.add_row(found.name, found.about, *numbers)
    Console(width=max(WIDTH, Console().width)).print(table)


def begin(experiment: Experiment, methods: list[Method], seeds: list[int], options: RunOptions, name: str) -> None:
    """Start one experiment with each of these methods."""
    experiments = [replace(experiment, method=method) for method in methods]
    number = jobs_of(options.jobs, len(methods) * len(seeds), experiment.device)
    start(experiments, seeds, options, lambda: fresh_folder(name, experiment), number)


def read(target: str, options: RunOptions) -> tuple[Experiment, list[int]]:
    """The experiment and its seeds: from a file or a method's name, with the given options on top."""
    stored: dict[str, Any] = {"method": target}
    path = Path(target)
    if path.suffix in (".json", ".toml"):
        stored = from_file(path)
    seeds = seeds_of(options.seeds, stored)
    data = stored.get("data", {})
    data = ({"name": data} if isinstance(data, str) else dict(data)) | options.given()
    data |= {"name": options.data} if options.data is not None else {}
    return Experiment.built(stored | options.given_plainly() | ({"data": data} if data else {})), seeds


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
    """From the option, or from a file's `seeds` (a number or a list) or `seed`."""
    several = stored.pop("seeds", None)
    if text is not None:
        try:
            numbers = [int(word) for word in text.split(",") if word.strip()]
        except ValueError:
            raise BadInput(f"--seeds takes a number of seeds (3) or a list of them (0,5,7), not '{text}'.") from None
        several = numbers if "," in text or len(numbers) != 1 else numbers[0]
    if several is None:
        several = [stored.get("seed", 0)]
    if isinstance(several, int) and not isinstance(several, bool):
        require(several >= 1, f"--seeds must be at least 1, not {several}.")
        return list(range(several))
    whole = isinstance(several, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in several)
    require(
        whole and several and min(several) >= 0 and len(set(several)) == len(several),
        f"Seeds are a number of them, or a list of different whole numbers from 0, not {several!r}.",
    )
    return list(several)


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
    experiments: list[Experiment],
    seeds: Sequence[int],
    options: PlayOptions,
    fresh: Callable[[], Path],
    number: int | None = None,
    preset: Preset | None = None,
) -> None:
    """Check everything that can be checked, then make the folder and play."""
    out = options.out
    busy = out is not None and out.exists() and (not out.is_dir() or any(out.iterdir()))
    require(
        options.resume or not busy, f"{out} exists already; choose another --out, or add --resume to go on with it."
    )
    if options.resume:
        where = "--resume needs the folder of the run: give it with --out, or in place of the method."
        require(out is not None, where)
    stored = comparing.stored_plan(out) if options.resume and out is not None else None
    number = number or (stored.jobs if stored else 1)
    loaded = comparing.Loaded()
    tests = int(loaded(experiments[0]).test.sizes.sum())
    require(len(experiments) == 1 or tests, "A comparison needs test samples, and no client has any; raise --test.")
    if stored:  # what was chosen then holds
        then = {arm.experiment.method.name: arm.experiment for arm in stored.arms}
        experiments = [chosen_before(experiment, then) for experiment in experiments]
    experiments = comparing.settled(experiments, loaded, min(number, len(experiments) * len(seeds)))
    if stored:
        comparing.agreed(stored.arms, comparing.arms_of(experiments, seeds, out or Path()))
    folder = out or fresh()
    plan = comparing.Plan(comparing.arms_of(experiments, seeds, folder), number, preset.name if preset else None)
    finish(plan, folder, loaded, options)


def chosen_before(experiment: Experiment, then: dict[str, Experiment]) -> Experiment:
    """The experiment with the cadence and the threads it was begun with, where it does not say others."""
    before = then.get(experiment.method.name, experiment)
    return replace(
        experiment,
        evaluate_every=experiment.evaluate_every or before.evaluate_every,
        threads=experiment.threads or before.threads,
    )


def jobs_of(text: str | None, arms: int, device: str) -> int | None:
    """How many runs side by side: a number, or 'auto', one a core; several do not help on one GPU."""
    if text is None:
        return None
    if text.strip().lower() == "auto":
        return min(arms, cores()) if device == "cpu" else 1
    whole = text.strip().isascii() and text.strip().isdigit() and int(text) >= 1
    require(whole, f"--jobs takes a number of processes from 1, or auto: one a core; not '{text}'.")
    return int(text)


def resumed(folder: Path, options: RunOptions) -> None:
    """Go on with what a folder set out to do."""
    inner = folder.parent.parent if (folder / "experiment.json").exists() else folder
    said = [*options.given(), *options.given_plainly(), *(["set"] if options.settings else [])]
    said += [name for name in ("data", "seeds") if getattr(options, name) is not None]
    other = sorted({name.replace("_", "-") for name in said} - {"rounds"})
    fixed = f"{inner} says itself what it runs; leave --{', --'.join(other)} out, or give the method and --out."
    require(not other, fixed)
    stored = comparing.stored_plan(inner)
    number = jobs_of(options.jobs, len(stored.arms), stored.arms[0].experiment.device) or stored.jobs
    arms = stored.arms
    if options.rounds is not None:
        arms = [replace(arm, experiment=replace(arm.experiment, rounds=options.rounds)) for arm in arms]
    comparing.agreed(stored.arms, arms)
    finish(comparing.Plan(arms, number, stored.preset), inner, comparing.Loaded(), options)


def finish(plan: comparing.Plan, folder: Path, loaded: comparing.Loaded, options: PlayOptions) -> None:
    """Play a plan to its end, and show what came out."""
    folder.mkdir(parents=True, exist_ok=True)
    with files.locked(folder):
        new = options.resume or not (folder / "plan.json").exists()
        require(new, f"Another command was at work in {folder} just now; choose another --out, or add --resume.")
        comparing.write_plan(folder, plan.arms, plan.jobs, plan.preset)
        played(plan, folder, loaded, options.resume)
        concluded(plan, folder, options.as_json)


def played(plan: comparing.Plan, folder: Path, loaded: comparing.Loaded, resume: bool) -> None:
    screen, arms = Console(stderr=True), plan.arms
    go_on = f"Go on with: fedkin run --resume {folder}"
    with Progress(screen, arms) as progress:
        for sentence in comparing.uneven(comparing.compared(arms)):
            progress.warn(sentence)
        ears: dict[str, Any] = {"listener": progress.listener, "warn": progress.warn}
        try:
            done = jobs.play(arms, plan.jobs, loaded, resume=resume, stopping=lambda: progress.stopping, **ears)
        except jobs.Killed as error:
            raise Unfinished(f"{error} {go_on}") from None
    if not done:
        screen.print(f"Stopped and saved. {go_on}", highlight=False, soft_wrap=True)
        raise typer.Exit(130)


def concluded(plan: comparing.Plan, folder: Path, as_json: bool) -> None:
    """Write the summaries and the page, and print the table."""
    screen, preset = Console(stderr=True), presets.PRESETS.get(plan.preset or "")
    summary = comparing.summarised(folder, plan.arms)
    if preset is not None:
        summary["preset"] = published.found(preset, plan.arms)
        files.write_json(folder / "summary.json", summary)
    if as_json:
        sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    else:
        table = comparison_table(summary) if "methods" in summary else accuracy_table(summary)
        wide = max(WIDTH, Console().width, Console(width=1000).measure(table).maximum)  # no name or number is cut
        Console(width=wide).print(table if preset is None else published.shown(summary["preset"]))
    page = written_report(folder, screen)
    end = f", its report is {page}" if page else ""
    screen.print(f"The run is in {folder}{end}", highlight=False, soft_wrap=True)


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
    for number in count(1):
        folder = Path("runs") / f"{name}-{word}-{number}"
        with suppress(FileExistsError):  # taken, perhaps this very moment, by another command
            folder.mkdir(parents=True)
            return folder
    raise AssertionError("numbers do not end")


@app.command()
def methods() -> None:
    """List the methods and what they are made of."""
    table = Table("method", "select", "train", "keep", "collaborate", box=None, pad_edge=False)
    for name in METHODS:
        method = named(name)
        table.add_row(name, *(shown(getattr(method, part)) for part in ("select", "train", "keep", "collaborate")))
    console = Console(width=max(WIDTH, Console().width))
    console.print(table)
    console.print("Change a field with --set, as in: fedkin run fedavg --set train.eta=0.1 --set select.fraction=0.2")
    console.print("or a whole part: fedkin run fedmcsa --set keep=Relevance --set keep.samples=2")


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
@shared(DataOptions)
def data_show(
    name: Annotated[str, typer.Argument(metavar="DATA", help="A dataset or a path to own data.")] = "synthetic",
    out: Annotated[Path | None, typer.Option(help="File of the picture. [<data>-<partition>-<irrelevant>.svg]")] = None,
    *,
    options: DataOptions,
) -> None:
    """Print how many samples of each class every client has, and draw it.

    fedkin data show mnist --partition dirichlet:0.5 --clients 20
    """
    from fedkin.data import load, picture

    federation = load(Data(name=name, **options.given()))
    for line in picture.table(federation):
        print(line)
    word = "-".join(w for w in (name, options.partition, options.irrelevant) if w)
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
    except Unfinished as error:
        code = complained(str(error), 1)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        code = complained(error.format_message())
    except OSError as error:
        if error.errno is None or error.errno not in WRITING:
            raise
        where = f" at {error.filename}" if error.filename else ""
        advice = (
            "free some space and go on with --resume"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else "choose another --out"
        )
        code = complained(f"Cannot write{where}: {os.strerror(error.errno)}; {advice}.")
    sys.exit(code or 0)


def complained(sentence: str, code: int = 2) -> int:
    Console(stderr=True).print(f"fedkin: {sentence}", style="red", highlight=False, markup=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    main()
