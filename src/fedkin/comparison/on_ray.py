"""Plays the runs of a plan on Ray, each as a task with one core.

A task plays its run in the folder that a process would play it in, so all machines of a cluster must share that file
system. What it has to say it leaves with an actor, the post, where the command fetches it; there it also reads whether
to stop.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fedkin.comparison.plan import Loaded, Planned
from fedkin.comparison.processes import GLANCE, Killed
from fedkin.comparison.sequence import Watching
from fedkin.engines.cluster.connection import connected
from fedkin.engines.cluster.failures import lacking
from fedkin.errors import BadInput, require
from fedkin.runs.callback import Callback

Work = Callable[[Planned, Any, Loaded, bool], Exception | None]  # (run, line, data, resume) -> how it ended


class Post:
    """An actor that keeps what runs have said until it is fetched, and knows whether they are to stop."""

    def __init__(self) -> None:
        self.said: list[tuple[int, tuple[str, Any]]] = []
        self.stopped = False

    def leave(self, number: int, message: tuple[str, Any]) -> bool:
        """Take a message of a run; says whether the run is to stop."""
        self.said.append((number, message))
        return self.stopped

    def fetch(self, stop: bool) -> list[tuple[int, tuple[str, Any]]]:
        """Hand out what was said since the last time, and take the word to stop."""
        said, self.said = self.said, []
        self.stopped = self.stopped or stop
        return said


class Line:
    """The line of a task to the command; it has what a run uses of a pipe."""

    def __init__(self, ray: Any, post: Any, number: int):
        self.ray, self.post, self.number, self.stopped = ray, post, number, False

    def send(self, message: tuple[str, Any]) -> None:
        self.stopped = self.ray.get(self.post.leave.remote(self.number, message))

    def poll(self) -> bool:
        """Whether there is a word of the command: the word to stop."""
        return self.stopped


@cache
def loaded() -> Loaded:
    """Return the data that this process loaded last, for the next run that it plays."""
    return Loaded()


@dataclass(frozen=True)
class Place:
    """Where the command was called: its folder, where it finds modules, and its own variables."""

    folder: str
    paths: list[str]
    variables: dict[str, str]

    @staticmethod
    def here() -> Place:
        names = {name: value for name, value in os.environ.items() if name.startswith("FEDKIN_")}
        return Place(os.getcwd(), sys.path, names)

    def enter(self) -> None:
        """Make this process find what the command would find."""
        os.environ.update(self.variables)
        sys.path.extend(path for path in self.paths if path not in sys.path)
        if Path(self.folder).is_dir():
            os.chdir(self.folder)


def nearest(path: Path) -> Path:
    """Return the innermost folder around a path that is there."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.is_dir())


def task(number: int, given: bytes, post: Any, place: Place, around: Path) -> Exception | None:
    """Play a run where the command was called, with its modules and data; returns the error it ended with, if any.

    `around` is a folder around the run's that is there where the command was called.
    """
    import ray

    place.enter()
    if not around.is_dir():
        advice = "choose an --out on a file system that all machines share"
        return BadInput(f"{around} is not there on the machine {socket.gethostname()} of the cluster; {advice}.")
    one, resume, work = pickle.loads(given)
    line = Line(ray, post, number)
    line.send(("taken", None))
    error: Exception | None = None if line.poll() else work(one, line, loaded(), resume)
    return error


class Tasks:
    """The runs of a plan as tasks of Ray, what ended badly among them, and whether they were sent the word to stop."""

    def __init__(self, ray: Any, watching: Watching, warn: Callable[[str], None]):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.ray, self.watching, self.warn = ray, watching, warn
        # on the machine of the command, so that it is lost with nothing else
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self.post = (
            ray.remote(Post).options(num_cpus=0, scheduling_strategy=here).remote()
        )  # lost with the command only
        self.callbacks: dict[int, Callback | None] = {}
        self.killed: list[str] = []
        self.error: Exception | None = None
        self.stopped = False

    def play_all(
        self,
        waiting: Sequence[tuple[int, Planned]],
        of: int,
        work: Work,
        told: Sequence[str],
        resume: bool,
        stopping: Callable[[], bool],
    ) -> None:
        """Play everything. An error in one run stops the others after their round, and is raised at the end.

        Where a process was killed, the other runs are played all the same, and the kill is reported at the end.
        """
        runs, place, tasks = dict(waiting), Place.here(), {}
        for number, one in waiting:
            gpus = float(one.experiment.device != "cpu")
            remote = self.ray.remote(task).options(num_cpus=1, num_gpus=gpus, max_retries=0)
            given = pickle.dumps((one, resume, work)), self.post, place, nearest(one.folder.path)
            tasks[remote.remote(number, *given)] = number
        while tasks:
            done, _ = self.ray.wait(list(tasks), timeout=GLANCE)
            self.stopped = self.stopped or stopping()
            for number, (word, value) in self.ray.get(self.post.fetch.remote(self.stopped)):
                self.heard(number, runs[number], of, word, value, told)
            for ref in done:
                self.ended(runs[tasks.pop(ref)], ref)
        self.ray.kill(self.post)
        if self.error:
            raise self.error
        if self.killed:
            raise Killed(f"{' '.join(self.killed)} All else is saved.")

    def heard(self, number: int, one: Planned, of: int, word: str, value: Any, told: Sequence[str]) -> None:
        """Take one message of a run."""
        if word == "taken" and not self.stopped:
            self.callbacks[number] = self.watching(one, number, of)
        callback = self.callbacks.get(number)
        if word == "warn":
            self.warn(value)
        elif word in told and callback is not None and getattr(callback, word)(value) is False:
            self.stopped = True  # the answer of `recorded`: the run is to stop

    def ended(self, one: Planned, ref: Any) -> None:
        """Take how a run ended; a run whose process was killed is not played again, because memory may be short."""
        try:
            found = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            found = lacking(self.ray, error) or error
        except self.ray.exceptions.RayError:
            self.killed.append(f"The process of {one.name} was killed, perhaps for lack of memory or with its machine.")
            self.warn(f"{self.killed[-1]} The others go on.")
            return
        if found is not None:
            self.error, self.stopped = self.error or found, True


def play_on_ray(
    waiting: Sequence[tuple[int, Planned]],
    of: int,
    cluster: str,
    work: Work,
    told: Sequence[str],
    *,
    resume: bool,
    watching: Watching,
    warn: Callable[[str], None],
    stopping: Callable[[], bool],
) -> None:
    """Play these runs, of so many, on the cluster at this address."""
    began = time.monotonic()
    with connected(cluster) as ray:
        there = ray.cluster_resources()
        cores, cuda = int(there.get("CPU", 0)), any(one.experiment.device != "cpu" for _, one in waiting)
        require(cores, "The Ray cluster has no cores to play runs on; start it with some.")
        require(there.get("GPU") or not cuda, "The Ray cluster has no GPU; use --device cpu.")
        warn(f"Ray: {cores} cores for {len(waiting)} runs, after {time.monotonic() - began:.1f} s.")
        try:
            Tasks(ray, watching, warn).play_all(waiting, of, work, told, resume, stopping)
        except ray.exceptions.RayError as error:
            raise (lacking(ray, error) or error) from error
