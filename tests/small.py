"""A small network, a small method, and a run of it that is played a round at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import fedkin as fk
from fedkin import evaluate
from fedkin import round as rounds
from fedkin.collaborate import Mean
from fedkin.comparison.compare import concluded
from fedkin.comparison.plan import Loaded, Plan, Planned, runs_for
from fedkin.comparison.sequence import play_in_sequence
from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.data.federation import Federation, Index
from fedkin.engines import Score, Simulation
from fedkin.keep import Everyone
from fedkin.log import Log
from fedkin.messages import Reply, Sent, Task
from fedkin.parts import Method, Train
from fedkin.report.study import Study
from fedkin.round import State
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.verdict import gain
from fedkin.select import Uniform

FEATURES, CLASSES = 5, 3
SIZES = (1, 3, 7, 25, 10, 12)
TOKENS, LENGTH = 6, 7  # of texts
NUMBERS = FEATURES * 4 + 4 + 4 * CLASSES + CLASSES  # of the network


def network() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, CLASSES)))


def seeded(build: Any) -> nn.Module:
    """A module whose first weights are always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        module: nn.Module = build()
        return module


def learnable(text: bool) -> Federation:
    """Three clients with 12, 3 and 15 samples that a network can learn. The class of a text is that of its last token,
    and texts are padded on the left; an image is a pattern of its class, and noise."""
    gen = torch.Generator().manual_seed(0)
    if text:
        x = torch.randint(1, TOKENS, (60, LENGTH), generator=gen)
        y = x[:, -1] % CLASSES
        x = torch.where(torch.arange(LENGTH) < torch.randint(0, LENGTH - 1, (60, 1), generator=gen), 0, x)
        x = x.to(torch.uint8)
    else:
        y = torch.arange(60) % CLASSES
        x = torch.randn(CLASSES, 1, 12, 12, generator=gen)[y] + 0.2 * torch.randn(60, 1, 12, 12, generator=gen)
    rows = torch.arange(60).reshape(3, 20)
    train, test = Index.of([rows[0, :12], rows[1, :3], rows[2, :15]]), Index.of(list(rows[:, 15:]))
    return Federation("small", x, y, CLASSES, train, test, vocabulary=TOKENS if text else None)


def composed(train: Train, **parts: Any) -> Method:
    """FedAvg of four clients with this training, unless another part is given."""
    chosen = {"select": Uniform(count=4), "keep": Everyone(), "collaborate": Mean()} | parts
    return Method("tried", train=train, **chosen)


def tiny(method: Method, count: int = 3, **train: Any) -> Method:
    """The named method with fewer clients, steps and samples, and nothing else changed."""
    little = {"steps": 3, "epochs": None, "batch": 4} | train
    return replace(method, select=Uniform(count=count), train=replace(method.train, **little))  # type: ignore[type-var]


def equal(one: Model, other: Model) -> None:
    torch.testing.assert_close(dict(one), dict(other), rtol=1e-9, atol=1e-12)


class Until(fk.Callback):
    """Stops a run after this round."""

    def __init__(self, round: int) -> None:
        self.last = round

    def recorded(self, record: fk.Record) -> bool:
        return record.round < self.last


@dataclass
class Seen:
    """Looks at a round as a run does that scores it: what clients hold before they train, and all scores."""

    method: Method
    task: Task
    engine: Simulation
    received: Model | None = None
    scores: dict[str, Score] = field(default_factory=dict)

    def sent(self, state: State, sent: Sent) -> None:
        if self.method.needs.current:
            self.received = evaluate.received_models(self.method, self.task, self.engine, sent)
            self.scores = evaluate.score_received(self.method, self.task, self.engine, sent)

    def played(self, state: State, log: Log) -> None:
        self.scores |= evaluate.score_models(self.method, self.task, self.engine, state)


def seen_round(method: Method, task: Task, engine: Simulation, state: State) -> tuple[State, Log, Seen]:
    """Play a round that is scored."""
    seen = Seen(method, task, engine)
    state, log = rounds.play(method, task, engine, state, seen)
    seen.played(state, log)
    return state, log, seen


def without_times(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name not in ("time", "memory")}


