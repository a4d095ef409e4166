"""Runs: an experiment, the session that plays it, its folder on disk, and what can be read there."""

from fedkin.runs.experiment import Experiment
from fedkin.runs.run import Run, load_run
from fedkin.runs.session import run

__all__ = ["Experiment", "Run", "load_run", "run"]
