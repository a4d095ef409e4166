"""A run in progress that says where its time goes."""

from __future__ import annotations

from typing import Any

from fedkin.log import Log
from fedkin.messages import Sent
from fedkin.round import State
from fedkin.runs.profile import (
    BATCHES,
    CHECKPOINTS,
    ENDING,
    RECORD,
    REST,
    SCORING,
    TRAINING,
    Profile,
    Stopwatch,
    TimedBatching,
)
from fedkin.runs.run import Run
from fedkin.runs.session import Session


class Profiled(Session):
    """A session whose seconds are charged to the rows of a profile. Nothing that it records is different."""

    def __init__(self, watch: Stopwatch, *given: Any):
        super().__init__(*given)
        self.watch, self.rounds = watch, 0
        self.batches: TimedBatching | None = None
        self.startup: float | None = getattr(self.engine, "startup", None)  # of the actors, where there are any
        if self.startup is None and hasattr(self.engine, "batching"):  # an engine on this machine
            self.batches = self.engine.batching = TimedBatching(self.engine.batching)

    def play(self, resume: bool) -> Run:
        found = super().play(resume)
        self.watch.switch(ENDING)
        profile = Profile(self.watch.seconds, self.rounds)
        found.profile = profile if self.startup is None else profile.by_actors(self.startup)
        if self.place is not None:
            self.place.write_profile(found.profile.to_json())
        return found

    def started(self) -> State:
        state = super().started()
        self.watch.switch(REST)
        return state

    def resumed(self) -> State:
        state = super().resumed()
        self.watch.switch(REST)
        return state

    def sent(self, state: State, sent: Sent) -> None:
        with self.watch.timed(SCORING):
            super().sent(state, sent)
        self.batch_seconds()  # those of clients that trained to be scored

    def played(self, state: State, log: Log) -> bool:
        self.rounds += 1
        self.watch.switch(REST)
        for row, seconds in log.spent.items():
            self.watch.move(seconds, REST, row)
        self.watch.move(self.batch_seconds(), TRAINING, BATCHES)
        log.spent.clear()
        with self.watch.timed(RECORD):
            go_on = super().played(state, log)
        self.watch.move(log.spent.get(SCORING, 0.0), RECORD, SCORING)
        if not go_on or state.round >= self.task.rounds:
            self.watch.switch(ENDING)
        return go_on

    def said(self, state: State, log: Log, scored: bool) -> dict[str, dict[str, Any]]:
        with self.watch.timed(SCORING if scored else RECORD):
            return super().said(state, log, scored)

    def save(self, state: State) -> None:
        with self.watch.timed(CHECKPOINTS):
            super().save(state)

    def batch_seconds(self) -> float:
        return 0.0 if self.batches is None else self.batches.seconds()
