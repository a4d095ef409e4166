"""Checks that what lies in a folder is what is asked for, so that going on with it is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fedkin.errors import BadInput, require
from fedkin.runs import files, manifest
from fedkin.runs.experiment import Experiment, data_from_json, fixed_fields
from fedkin.runs.folder import RunFolder
from fedkin.runs.format import check_format


def stored_experiment(folder: RunFolder) -> dict[str, Any]:
    """Return what a run is; files of it may be missing, since going on makes them again."""
    try:
        check_format(folder.path)
        return folder.experiment()
    except files.Damaged as error:
        raise BadInput(f"{folder.path} is not a run of fedkin, so it cannot be resumed: {error}.") from error


def mended(folder: RunFolder, name: str, warn: Callable[[str], None]) -> None:
    """Let a run that is done, but of which files are damaged, go on from its last checkpoint: it makes them anew."""
    check_format(folder.path)  # what a newer fedkin wrote is not damaged
    damaged = manifest.damaged(folder.path) if folder.summarised else []
    if damaged:
        folder.reopen(damaged)
        warn(f"{name}: damaged or missing, and made again from the checkpoint: {', '.join(damaged[:5])}.")


def as_begun(experiment: Experiment, then: Mapping[str, Any]) -> Experiment:
    """Return the experiment with the cadence, the threads and the chunk of `then`, where it does not say others.

    `then` is what a run recorded as resolved, or an experiment of a stored plan.
    """
    return replace(
        experiment,
        evaluate_every=experiment.evaluate_every or then.get("evaluate_every"),
        threads=experiment.threads or then.get("threads"),
        chunk=experiment.chunk or then.get("chunk"),
    )


def check(folder: RunFolder, experiment: Experiment, about: dict[str, Any], warn: Callable[[str], None]) -> None:
    """Refuse to go on unless the folder holds this very experiment on these very data.

    Only the number of rounds may be larger, where the method's schedule allows it. `about` is the experiment as it
    would be recorded now.
    """
    path, stored = folder.path, stored_experiment(folder)
    then, now = stored.pop("resolved", {}), about["resolved"]
    check_same(stored, experiment, f"{path} holds another experiment", "choose another folder.")
    check_rounds(path, stored["rounds"], experiment)
    if experiment.evaluate_every is not None:
        old, new = then.get("evaluate_every"), experiment.evaluate_every
        require(old == new, f"{path} is scored every {old} rounds, not every {new}; leave --evaluate-every out.")
    same = then.get("fingerprint") == now["fingerprint"]
    require(same, f"The data are not those that the run in {path} began with; bring them back, or start it anew.")
    parts = [(name, then.get("versions", {}).get(name), new) for name, new in now["versions"].items()]
    parts += [
        (name, then[name], now[name]) for name in ("threads", "chunk", "convolutions") if name in then and name in now
    ]
    for what, before, after in parts:
        if before != after:
            warn(f"This run was begun with {what} {before} and goes on with {after}; its last digits may differ.")


def check_same(stored: dict[str, Any], experiment: Experiment, what: str, advice: str) -> None:
    """Refuse an experiment that differs from the stored one in more than a free field."""
    asked = experiment.described()
    if isinstance(stored.get("data"), dict) and "given" not in stored["data"]:
        stored = stored | {"data": asdict(data_from_json(stored["data"]))}  # an older version did not know all fields
    for entry in fixed_fields():
        name = entry.name
        found = difference(stored.get(name, entry.default), asked[name], name)  # an older version did not know all
        if found:
            path, old, new = found
            raise BadInput(f"{what} ({path} is {old!r} there and {new!r} here); {advice}")


def check_rounds(folder: Path, stored: int, experiment: Experiment) -> None:
    asked = experiment.rounds
    require(asked >= stored, f"{folder} was begun for {stored} rounds; ask for more, not {asked}.")
    require(
        asked == stored or not experiment.method.needs.rounds,
        f"The schedule of {experiment.method.name} depends on the number of rounds, so a run of {stored} cannot be "
        f"continued to {asked}; start it anew.",
    )


def difference(there: Any, here: Any, path: str) -> tuple[str, Any, Any] | None:
    """Return where two descriptions first differ, and how; None where they are the same."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted({*there, *here}):
            found = difference(there.get(name), here.get(name), f"{path}.{name}")
            if found:
                return found
        return None
    before, now = (list(value) if isinstance(value, tuple) else value for value in (there, here))
    return None if before == now else (path, there, here)
