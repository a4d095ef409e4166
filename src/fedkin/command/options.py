"""The options that `fedkin run`, `compare` and `data show` share, written once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from fedkin.command.app import Trust, Verify
from fedkin.runs.experiment import Experiment

T = TypeVar("T")


GROUPS = {  # of --help, with the options in each
    "Data": "data partition clients samples holdout test validation server_validation irrelevant data_seed data_seeds "
    "splits without",
    "Own tables": "client_column target_column features drop standardise task",
    "Training and scoring": "rounds seeds model settings evaluate_every score_clients goals metric class_weights score "
    "dp heterogeneity gradient_norm",
    "Search": "space trials grid prune average search_seed",
    "Where and how": "out resume trust verify jobs engine actors ray_address threads chunk memory device save export "
    "export_clients export_pairs track watch profile as_json",
}


def grouped(name: str, annotation: Any) -> Any:
    """Put the option of this name into its group of --help, and return its annotation."""
    group = next((group for group, names in GROUPS.items() if name in names.split()), None)
    for info in getattr(annotation, "__metadata__", ()):
        info.rich_help_panel = group
    return annotation


def option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text)


@dataclass(frozen=True)
class DataOptions:
    """Which samples, and how they are divided. The names are those of `Data`, but for a few that say too little."""

    partition: Annotated[
        str | None, option("Who gets which samples: iid, dirichlet:0.5, classes:2, shards:2, natural, pfedme, ...")
    ] = None
    clients: Annotated[int | None, option("Number of clients.")] = None
    samples: Annotated[int | None, option("At most so many training samples a client.")] = None
    holdout: Annotated[
        str | None, option("split: hold out a part of each client's share; official: the official test set. [split]")
    ] = None
    test: Annotated[float | None, option("Share of each client's samples held out for testing. [0.25]")] = None
    validation: Annotated[float | None, option("Share of each client's samples held out for validation. [0]")] = None
    server_validation: Annotated[
        int | None, option("Samples taken out before the partition for the server's own validation set. [0]")
    ] = None
    irrelevant: Annotated[
        str | None,
        option(
            "Clients of no use to the others: flip:0.2, flip:0.1,0.2, ood:0.1, ood:0.1,noise, target:0.2, odd_even; "
            "with attacks on updates: scale:0.1,-10, sign:0.3, alie:0.2."
        ),
    ] = None
    data_seed: Annotated[int | None, option("Seed of the data and their partition. [0]")] = None
    client_column: Annotated[str | None, option("Own data: the column that says whose a sample is.")] = None
    target_column: Annotated[str | None, option("Own data: the column to predict, classes or numbers.")] = None
    features: Annotated[str | None, option("Tables: the only columns to learn from, as in age,ward,albumin. [all]")] = (
        None
    )
    drop: Annotated[str | None, option("Tables: columns not to learn from, as in admitted,country. [none]")] = None
    standardise: Annotated[
        str | None,
        option(
            "Tables: scale numbers by each site's own training rows (site), by those of all sites (all), or not "
            "(none). [site]"
        ),
    ] = None
    task: Annotated[
        str | None,
        option("Own data: classify or regress. [regress numbers with a fraction, classify text and few whole numbers]"),
    ] = None

    def of_data(self) -> dict[str, Any]:
        """Return what was said of the data, by the names of `Data`."""
        names = {
            "data_seed": "seed",
            "server_validation": "server",
            "client_column": "client",
            "target_column": "target",
        }
        said = {field.name: getattr(self, field.name) for field in fields(DataOptions)}
        for name in ("features", "drop"):
            if said[name] is not None:
                said[name] = tuple(column.strip() for column in said[name].split(",") if column.strip())
        return {names.get(name, name): value for name, value in said.items() if value is not None}


@dataclass(frozen=True)
class PlayOptions:
    """How much is run, where, and how the result is shown."""

    rounds: Annotated[int | None, option("Number of rounds. [100]")] = None
    seeds: Annotated[
        str | None,
        option("How many seeds (3: 0, 1, 2) or which (0,5,7): of the start, selection and batches. [1]"),
    ] = None
    jobs: Annotated[
        str | None,
        option("Runs side by side, each in a process of its own: a number; auto: one a core; ray: on a cluster. [1]"),
    ] = None
    out: Annotated[Path | None, option("Folder of the run. [a new one in runs/]")] = None
    resume: Annotated[
        bool, option("Go on with the run in --out, or in the folder given in place of a method.", "--resume")
    ] = False
    trust: Trust = False
    verify: Verify = True
    track: Annotated[
        list[str] | None, option("Send the rounds of every run to tensorboard, mlflow or wandb too; may be repeated.")
    ] = None
    export: Annotated[
        list[str] | None, option("Write the table to this file too: .csv, .tex or .md; may be repeated, or a,b.")
    ] = None
    export_clients: Annotated[
        list[str] | None, option("Write every client's gains to this file: .csv, .tex or .md; may be repeated, or a,b.")
    ] = None
    export_pairs: Annotated[
        list[str] | None, option("Write each method against each other one to this file: .csv, .tex or .md.")
    ] = None
    watch: Annotated[bool, option("Show the runs on a local page while they are played.", "--watch")] = False
    profile: Annotated[
        bool,
        option("Print where the time went of the run, or of the first one of several: a table that sums to the whole."),
    ] = False
    as_json: Annotated[bool, option("Print the summary as JSON, and nothing else, on standard output.", "--json")] = (
        False
    )


@dataclass(frozen=True)
class RunOptions(PlayOptions, DataOptions):
    """All options of a run. An option that is named as a field of `Experiment` sets that field."""

    data: Annotated[str | None, option("A dataset ('fedkin data list') or a path to own data. [synthetic]")] = None
    model: Annotated[
        str | None,
        option(
            "mlr, dnn:100, mlp:200,200, lenet, cnn, cnn:fedmix, vgg11, resnet50, lstm, or package.module:Class. [mlr]"
        ),
    ] = None
    engine: Annotated[
        str | None,
        option(
            "stacked (many clients at once), plain (one after another), ray (clients divided among actors; "
            "docs/cluster.md) or flower (Flower's simulation runtime; docs/federation.md). [stacked]"
        ),
    ] = None
    actors: Annotated[int | None, option("Actors of --engine ray, of which each has a core. [one a core]")] = None
    ray_address: Annotated[
        str | None,
        option("The Ray cluster of --engine ray or --jobs ray: host:port, auto, or here. [here]"),
    ] = None
    evaluate_every: Annotated[
        int | None, option("Score every so many rounds. [12 rounds at least; more within an eighth of the time]")
    ] = None
    goals: Annotated[
        list[str] | None,
        option(
            "Count rounds and uploads until the mean of five rounds is above this value of the metric that decides: "
            "0.9, or fedavg+0.01, the last ten rounds of an arm and more; post:0.9 names the models that count. May be "
            "repeated; every round is scored then.",
            "--target",
        ),
    ] = None
    score_clients: Annotated[
        int | None,
        option("Score so many clients only: a fixed random sample, the same for all methods. [all]"),
    ] = None
    heterogeneity: Annotated[
        bool,
        option(
            "Record the personal-global gap and the selection skew too (PFedRe's definitions 2 and 3).",
            "--heterogeneity",
        ),
    ] = False
    gradient_norm: Annotated[
        bool,
        option(
            "Record the norm of the gradient that FedACS's theorem bounds, over all training samples.",
            "--gradient-norm",
        ),
    ] = False
    splits: Annotated[
        int | None,
        option("Divisions into train and test that everything is repeated on, the same for all methods. [1]"),
    ] = None
    data_seeds: Annotated[
        int | None,
        option(
            "Seeds of the data, from --data-seed on, that everything is repeated on: each is another partition, and "
            "one seed goes along. [1]"
        ),
    ] = None
    score: Annotated[
        str | None, option("Kinds of models to score, as in global,test: of post, global, recv, test. [all]")
    ] = None
    metric: Annotated[
        str | None,
        option(
            "What decides who is better off: accuracy, balanced_accuracy, auc, f1, log_loss, calibration_error; for "
            "numbers r2, rmse. All are recorded. [accuracy, or r2]"
        ),
    ] = None
    class_weights: Annotated[
        str | None, option("balanced: in training all classes of a client count the same. [none]")
    ] = None
    dp: Annotated[
        str | None,
        option(
            "Clip updates and add noise before they leave a client, as in clip=1.0,noise=0.8: the noise has the "
            "deviation noise * clip; delta=1e-5 and losses=true may follow (docs/privacy.md). [off]"
        ),
    ] = None
    threads: Annotated[int | None, option("Cores that train clients, to the same bits. [the machine's]")] = None
    chunk: Annotated[int | None, option("Clients trained at once by the stacked engine: a speed knob only.")] = None
    memory: Annotated[
        str | None,
        option(
            "Memory for clients' private models, as 2GB, 500MB or a number of GB; the others lie in files. [half of "
            "what is free, at most 500MB]"
        ),
    ] = None
    device: Annotated[str | None, option("cpu or cuda. [cpu]")] = None
    settings: Annotated[
        list[str] | None,
        option(
            "Change a field, as --set train.eta=0.1 (or eta=0.1 where one part has it), or a whole part, as --set "
            "keep=Relevance; may be repeated.",
            "--set",
        ),
    ] = None

    save: Annotated[
        Path | None, option("Write the experiment with all its fields to this .toml or .json file, and do not run it.")
    ] = None

    def of_experiment(self) -> dict[str, Any]:
        """Return what was said of the experiment's own fields; an option of a field's name sets that field."""
        names = [entry.name for entry in fields(Experiment) if entry.name in self.__dict__ and entry.name != "data"]
        values = {name: getattr(self, name) for name in names}
        if self.jobs == "ray":  # whose runs do not ask for a cluster themselves
            del values["ray_address"]
        said = {name: value for name, value in values.items() if value is not None and value is not False}
        return said | ({"score": [kind.strip() for kind in said["score"].split(",")]} if "score" in said else {})


def shared(kind: type[T]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, whose last parameter is a `kind`, each field of `kind` as an option of its own."""
    hints = get_type_hints(kind, include_extras=True)

    def lifted(command: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(command).parameters.values())[:-1]
        known = get_type_hints(command, include_extras=True)
        common = [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=grouped(field.name, hints[field.name]),
            )
            for field in fields(kind)  # type: ignore[arg-type]
        ]
        mine = [parameter.replace(annotation=known[parameter.name]) for parameter in own]

        @wraps(command)
        def called(**values: Any) -> None:
            inner = {field.name: values.pop(field.name) for field in fields(kind)}  # type: ignore[arg-type]
            command(**values, options=kind(**inner))

        parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in mine] + common
        called.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return lifted
