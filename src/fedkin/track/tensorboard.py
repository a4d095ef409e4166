"""TensorBoard: event files in a folder, read with `tensorboard --logdir FOLDER`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedkin.track.tracker import Tracked, Tracker, Writer, parameters


class TensorBoard(Tracker):
    """Writes an event file for every run, in `folder`/<method>/seed-<k>."""

    package, extra = "torch.utils.tensorboard", "tensorboard"

    def __init__(self, folder: Path | str):
        self.at_hand()
        self.folder = Path(folder)

    def open(self, run: Tracked, first: int, experiment: dict[str, Any]) -> Writer:
        return Events(self.folder / run.name, first, experiment)


class Events(Writer):
    """The event files of one run. Points of rounds that are played again are purged."""

    def __init__(self, folder: Path, first: int, experiment: dict[str, Any]):
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        self.events = SummaryWriter(str(folder), purge_step=first)
        if first == 1:
            self.events.add_text("experiment", f"```json\n{json.dumps(experiment, indent=2)}\n```", 0)
            file = self.events._get_file_writer()
            for summary in hparams(parameters(experiment), {}):
                file.add_summary(summary)

    def log(self, round: int, numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            self.events.add_scalar(name, value, round)

    def flush(self) -> None:
        self.events.flush()

    def close(self, finished: bool) -> None:
        self.events.close()
