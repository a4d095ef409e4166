"""MLflow: a run of an experiment in its store, local or on a server."""

from __future__ import annotations

import os
import time
from typing import Any

from fedkin.track.tracker import Tracked, Tracker, Writer, parameters

SECONDS = 1.0  # between two writes to the store, at least
MOST = 500  # numbers in one write; a store takes 1000
PARAMETERS = 100  # in one write
LONGEST = 500  # characters of a parameter's value


class MLflow(Tracker):
    """Writes every run to the store at `uri` (MLFLOW_TRACKING_URI or MLflow's default) under an experiment's name.

    The name is `experiment`, else MLFLOW_EXPERIMENT_NAME, else 'fedkin'.
    """

    package, extra = "mlflow.tracking", "mlflow"

    def __init__(self, uri: str | None = None, experiment: str | None = None):
        self.at_hand()
        self.uri = uri
        self.experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "fedkin"

    def open(self, run: Tracked, first: int, experiment: dict[str, Any]) -> Writer:
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        client = MlflowClient(self.uri)
        stored = run.folder.tracked(self.extra).get("id") if run.folder else None
        if stored is not None and first > 1 and known(client, stored):
            client.update_run(stored, status="RUNNING")
            return Points(client, stored, last_step(client, stored))
        found = client.get_experiment_by_name(self.experiment)
        place = client.create_experiment(self.experiment) if found is None else found.experiment_id
        tags = {"fedkin.method": run.method, "fedkin.seed": str(run.seed)}
        made = client.create_run(place, run_name=run.name, tags=tags).info.run_id
        said = [Param(name, str(value)[:LONGEST]) for name, value in parameters(experiment).items()]
        for start in range(0, len(said), PARAMETERS):
            client.log_batch(made, params=said[start : start + PARAMETERS])
        if run.folder is not None:
            run.folder.write_tracked(self.extra, {"id": made})
        return Points(client, made, 0)


class Points(Writer):
    """The numbers of one run, written some at a time."""

    def __init__(self, client: Any, id: str, last: int):
        self.client, self.id, self.last = client, id, last
        self.waiting: list[Any] = []
        self.written = time.monotonic()

    def log(self, round: int, numbers: dict[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        self.waiting += [Metric(name, value, now, round) for name, value in (numbers | {"round": round}).items()]
        if len(self.waiting) > MOST or time.monotonic() - self.written > SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits. 'round' comes last, so that it says up to which round all is there."""
        while self.waiting:
            some, self.waiting = self.waiting[:MOST], self.waiting[MOST:]
            self.client.log_batch(self.id, metrics=some)
        self.written = time.monotonic()

    def close(self, finished: bool) -> None:
        self.flush()
        self.client.set_terminated(self.id, "FINISHED" if finished else "KILLED")


def known(client: Any, id: str) -> bool:
    """Whether the store has a run of this id; another store has not."""
    from mlflow.exceptions import MlflowException

    try:
        client.get_run(id)
    except MlflowException:
        return False
    return True


def last_step(client: Any, id: str) -> int:
    """Return the last round that the store has of a run."""
    return max((point.step for point in client.get_metric_history(id, "round")), default=0)
