"""Play an experiment to the end, recorded so that it can be resumed exactly.

import fedkin as fk
result = fk.run(fk.Experiment(data=fk.Data("synthetic"), model="mlr", method=fk.methods.fedavg(), rounds=100))
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from fedkin import models, observed
from fedkin.core import batches, tree
from fedkin.core.tree import Model
from fedkin.data import load
from fedkin.data.federation import Federation
from fedkin.data.picture import counts
from fedkin.engines import ENGINES, Simulation
from fedkin.engines.simulation import Score
from fedkin.evaluate import kinds_of
from fedkin.messages import Task
from fedkin.results import files, metrics, record
from fedkin.resume import check, fingerprint, stored_experiment
from fedkin.round import Log, State, begun, judged, loop, surveyed

if TYPE_CHECKING:
    import pandas as pd

from fedkin.errors import require
from fedkin.experiment import DTYPES, Experiment

VERSIONS = ("fedkin", "torch", "numpy")
CHECKPOINT_SECONDS = 20.0
LABELLED = 100_000  # numbers up to which clients.json has each client's training samples by class


@dataclass(frozen=True)
class Result:
    """What a run gave. `summary` is summary.json; `models` has 'global', and 'personal' (stacked), where they exist."""

    summary: dict[str, Any]
    rounds: list[dict[str, Any]]
    models: dict[str, Model]
    accuracies: dict[str, Any]  # kind -> (n,) the clients' last accuracies
    federation: Federation
    taken: dict[str, np.ndarray]  # (n,) each: rounds in which a client was 'selected', 'replied', was 'left_out'
    folder: Path | None = None
    finished: bool = True

    def rounds_to(self, target: float, kind: str = "global", average: str = "micro") -> int | None:
        """The first round at which the mean of five rounds is above the target; needs evaluate_every=1."""
        return metrics.rounds_to(target, metrics.every_round(self.rounds, kind, average))

    def cost_to(
        self,
        target: float,
        kind: str = "global",
        average: str = "micro",
        unit: Literal["uploads", "downloads", "bytes_up", "bytes_down", "client_rounds"] = "uploads",
    ) -> float | None:
        """What was sent until then, with that round and what was exchanged before round 1: in models or bytes, up or
        down; or, as the papers count, one unit a client and round, however much it sent ("client_rounds")."""
        names = ("uploads", "downloads", "bytes_up", "bytes_down")
        require(unit in (*names, "client_rounds"), f"A cost's unit is client_rounds or one of {names}, not '{unit}'.")
        each = [float(line["replied" if unit == "client_rounds" else unit]) for line in self.rounds]
        found = metrics.cost_to(target, metrics.every_round(self.rounds, kind, average), each)
        return None if found is None else found + self.summary["cost"][unit] - sum(each)

    def clients(self) -> pd.DataFrame:
        """A row a client: its name, sizes, and its last accuracy of every kind; in how many rounds it was selected,
        replied, and was left out, its update counting for nothing; and, where that is known, whether it is irrelevant.
        """
        import pandas as pd

        fed = self.federation
        table = {
            "client": list(fed.clients) or [str(i) for i in range(fed.n)],
            "train": fed.train.sizes,
            "test": fed.test.sizes,
        }
        truth = {} if fed.irrelevant is None else {"irrelevant": fed.irrelevant.numpy()}
        return pd.DataFrame(table | dict(self.accuracies) | self.taken | truth)


@dataclass(frozen=True)
class Tick:
    """What a listener hears after each round."""

    round: int
    rounds: int
    trained: int  # clients trained in this round
    accuracy: dict[str, dict[str, float | None]] | None  # on evaluated rounds
    dropped: list[int]


Listener = Callable[[Tick], bool | None]  # False asks to stop after this round


def run(
    experiment: Experiment,
    folder: Path | str | None = None,
    *,
    resume: bool = False,
    listen: Listener | None = None,
    warn: Callable[[str], None] = print,
    federation: Federation | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Result:
    """Play an experiment to the end; with a folder, record it there so that it can be resumed exactly."""
    place = None if folder is None else Path(folder)
    if place is not None and not resume:
        taken = (place / "experiment.json").exists()
        require(not taken, f"{place} holds a run already; choose another folder, or resume it.")
    every = experiment.evaluate_every
    asked = experiment
    if resume:
        require(place is not None, "Resuming needs the folder of the run.")
        then = stored_experiment(Path(place or ""))["resolved"]
        every = every or then["evaluate_every"]
        asked = replace(experiment, threads=experiment.threads or then.get("threads"))  # as it began, on any machine
    if federation is None:
        federation = experiment.data if isinstance(experiment.data, Federation) else load(experiment.data)
    for name in federation.left_out:
        warn(f"Client {name} has no samples and is left out.")
    with running(asked, federation, place) as (engine, task, threads):
        every = every or cadence(experiment, task, engine)
        about = experiment.described()
        about["resolved"] = {
            "clients": federation.n,
            "shape": list(federation.shape),
            "classes": federation.classes,
            "vocabulary": federation.vocabulary,
            "evaluate_every": every,
            "chunk": engine.chunk,
            "threads": threads,
            "parameters": engine.network.parameters,
            "source": federation.source,
            "fingerprint": fingerprint(federation),
            "versions": versions(),
        }
        if resume and place is not None:
            check(place, experiment, about, warn)
        method = experiment.method
        said = method.collaborate.cautions(task, method.select.share(task))
        for sentence in [*method.select.cautions(task), *said]:
            warn(sentence)
        run_of = Playing(experiment, engine, task, every, place, listen, warn, checkpoint_seconds, about)
        return run_of.played(resume)


class Playing:
    """One run in progress: what must be written between rounds, and when."""

    def __init__(
        self,
        experiment: Experiment,
        engine: Simulation,
        task: Task,
        every: int,
        place: Path | None,
        listen: Listener | None,
        warn: Callable[[str], None],
        checkpoint_seconds: float,
        about: dict[str, Any],
    ):
        self.experiment, self.engine, self.task, self.every, self.place = experiment, engine, task, every, place
        self.listen, self.warn, self.about = listen, warn, about
        self.checkpoint_seconds = checkpoint_seconds
        self.recorder = record.Recorder(place) if place else None
        self.time = {"train_s": 0.0, "mix_s": 0.0, "evaluate_s": 0.0, "total_s": 0.0}
        self.lines: list[dict[str, Any]] = []
        self.last: dict[str, Score] = {}
        self.taken = {name: np.zeros(task.n, dtype=np.int64) for name in ("selected", "replied", "left_out")}
        self.began = self.saved = time.monotonic()

    def played(self, resume: bool) -> Result:
        with files.locked(self.place) if self.place else nullcontext():
            return self.played_alone(resume)

    def played_alone(self, resume: bool) -> Result:
        """With nobody else at work in the folder."""
        state = self.resumed() if resume else self.started()
        method, rounds = self.experiment.method, self.experiment.rounds
        scored = lambda r: r % self.every == 0 or r == rounds  # noqa: E731
        kinds, losses = wanted(self.experiment, self.engine.federation), self.experiment.heterogeneity
        state = loop(method, self.task, self.engine, state, scored, self.heard, kinds, losses)
        finished = state.round >= rounds
        if self.place:
            self.save(state)
        summary = self.summary(state)
        final = self.final_models(state)
        if self.place and finished:
            tensors = tree.flat(final)
            files.write_tensors(self.place / "models.safetensors", tensors)
            files.write_json(self.place / "summary.json", summary)
        accuracies = {kind: score.accuracy.numpy() for kind, score in self.last.items() if kind != "test"}
        fed = self.engine.federation
        return Result(summary, self.lines, final, accuracies, fed, self.taken, self.place, finished)

    def started(self) -> State:
        self.prepare()
        state = self.first()  # what cannot begin writes nothing
        if self.place:
            self.place.mkdir(parents=True, exist_ok=True)
            fed = self.engine.federation
            sizes = {"train": fed.train.sizes.tolist(), "test": fed.test.sizes.tolist()}
            labels = {"labels": counts(fed).tolist()} if fed.n * fed.classes <= LABELLED else {}
            truth = {} if fed.irrelevant is None else {"irrelevant": fed.irrelevant.tolist()}
            files.write_json(self.place / "clients.json", {"names": list(fed.clients)} | sizes | labels | truth)
            files.write_json(self.place / "experiment.json", self.about)
        return state

    def first(self) -> State:
        """The server before round 1, after a survey where the selection asks for one."""
        method = self.experiment.method
        state, traffic = surveyed(method, self.task, self.engine, begun(method, self.task, self.experiment.seed))
        for name, value in asdict(traffic).items():
            self.before[name] += value
        return state

    def prepare(self) -> None:
        """What clients exchange before round 1, where the method has it: up once, and down to everybody."""
        numbers, size = self.engine.prepare(self.experiment.method.train)
        like, n = self.engine.network.parameters, self.task.n
        self.before = {
            "uploads": numbers / like,
            "downloads": numbers * n / like,
            "bytes_up": float(size),
            "bytes_down": float(size * n),
        }

    def resumed(self) -> State:
        assert self.place is not None
        assert self.recorder is not None
        self.prepare()
        for scratch in self.place.glob("slots-*"):
            if self.engine.slots.folder != scratch:
                shutil.rmtree(scratch, ignore_errors=True)
        found = record.load_checkpoint(self.place, list(self.engine.network.model), self.warn)
        if found is None:
            self.recorder.cut({})
            self.recorder.forget(0)
            self.announce()
            return self.first()
        self.recorder.cut(found.lengths)
        self.recorder.forget(found.state.round)
        self.first()  # only for what it cost
        device = self.engine.device
        self.engine.slots.restore(found.slots)
        self.time = dict(found.time)
        self.began -= self.time["total_s"]
        self.lines = record.Run(self.place).rounds()
        stored = record.Run(self.place)
        for ids, kept in zip(stored.selected(), stored.kept(), strict=True):
            self.count(ids, kept)
        moved = {name: to_device(getattr(found.state, name), device) for name in ("select", "keep", "collaborate")}
        if self.lines and "accuracy" in self.lines[-1]:
            self.restore_last()
        self.announce()
        return replace(found.state, **moved)

    def announce(self) -> None:
        """What is to be done now stands in the folder, and no summary of what was done before."""
        assert self.place is not None
        files.write_json(self.place / "experiment.json", self.about)
        (self.place / "summary.json").unlink(missing_ok=True)

    def restore_last(self) -> None:
        """The clients' last scores, for a run that is resumed after its last round."""
        assert self.place is not None
        stored = record.Run(self.place)
        sizes = self.engine.federation.test.sizes
        for kind in self.lines[-1]["accuracy"]:
            if "/" not in kind and kind != "test":
                rows = torch.from_numpy(stored.accuracy(kind)[-1].copy())
                correct = torch.where(sizes > 0, (rows * sizes).round(), 0.0).long()
                self.last[kind] = Score(correct, torch.zeros_like(rows), sizes)

    def heard(self, state: State, log: Log, scores: dict[str, Score] | None) -> bool:
        for name, seconds in log.seconds.items():
            self.time[name] += seconds
        self.time["total_s"] = time.monotonic() - self.began
        if scores is not None:
            self.last = {kind: score for kind, score in scores.items() if "/" not in kind}
        method = self.experiment.method
        slots = {"select": state.select, "keep": state.keep, "collaborate": state.collaborate}
        parts = {} if scores is None else {name: getattr(method, name).log(slot) for name, slot in slots.items()}
        if log.kin is not None:
            parts["collaborate"] = parts["collaborate"] | log.kin.log()
            if self.recorder and self.pictured(state.round):
                self.recorder.draw(state.round, log.kin)
        drawing = self.recorder is not None and scores is not None and self.pictured(state.round)
        if self.recorder and drawing and (marks := observed.marks(method, state, log)):
            self.recorder.snapshot("marks", state.round, marks)
        parts |= observed.irrelevant(method, self.task, self.engine, state, log, scores is not None)
        if self.experiment.heterogeneity and scores is not None:
            parts |= observed.heterogeneity(method, self.task, self.engine, state, log)
        line = self.recorder.note(log, scores, parts) if self.recorder else record.line(log, scores, parts)
        self.lines.append(line)
        self.count(log.selected.numpy(), log.weights.numpy())
        trained = self.task.n if method.trains == "everyone" else len(log.selected)
        go_on = True
        if self.listen:
            tick = Tick(state.round, self.task.rounds, trained, line.get("accuracy"), log.dropped)
            go_on = self.listen(tick) is not False
        if self.place and time.monotonic() - self.saved > self.checkpoint_seconds:
            self.save(state)
        return go_on

    def count(self, ids: np.ndarray, kept: np.ndarray) -> None:
        """Remember who took part in a round, and how."""
        self.taken["selected"][ids] += 1
        self.taken["replied"][ids[~np.isnan(kept)]] += 1
        self.taken["left_out"][ids[kept == 0]] += 1

    def pictured(self, round: int) -> bool:
        """Whether this evaluated round is among the at most 100 whose collaboration is kept, the last one included."""
        apart = self.every * -(-self.task.rounds // (self.every * (record.SNAPSHOTS - 1)))
        return round % apart == 0 or round == self.task.rounds

    def save(self, state: State) -> None:
        """A checkpoint; one that takes long is made less often, so that saving stays under a tenth of the run."""
        assert self.place is not None
        assert self.recorder is not None
        start = time.monotonic()
        self.time["total_s"] = start - self.began
        record.save_checkpoint(self.place, state, self.engine.slots.values, self.recorder, self.time)
        took = time.monotonic() - start
        self.saved = time.monotonic() + max(0.0, 10 * took - self.checkpoint_seconds)

    def summary(self, state: State) -> dict[str, Any]:
        self.time["total_s"] = time.monotonic() - self.began
        clients = {kind: score for kind, score in self.last.items() if kind != "test"}
        scored = [line for line in self.lines if "accuracy" in line and self.regular(line["round"], state.round)]
        return {
            "method": self.experiment.method.name,
            "accuracy": metrics.accuracy(scored),
            "fairness": {kind: metrics.fairness(score.accuracy.numpy()) for kind, score in clients.items()},
            "stability": {
                kind: metrics.stability([line["accuracy"][kind]["micro"] for line in scored])
                for kind, values in (scored[-1]["accuracy"] if scored else {}).items()
                if "/" not in kind and values["micro"] is not None
            },
            "observed": metrics.observed(self.lines),
            "cost": metrics.cost(self.lines, self.before),
            "time": {name: round(value, 3) for name, value in self.time.items()},
            "rounds": state.round,
            "evaluate_every": self.every,
            "dropped": sum(len(line.get("dropped", [])) for line in self.lines),
            "never_selected": int((self.taken["selected"] == 0).sum()),
            "seeds": [self.experiment.seed],
            "experiment": self.about,
        }

    def regular(self, round: int, last: int) -> bool:
        """Whether a scored round counts: one that was the last of a shorter run, and is off the cadence, does not."""
        return round % self.every == 0 or round == last

    def final_models(self, state: State) -> dict[str, Model]:
        method = self.experiment.method
        common = method.collaborate.model(state.collaborate)
        final = {} if common is None else {"global": common}
        if not method.finetunes:
            final["personal"] = judged(method, self.task, self.engine, state, torch.arange(self.task.n))
        return final


@contextmanager
def running(experiment: Experiment, federation: Federation, scratch: Path | None) -> Any:
    """The engine and the task of an experiment, with the threads it asks for."""
    wanted(experiment, federation)  # refuses what nothing could be said of
    given = experiment.model
    module = (
        models.build(given, federation.shape, federation.classes, experiment.seed, federation.vocabulary)
        if isinstance(given, str)
        else given
    )
    kind = ENGINES[experiment.engine]
    before = torch.get_num_threads()
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    engine = kind(
        federation,
        module,
        experiment.method.train,
        experiment.seed,
        own=experiment.method.collaborate.gives.own_model,
        chunk=experiment.chunk,
        dtype=DTYPES[experiment.dtype],
        device=experiment.device,
        budget=int(experiment.slot_memory * 1e9),
        scratch=scratch,
    )
    threads = experiment.threads or default_threads(engine)
    torch.set_num_threads(threads)
    task = engine.task(experiment.rounds)
    if experiment.method.needs.truth:
        task = replace(task, irrelevant=federation.irrelevant)
    try:
        yield engine, task, threads
    finally:
        torch.set_num_threads(before)
        engine.close()


def default_threads(engine: Simulation) -> int:
    """One for small models, whose products are too small to share; else those torch would use (the machine's cores, or
    OMP_NUM_THREADS), up to four."""
    return 1 if engine.network.parameters < 50_000 else min(4, torch.get_num_threads())


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def wanted(experiment: Experiment, federation: Federation) -> tuple[str, ...]:
    """The kinds of accuracy to compute: those asked for, of those there are."""
    kinds = kinds_of(experiment.method, federation.common is not None)
    found = tuple(kind for kind in kinds if experiment.score is None or kind in experiment.score)
    name, asked = experiment.method.name, " or ".join(experiment.score or ())
    rest = " or ".join(kinds)
    require(found, f"{name} has no {asked} to be scored by on these data; add {rest} to what is scored (--score).")
    return found


def cadence(experiment: Experiment, task: Task, engine: Simulation) -> int:
    """Evaluate so seldom that it costs about an eighth of the run, judged by the work, so that the choice is the same
    on every machine. In units of one scored sample: a trained one costs three, and a step of a chunk has a fixed cost
    that only small models feel (measured: about 2,000 for 610 parameters)."""
    method, federation = experiment.method, engine.federation
    kinds, train, chunk = wanted(experiment, federation), method.train, engine.chunk
    fixed = 1.2e6 / engine.network.parameters
    steps = batches.number(engine.sizes, train.batch, train.steps, train.epochs).mean()
    width = np.minimum(engine.sizes, train.batch).mean()

    def training(clients: float) -> float:
        return float(steps * (np.ceil(clients / chunk) * fixed + 3 * clients * width))

    share = 1.0 if method.trains == "everyone" else method.select.share(task)
    looks = ("post" in kinds) + ("recv" in kinds or "global" in kinds)
    work = looks * float(federation.test.sizes.sum())
    work += training(task.n) if method.finetunes and "post" in kinds else 0.0
    work += len(federation.common) if federation.common is not None and "test" in kinds else 0.0
    return max(1, min(task.rounds, round(8 * work / training(share * task.n))))


def to_device(value: Any, device: torch.device) -> Any:
    return {k: to_device(v, device) for k, v in value.items()} if isinstance(value, dict) else value.to(device)


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
