"""Runs: an experiment, the session that plays it, its folder on disk, and what can be read there."""

from fedkin.runs.experiment import Experiment
from fedkin.runs.run import Run
from fedkin.runs.session import run
from fedkin.runs.several import Runs, load_run

__all__ = ["Experiment", "Run", "Runs", "load_run", "run"]
