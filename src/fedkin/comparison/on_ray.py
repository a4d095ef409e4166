"""Plays the runs of a plan on Ray, each as a task with one core.

A task plays its run in the folder that a process would play it in, so all machines of a cluster must share that file
system. What it has to say it leaves with an actor, the post, where the command fetches it; there it also reads whether
to stop.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fedkin.comparison.plan import Loaded, Planned
from fedkin.comparison.processes import GLANCE, Killed
from fedkin.comparison.sequence import Watching
from fedkin.engines.cluster.connection import connected
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


def task(number: int, given: bytes, post: Any, place: tuple[str, list[str], dict[str, str]]) -> Exception | None:
    """Play a run where the command was called, with its modules and data; returns the error it ended with, if any."""
    import ray

    folder, paths, names = place
    os.environ.update(names)
    sys.path.extend(path for path in paths if path not in sys.path)
    if Path(folder).is_dir():
        os.chdir(folder)
    one, resume, work = pickle.loads(given)
    line = Line(ray, post, number)
    line.send(("taken", None))
    error: Exception | None = None if line.poll() else work(one, line, loaded(), resume)
    return error


class Tasks:
    """The runs of a plan as tasks of Ray, what ended badly among them, and whether they were sent the word to stop."""

    def __init__(self, ray: Any, watching: Watching, warn: Callable[[str], None]):
        self.ray, self.watching, self.warn = ray, watching, warn
        self.post = ray.remote(Post).options(num_cpus=0).remote()
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
        place = os.getcwd(), sys.path, {name: value for name, value in os.environ.items() if name.startswith("FEDKIN_")}
        remote = self.ray.remote(task).options(num_cpus=1, max_retries=0)
        runs = dict(waiting)
        tasks = {
            remote.remote(number, pickle.dumps((one, resume, work)), self.post, place): number
            for number, one in waiting
        }
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
            found = error
        except self.ray.exceptions.RayError:
            self.killed.append(f"The process of {one.name} was killed, perhaps for lack of memory.")
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
        cores = int(ray.cluster_resources().get("CPU", 0))
        warn(f"Ray: {cores} cores for {len(waiting)} runs, after {time.monotonic() - began:.1f} s.")
        Tasks(ray, watching, warn).play_all(waiting, of, work, told, resume, stopping)
