"""Plays a run of a federation again in one process, with the same sites missing in the same rounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from faults import Faulty

import fedkin as fk
from fedkin.core import tree
from fedkin.federation.folder import Folder
from fedkin.federation.texts import methods_of
from fedkin.runs import files
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.folder import RunFolder
from fedkin.sites import Site, meet
from fedkin.sites import run as play
from fedkin.sites.tables import Table


def missing(run: fk.Run) -> set[tuple[str, int]]:
    """Which site was selected in which round and did not reply."""
    names = run.about_clients["names"]
    assert run.kept is not None
    return {
        (names[client], round)
        for round, (who, kept) in enumerate(zip(run.selected, run.kept, strict=True), start=1)
        for client, weight in zip(who.tolist(), kept.tolist(), strict=True)
        if np.isnan(weight)
    }


def replayed(run: fk.Run, folder: Folder, place: Path, rows: str, target: str) -> fk.Run:
    """The same run on the same tables; sites that did not reply in a round are dead in it."""
    gone, config = missing(run), folder.config()

    def site(name: str) -> Site:
        table = Table(name, folder.site(name) / rows, target_column=target)
        return Site(name, place / "sites" / name / "kept", table, warn=lambda sentence: None)

    def fails(name: str, round: int) -> str | None:
        return "dead" if (name, round) in gone else None

    transport = Faulty({name: (lambda name=name: site(name)) for name in folder.names}, fails)
    sites = meet(transport, folder.names, warn=lambda sentence: None, pause=0.0)
    (method,) = methods_of(config["method"], config["set"])
    asked = fk.Experiment(method, model=config["model"], rounds=config["rounds"], seed=config["seed"], evaluate_every=1)
    return play(sites, asked, place / "run")


def differences(one: fk.Run, other: fk.Run, folder: Folder, place: Path) -> Iterator[str]:
    """Sentences on what is not as in the replay, which lies in `place`; none if all is the same."""
    assert one.folder is not None
    assert other.folder is not None
    rounds = [line["round"] for line in one.lines]
    if rounds != list(range(1, folder.config()["rounds"] + 1)):
        yield f"rounds are recorded as {rounds}"
    for name in ("selected.bin", "kept.bin"):
        if (one.folder / name).read_bytes() != (other.folder / name).read_bytes():
            yield f"{name} is another one"
    mine, theirs = (run.values(run.metric, run.judged) for run in (one, other))
    both = ~np.isnan(mine) & ~np.isnan(theirs)
    if not both.any() or not np.allclose(mine[both], theirs[both], atol=1e-6):
        yield "scores differ"
    points = [load_checkpoint(RunFolder(run.folder), []) for run in (one, other)]
    states = [tree.flat({"collaborate": point.state.collaborate, "keep": point.state.keep}) for point in points]
    if not same(*states):
        yield "the server's state differs"
    held = [point.private["sites"]["version"].tolist() for point in points]
    if held[0] != held[1]:
        yield f"sites hold the rounds {held[0]} in place of {held[1]}"
    yield from differences_of_sites(folder, place / "replay" / "sites", held[1])


def differences_of_sites(folder: Folder, place: Path, held: list[int]) -> Iterator[str]:
    """Sentences on models that are not those of the replay, or are those of two sites. A site that was away at the end
    has no final model, and the people at the server were told so."""
    told = (folder.runs / "notes.txt").read_text()
    seen: dict[bytes, str] = {}
    for name, round in zip(folder.names, held, strict=True):
        runs = [sorted((at / name / "kept" / "runs").iterdir()) for at in (folder.path / "sites", place)]
        if len(runs[0]) != 1:
            yield f"{name} has {len(runs[0])} runs"
        for file in (f"round-{round:06d}.safetensors", "model.safetensors"):
            paths = [some[-1] / file for some in runs]
            if not paths[0].exists():
                if file != "model.safetensors" or f"It ends without site {name}," not in told:
                    yield f"{name} has no {file}"
                continue
            found, wanted = map(files.read_tensors, paths)
            if not same(found, wanted):
                yield f"{file} of {name} is not that of the replay"
            numbers = b"".join(value.numpy().tobytes() for value in found.values())
            if seen.setdefault(numbers, name) != name:
                yield f"{name} and {seen[numbers]} have the same {file}"


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return set(one) == set(other) and all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)
