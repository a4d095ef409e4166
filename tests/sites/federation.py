"""A federation of sites in this process, beside the same clients on the stacked engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from small import seeded
from torch import nn

import fedkin as fk
from fedkin.core import tree
from fedkin.data.federation import Federation
from fedkin.keep.relevance import Relevance
from fedkin.parts import Method
from fedkin.runs import files
from fedkin.runs.checkpoint import load_checkpoint
from fedkin.runs.folder import RunFolder
from fedkin.select import Uniform
from fedkin.sites import Arrays, Here, Site, Sites, meet
from fedkin.sites.own_secret import DIGEST, PROOF, own_secret

NAMES = ("a", "b2", "b10", "c")  # as people sort them
SIZES = (12, 3, 40, 9)
OPTIONS: dict[str, Any] = {"rounds": 3, "evaluate_every": 1, "seed": 4, "dtype": "float64"}


def mlp() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)))


def short(method: Method, count: int | None = None) -> Method:
    """The method with little work, of which some clients have a short batch; with a count, so many clients a round."""
    few = replace(method, train=replace(method.train, steps=3, epochs=None, batch=4))  # type: ignore[call-arg]
    if isinstance(few.keep, Relevance):
        few = replace(few, keep=replace(few.keep, iterations=3))
    return replace(few, select=Uniform(count=count)) if count else few


SIX = {
    "fedavg": short(fk.methods.fedavg(), 3),
    "fedmcsa": short(fk.methods.fedmcsa(), 2),
    "fedacs": short(fk.methods.fedacs(p=0.25)),
    "adafl": short(fk.methods.adafl(start=0.5, end=1.0, levels=2)),
    "pfedre": short(fk.methods.pfedre()),
    "scaffold": short(fk.methods.scaffold(), 3),
}


@dataclass
class Party:
    """Sites with a folder each, which they are rebuilt from for every request."""

    folder: Path
    federation: Federation
    options: dict[str, Any] = field(default_factory=dict)  # of sites
    said: list[str] = field(default_factory=list)  # at the server
    heard: list[str] = field(default_factory=list)  # at the sites

    def site(self, name: str) -> Site:
        number = NAMES.index(name)
        mine = Arrays(name, lambda: replace(self.federation.only(torch.tensor([number])), numbers=None), classes=3)
        options = {"model": mlp, "warn": self.heard.append} | self.options
        return Site(name, self.folder / name, mine, **options)

    def here(self, kind: type[Here] = Here, **more: Any) -> Here:
        order = ("c", "b10", "a", "b2")  # not that of their numbers
        return kind({name: (lambda name=name: self.site(name)) for name in order}, **more)

    def met(self, transport: Here | None = None, **more: Any) -> Sites:
        options = {"warn": self.said.append, "timeout": 1.0, "patience": 0.05, "pause": 0.01} | more
        return meet(transport or self.here(), 4, **options)

    def twin(self, folder: Path) -> Party:
        """The same sites with other folders and the same secrets, by which their check sums are keyed."""
        for name in NAMES:
            (folder / name).mkdir(parents=True)
            for secret in (PROOF, DIGEST):
                (folder / name / secret).write_bytes(own_secret(self.folder / name, secret, 16))
        return replace(self, folder=folder, said=[], heard=[])

    def private(self) -> dict[str, torch.Tensor]:
        """What all sites keep to themselves after the last round, stacked as an engine has it."""
        found = []
        for name in NAMES:
            last = sorted((self.folder / name).glob("runs/*/round-*.safetensors"))
            found.append(files.read_tensors(last[-1]) if last else {})
        return {key: torch.stack([one[key] for one in found]) for key in found[0]}


def experiment(method: Method, **more: Any) -> fk.Experiment:
    return fk.Experiment(method, model=mlp(), **OPTIONS | more)


def stacked(method: Method, federation: Federation, folder: Path, **more: Any) -> fk.Run:
    """The same run on the stacked engine."""
    there = replace(experiment(method, **more), data=replace(federation, clients=NAMES), chunk=4, threads=1)
    return fk.run(there, folder, checkpoint_seconds=0.0, warn=lambda sentence: None)


def same_run(one: fk.Run, other: fk.Run, private: dict[str, torch.Tensor], tolerance: float = 1e-7) -> None:
    """Selections and weights are the same; scores, the server's state and private slots are close."""
    assert one.folder is not None
    assert other.folder is not None
    for name in ("selected.bin", "kept.bin"):
        assert (one.folder / name).read_bytes() == (other.folder / name).read_bytes(), name
    assert len(one.lines) == len(other.lines)
    for left, right in zip(one.lines, other.lines, strict=True):
        assert left.keys() == right.keys()
        for name in ("round", "selected", "replied", "kept", "uploads", "downloads", "bytes_up", "bytes_down"):
            assert left[name] == right[name], name
        for name in ("accuracy", "loss", "metrics"):
            near(left.get(name), right.get(name))
    found = [load_checkpoint(RunFolder(run.folder), []) for run in (one, other)]
    states = [
        tree.flat({name: getattr(point.state, name) for name in ("select", "keep", "collaborate")}) for point in found
    ]
    close(*states, tolerance)
    close(tree.flat(found[0].private), private, tolerance)


def near(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            near(one[name], other[name])
    elif isinstance(one, float):
        assert abs(one - other) <= 1e-6 * max(1.0, abs(one))
    else:
        assert one == other


def close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float) -> None:
    assert set(one) == set(other)
    for name, value in one.items():
        a, b = (tensor.double().nan_to_num(neginf=0.0) for tensor in (value, other[name]))
        assert (a - b).norm() <= tolerance * a.norm(), name
