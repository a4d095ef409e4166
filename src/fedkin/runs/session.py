"""Plays an experiment to the end, recorded so that it can be resumed exactly.

import fedkin as fk
result = fk.run(fk.Experiment(data=fk.Data("synthetic"), model="mlr", method=fk.methods.fedavg(), rounds=100))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fedkin.core import machine, tree
from fedkin.data import load
from fedkin.data.federation import Federation
from fedkin.engines.engine import Engine, Score
from fedkin.errors import require
from fedkin.evaluate import ahead, score_models, score_received
from fedkin.imports import trust
from fedkin.log import Log, Traffic
from fedkin.messages import Sent
from fedkin.round import State, begin, loop
from fedkin.runs import diagnostics, files, memory
from fedkin.runs.callback import Callback, Callbacks, Record
from fedkin.runs.checkpoint import SLOTS, load_checkpoint, moved, save_checkpoint
from fedkin.runs.ending import Ending
from fedkin.runs.experiment import Experiment
from fedkin.runs.facts import about_clients, resolved, scoring_advice
from fedkin.runs.folder import RunFolder
from fedkin.runs.history import History, averaged_apart
from fedkin.runs.imbalance import one_sided
from fedkin.runs.profile import DATA, NETWORK, Stopwatch
from fedkin.runs.pulse import Pulse
from fedkin.runs.recorder import Recorder, in_order, line, pictured
from fedkin.runs.resume import as_begun, check, mended, stored_experiment
from fedkin.runs.run import Run
from fedkin.runs.setup import Build, Setup, engine_of, set_up
from fedkin.runs.spent import of_round
from fedkin.survey import survey, survey_message

CHECKPOINT_SECONDS = 20.0


def run(
    experiment: Experiment,
    folder: Path | str | None = None,
    *,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    warn: Callable[[str], None] = print,
    federation: Federation | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    profile: bool = False,
    build: Build | None = None,
) -> Run:
    """Play an experiment to the end and return the run.

    With a folder, the run is recorded there; `resume=True` goes on with the run in that folder exactly where it
    stopped. `callbacks` are told of every round. `warn` gets sentences that a user should read. `federation` saves
    loading the data of the experiment again. A checkpoint is written every `checkpoint_seconds`. With `profile` the
    run says where its time went (`Run.profile`). `build` builds an engine of your own.
    """
    watch = Stopwatch(NETWORK)
    require(isinstance(experiment, Experiment), f"fk.run takes an Experiment, not {type(experiment).__name__}.")
    told = all(isinstance(callback, Callback) for callback in callbacks)
    require(told, "A callback is an object of a class derived from fk.Callback.")
    place = None if folder is None else RunFolder(Path(folder))
    asked = experiment
    if resume:
        require(place is not None, "Resuming needs the folder of the run.")
        if place is not None and place.begun:
            with files.locked(place.path):
                mended(place, str(place.path), warn)
        asked = as_begun(experiment, stored_experiment(place or RunFolder(Path()))["resolved"])
    elif place is not None:
        require(not place.begun, f"{place.path} holds a run already; choose another folder, or resume it.")
    if federation is None:
        with watch.timed(DATA):
            federation = experiment.data if isinstance(experiment.data, Federation) else load(experiment.data)
    gone = [f"Client {name} has no samples and is left out." for name in federation.left_out]
    for sentence in [*gone, *federation.notes, *scoring_advice(experiment, federation.n)]:
        warn(sentence)
    setup = set_up(asked, federation)
    about = experiment.described() | {"resolved": resolved(federation, setup, asked.method)}
    if resume and place is not None:
        check(place, experiment, about, warn)
    where = None if place is None else place.path
    if where is not None:
        trust(where)  # what it names, the caller has named
    callbacks = [callback.for_run(experiment.method.name, experiment.seed, where) for callback in callbacks]
    for sentence in [*experiment.method.cautions(setup.task), *memory.advice(experiment.method.name, setup.need)]:
        warn(sentence)
    if federation.task == "classify" and not federation.elsewhere:
        for sentence in one_sided(federation.label_counts(), federation.names, federation.labels, experiment.metric):
            warn(sentence)
    machine.forget_peak()
    with (
        engine_of(asked, federation, setup, where, warn, build) as engine,
        files.locked(where) if where else nullcontext(),
    ):
        given = (experiment, federation, setup, engine, place, callbacks, warn, checkpoint_seconds, about)
        if profile:
            from fedkin.runs.profiled import Profiled  # builds on this module

            return Profiled(watch, *given).play(resume)
        return Session(*given).play(resume)


class Session:
    """One run in progress. It scores rounds, tells the callbacks of them, and writes checkpoints."""

    def __init__(
        self,
        experiment: Experiment,
        federation: Federation,
        setup: Setup,
        engine: Engine,
        place: RunFolder | None,
        callbacks: Sequence[Callback],
        warn: Callable[[str], None],
        checkpoint_seconds: float,
        about: dict[str, Any],
    ):
        self.experiment, self.method, self.federation = experiment, experiment.method, federation
        self.engine, self.task, self.kinds, self.every = engine, setup.task, setup.kinds, setup.evaluate_every
        self.place, self.warn, self.about, self.metric = place, warn, about, setup.metric
        self.sample = setup.sample  # the clients that are scored; None: all
        self.expected = memory.estimated(setup.need)  # bytes at the peak
        self.history = History(federation.n)
        self.apart = federation.irrelevant  # (n,) bool: who is not in the averages, where that is known
        self.recorder = None if place is None else Recorder(place)
        recorder = () if self.recorder is None else (self.recorder,)
        self.callbacks = Callbacks((self.history, *recorder, *callbacks))
        self.checkpoint_seconds = checkpoint_seconds
        self.next_checkpoint = time.monotonic() + checkpoint_seconds
        self.pulse = self.engine.tell = Pulse(self.callbacks.working, self.task.rounds)
        self.task = replace(self.task, tell=self.pulse)
        self.received: dict[str, Score] = {}  # of the round that is played, by kind
        self.received_seconds = 0.0  # what scoring them took

    def play(self, resume: bool) -> Run:
        """Play the rounds that are left, write what came out, and return the run."""
        state = self.resumed() if resume else self.started()
        self.callbacks.begun(self.about)
        self.pulse.at(state.round + 1)
        state = loop(self.method, self.task, self.engine, state, self)
        self.pulse.at(state.round, "ending")
        finished = state.round >= self.task.rounds
        if self.recorder is not None:
            self.save(state)
        summary = self.history.summary(self.experiment, self.about, state.round, self.every, self.metric, self.apart)
        end = Ending(self.method, self.task, self.engine, self.federation, state, self.kinds, self.sample)
        models = end.models()
        predicted = end.predictions(models) if finished else None
        summary["memory"] = self.expected | {"measured": machine.peak()}
        if self.place is not None and finished:
            self.place.finish(tree.flat(models), predicted, summary, end.pieces() if end.in_pieces else None)
        self.callbacks.ended(finished)
        known = {
            "experiment": self.about,
            "about_clients": about_clients(self.federation) | {"names": list(self.federation.names)},
            "finished": finished,
            "summary": summary,
            "lines": self.history.lines,
            "measured": self.history.measured,
            "metric": self.metric,
            "participation": self.history.participation,
            **({} if end.in_pieces and self.place is not None and finished else {"models": models}),
            "predictions": None if predicted is None else {k: v.numpy() for k, v in predicted.items()},
            "federation": self.federation,
            "preparation": self.federation.preparation,
        }
        return Run(None if self.place is None else self.place.path, known=known)

    # before the first round

    def started(self) -> State:
        """Return the state before round 1, and begin the folder. What cannot begin writes nothing."""
        state, sent = self.first()
        if sent is not None:
            state = survey(self.method, self.task, self.engine, state, sent)
        if self.place is not None:
            self.place.begin(self.about, about_clients(self.federation), self.federation.preparation)
        return state

    def first(self) -> tuple[State, Sent | None]:
        """Return the state before round 1 and the message of the survey; count what is sent before round 1."""
        numbers, size = self.engine.prepare(self.method.train)
        like, n = tree.size([self.task.model])[0], self.task.n
        to = 0 if self.method.train.pools else n  # up once, and down to everybody, or to nobody
        before = Traffic(numbers / like, numbers * to / like, size, size * to)
        state = begin(self.method, self.task)
        sent = survey_message(self.method, self.task, self.engine, state)
        if sent is not None:
            before.down(sent, like)
        self.history.before = {name: float(value) for name, value in asdict(before).items()}
        return state, sent

    def resumed(self) -> State:
        """Return the state of the newest checkpoint, and cut the folder back to that round."""
        assert self.place is not None
        assert self.recorder is not None
        state, sent = self.first()
        self.engine.clean()
        found = load_checkpoint(self.place, list(self.task.model), self.warn)
        self.place.reopen(())  # from here on it is not done
        if found is None:
            self.recorder.cut({}, 0)
            self.place.go_on(self.about, about_clients(self.federation), self.federation.preparation)
            return state if sent is None else survey(self.method, self.task, self.engine, state, sent)
        self.recorder.cut(found.lengths, found.state.round, found.drawn)
        self.engine.restore(found.private)
        self.history.restore(Run(self.place.path, known={"experiment": self.about}), found.time)
        self.apart = self.apart if averaged_apart(self.history.lines) else None
        self.place.go_on(self.about, about_clients(self.federation), self.federation.preparation)
        device = next(iter(self.task.model.values())).device
        return replace(found.state, **{name: moved(getattr(found.state, name), device) for name in SLOTS})

    # in a round

    def scores(self, round: int) -> bool:
        """Whether this round is scored."""
        return round % self.every == 0 or round == self.task.rounds

    def sent(self, state: State, sent: Sent) -> None:
        if self.scores(state.round + 1) and "recv" in self.kinds:
            start = time.perf_counter()
            self.pulse.at(state.round + 1, "scoring")
            self.ahead(state)
            self.received = score_received(self.method, self.task, self.engine, sent, self.sample)
            self.received_seconds = time.perf_counter() - start
            self.pulse.at(state.round + 1)

    def ahead(self, state: State) -> None:
        """Tell an engine whose clients are far away what comes after this state."""
        received = "recv" in self.kinds and self.scores(state.round + 1)
        ahead(self.method, self.task, self.engine, state, received)

    def played(self, state: State, log: Log) -> bool:
        scores = None
        self.pulse.at(state.round, "scoring")
        if self.scores(state.round):
            with log.timed("evaluate_s", "scoring"):
                self.ahead(state)
                now = score_models(self.method, self.task, self.engine, state, self.kinds, self.sample)
            log.seconds["evaluate_s"] += self.received_seconds
            scores, self.received, self.received_seconds = in_order(self.received | now), {}, 0.0
        self.history.add_time(log.seconds)
        said = self.said(state, log, scores is not None)
        drawn = scores is not None and pictured(state.round, self.task.rounds, self.every)
        record = Record(
            method=self.method.name,
            seed=self.experiment.seed,
            round=state.round,
            rounds=self.task.rounds,
            trained=self.task.n if self.method.trains == "everyone" else len(log.selected),
            line=line(log, scores, said, self.apart),
            selected=log.selected.numpy(),
            weights=log.weights.numpy(),
            scores=scores,
            kin=log.sent.kin if drawn and log.sent is not None else None,
            marks=diagnostics.marks(self.method, state, log) if drawn else {},
        )
        go_on = self.callbacks.recorded(record)
        if self.recorder is not None and time.monotonic() > self.next_checkpoint:
            self.save(state)
        self.pulse.at(state.round + 1)
        return go_on

    def said(self, state: State, log: Log, scored: bool) -> dict[str, dict[str, Any]]:
        """Return what the line of a round says beyond accuracies: the parts' own numbers, and diagnostics."""
        parts: dict[str, dict[str, Any]] = {}
        if scored:
            parts = {name: getattr(self.method, name).log(getattr(state, name)) for name in SLOTS}
            if log.sent is not None and log.sent.kin is not None:
                parts["collaborate"] = parts["collaborate"] | log.sent.kin.log()
        replied = log.selected[log.has_replied].numpy()
        parts |= of_round(self.experiment.privacy, self.history.participation["replied"], replied)
        parts |= diagnostics.filter_quality(self.method, self.engine, state, log)
        if scored:
            parts |= diagnostics.relevant_loss(self.method, self.task, self.engine, state, self.sample)
            parts |= diagnostics.asked(self.experiment, self.task, self.engine, state, log)
        return parts

    # checkpoints and the end

    def save(self, state: State) -> None:
        """Write a checkpoint. One that takes long is made less often, so that saving stays under a tenth of the run."""
        assert self.recorder is not None
        start = time.monotonic()
        save_checkpoint(state, self.engine.private(), self.recorder, self.history.time_now())
        took = time.monotonic() - start
        self.next_checkpoint = time.monotonic() + max(self.checkpoint_seconds, 10 * took)
        self.callbacks.saved(state.round)
