"""Weights & Biases: a run of a project, online or, with WANDB_MODE=offline, in the folder wandb/."""

from __future__ import annotations

import os
from typing import Any
from uuid import uuid4

from fedkin.runs.folder import RunFolder
from fedkin.track.tracker import Tracked, Tracker, Writer, parameters


class WandB(Tracker):
    """Writes every run to a project (WANDB_PROJECT or 'fedkin'); the runs of one comparison are a `group`."""

    package, extra = "wandb", "wandb"

    def __init__(self, project: str | None = None, group: str | None = None):
        self.at_hand()
        self.project, self.group = project or os.environ.get("WANDB_PROJECT") or "fedkin", group

    def open(self, run: Tracked, first: int, experiment: dict[str, Any]) -> Writer:
        wandb = self.at_hand()
        stored = run.folder.tracked(self.extra) if run.folder and first > 1 else {}
        id = stored.get("id") or uuid4().hex[:12]
        opened = wandb.init(
            project=self.project,
            group=self.group,
            name=run.name,
            id=id,
            resume="allow",
            reinit="create_new",  # runs side by side
            config=parameters(experiment),
            settings=wandb.Settings(silent=True),
        )
        return History(opened, id, run.folder, max(stored.get("round", 0), opened.step - 1))


class History(Writer):
    """The history of one run. The last round is noted in the run's folder, as an offline run does not know it later."""

    def __init__(self, run: Any, id: str, folder: RunFolder | None, last: int):
        self.run, self.id, self.folder, self.last = run, id, folder, last

    def log(self, round: int, numbers: dict[str, float]) -> None:
        self.run.log(numbers, step=round)
        if self.folder is not None:
            self.folder.write_tracked("wandb", {"id": self.id, "round": round})

    def close(self, finished: bool) -> None:
        self.run.finish(exit_code=0 if finished else 1)