def forget_checksums(folder: Path) -> None:
    """Make the runs in a folder like those of a version that wrote no check sums."""
    for path in folder.rglob("*.json"):
        if path.name == "manifest.json":
            path.unlink()
        else:
            stored = json.loads(path.read_text())
            path.write_text(
                json.dumps({name: value for name, value in stored.items() if name not in ("seal", "digests", "drawn")})
            )


def same_runs(one: Path, other: Path) -> None:
    """Models, records and summaries of two run folders are the same, but for the seconds they took."""
    names = sorted(path.name for path in one.glob("*.bin"))
    assert names == sorted(path.name for path in other.glob("*.bin"))
    for name in ["models.safetensors", "predictions.safetensors", "experiment.json", *names]:
        assert (one / name).exists() == (other / name).exists(), name
        if name != "predictions.safetensors" or (one / name).exists():  # where samples lie elsewhere there are none
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
    runs = fk.Run(one), fk.Run(other)
    lines = [[{k: v for k, v in line.items() if k != "seconds"} for line in run.lines] for run in runs]
    assert lines[0] == lines[1]
    assert without_times(runs[0].summary) == without_times(runs[1].summary)


@dataclass
class Run:
    """A method on an engine; `state` is the server's."""

    method: Method
    engine: Simulation
    task: Task
    state: State

    def round(self) -> Log:
        self.state, log = rounds.play(self.method, self.task, self.engine, self.state)
        return log

    def seen_round(self) -> tuple[Log, Seen]:
        """Play a round that is scored."""
        self.state, log, seen = seen_round(self.method, self.task, self.engine, self.state)
        return log, seen

    @property
    def model(self) -> Model:
        found: Model = self.state.collaborate["model"]
        return found

    def sent(self, ids: Tensor) -> Sent:
        """What the server sends to these clients now."""
        return self.method.collaborate.send(self.state.collaborate, self.task, ids, None)[0]

    def reply(self, ids: Tensor, t: int = 1, **options: Any) -> Reply:
        """What these clients answer to it in round t."""
        return self.engine.train(self.method.train, self.sent(ids), ids, t, **options)

    def judged(self) -> Model:
        return evaluate.personal_models(self.method, self.task, self.engine, self.state, torch.arange(self.task.n))

    def batches(self, t: int, client: int) -> list[Batch]:
        work = self.engine.batching.planned(self.method.train, t, torch.tensor([client]))
        engine, part = self.engine, self.method.train
        batches = [engine.batching.batch(work, k, slice(0, 1), engine.network, part) for k in range(len(work.rows))]
        return [tree.row(batch, 0) for batch in batches]

    def trained(self, start: Model, t: int, client: int) -> Model:
        """Plain steps of one client by hand."""
        model = start
        for batch in self.batches(t, client):
            model = tree.added(model, self.engine.network.grad(model, batch), -self.method.train.eta)
        return model

    def mean(self, start: Model, t: int, ids: list[int], weights: list[float] | None = None) -> Model:
        """What FedAvg makes of these clients' models by hand, weighted by their sizes."""
        sizes = self.task.sizes[ids].double() if weights is None else torch.tensor(weights, dtype=torch.float64)
        return tree.weighted(tree.stacked([self.trained(start, t, i) for i in ids]), sizes)


def compared(
    folder: Path,
    experiment: fk.Experiment,
    methods: list[Method],
    seeds: list[int],
    stop: tuple[str, int] | None = None,
) -> fk.Comparison | None:
    """A comparison as the command line makes it. With `stop` that method's seed ends after round 2, and all after it
    are not begun: None."""
    place = CommandFolder(folder)
    plan = Plan(place, runs_for([replace(experiment, method=method) for method in methods], seeds, place))
    plan.write()

    def watching(one: Planned, number: int, of: int) -> fk.Callback | None:
        return Until(2) if (one.experiment.method.name, one.experiment.seed) == stop else None

    done = play_in_sequence(plan.runs, Loaded(), watching=watching)
    return concluded(plan) if done else None


def gain_of(study: Study, name: str, seed: int) -> np.ndarray:
    """What the clients of a study gain over training alone."""
    return gain(*(next(run for run in study.entries[who].runs if run.seed == seed) for who in (name, "local")))
