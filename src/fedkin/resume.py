"""Whether what lies in a folder is what is asked for, so that going on with it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from fedkin.data.federation import Federation
from fedkin.errors import BadInput, require
from fedkin.experiment import Experiment
from fedkin.results import files
from fedkin.results.record import Run

FREE = ("rounds", "evaluate_every", "chunk", "threads", "slot_memory")  # may change without another experiment
LOOKED = 20_000  # samples that a fingerprint looks at


def fingerprint(federation: Federation) -> str:
    """A check sum of who owns what, of all labels, of up to 20,000 samples spread over the set, and of
    who is irrelevant, where that is known."""
    digest = blake2b(digest_size=8)
    step = max(1, len(federation.x) // LOOKED)
    lists = [index for index in (federation.train, federation.test, federation.validation) if index is not None]
    parts = [federation.y, federation.x[::step], *(t for index in lists for t in (index.rows, index.start))]
    for part in [*parts, federation.irrelevant] if federation.irrelevant is not None else parts:
        digest.update(part.contiguous().numpy().tobytes())
    return digest.hexdigest()


def stored_experiment(folder: Path) -> dict[str, Any]:
    try:
        return Run(folder).experiment
    except files.Damaged as error:
        raise BadInput(f"{folder} is not a run of fedkin, so it cannot be resumed: {error}.") from error


def check(folder: Path, experiment: Experiment, about: dict[str, Any], warn: Callable[[str], None]) -> None:
    """The folder holds this very experiment on these very data, but for its number of rounds, where the schedule
    allows another; `about` is the experiment as it would be recorded now."""
    stored = stored_experiment(folder)
    then, now = stored.pop("resolved", {}), about["resolved"]
    usual = {field.name: field.default for field in fields(Experiment)}  # what an older version did not know
    for name, asked in experiment.described().items():
        if name not in FREE and (found := difference(stored.get(name, usual[name]), asked, name)):
            path, old, new = found
            raise BadInput(
                f"{folder} holds another experiment ({path} is {old!r} there and {new!r} here); choose another folder."
            )
    check_rounds(folder, stored["rounds"], experiment)
    if experiment.evaluate_every is not None:
        old, new = then.get("evaluate_every"), experiment.evaluate_every
        require(old == new, f"{folder} is scored every {old} rounds, not every {new}; leave --evaluate-every out.")
    same = then.get("fingerprint") == now["fingerprint"]
    require(same, f"The data are not those that the run in {folder} began with; bring them back, or start it anew.")
    parts = [(name, then.get("versions", {}).get(name), new) for name, new in now["versions"].items()]
    parts += [(name, then[name], now[name]) for name in ("threads", "chunk") if name in then]
    for what, before, after in parts:
        if before != after:
            warn(f"This run was begun with {what} {before} and goes on with {after}; its last digits may differ.")


def check_rounds(folder: Path, stored: int, experiment: Experiment) -> None:
    asked = experiment.rounds
    require(asked >= stored, f"{folder} was begun for {stored} rounds; ask for more, not {asked}.")
    require(
        asked == stored or not experiment.method.needs.rounds,
        f"The schedule of {experiment.method.name} depends on the number of rounds, so a run of {stored} cannot be "
        f"continued to {asked}; start it anew.",
    )


def difference(there: Any, here: Any, path: str) -> tuple[str, Any, Any] | None:
    """Where two descriptions first differ, and how."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted({*there, *here}):
            found = difference(there.get(name), here.get(name), f"{path}.{name}")
            if found:
                return found
        return None
    plain = list(here) if isinstance(here, tuple) else here
    return None if there == plain else (path, there, here)
