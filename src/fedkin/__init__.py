"""fedkin: personalised federated learning in which each client learns from its kin.

To run:                 Data, from_clients, load_data, Experiment, run, compare, tune, methods
To read what is stored: load, for any folder; load_run, load_comparison
What comes back:        Run, Runs, Comparison, Tuned; Callback and Record for whoever is told of every round, track
To use a model:         export, predict, join
To write a part:        Select, Train, Keep, Collaborate, Descent, Needs, Gives, fields, tree
What parts hand over:   Model, Message, Batch, Slot, Task, Sent, Reply, Kin, Work, Objective
"""

from fedkin import collaborate, fields, keep, methods, select, track, train
from fedkin.comparison.compare import compare
from fedkin.comparison.result import Comparison, load, load_comparison
from fedkin.core import tree
from fedkin.data import Data, Federation, from_clients
from fedkin.data import load as load_data
from fedkin.deploy import export, join, predict
from fedkin.errors import BadInput
from fedkin.messages import Batch, Kin, Message, Model, Objective, Reply, Sent, Slot, Task, Work
from fedkin.parts import Collaborate, Gives, Keep, Method, Needs, Part, Select, Train
from fedkin.runs import Experiment, Run, Runs, load_run, run
from fedkin.runs.callback import Callback, Record
from fedkin.training import Descent
from fedkin.tuning.tune import Tuned, tune

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "Batch",
    "Callback",
    "Collaborate",
    "Comparison",
    "Data",
    "Descent",
    "Experiment",
    "Federation",
    "Gives",
    "Keep",
    "Kin",
    "Message",
    "Method",
    "Model",
    "Needs",
    "Objective",
    "Part",
    "Record",
    "Reply",
    "Run",
    "Runs",
    "Select",
    "Sent",
    "Slot",
    "Task",
    "Train",
    "Tuned",
    "Work",
    "collaborate",
    "compare",
    "export",
    "fields",
    "from_clients",
    "join",
    "keep",
    "load",
    "load_comparison",
    "load_data",
    "load_run",
    "methods",
    "predict",
    "run",
    "select",
    "track",
    "train",
    "tree",
    "tune",
]


def __getattr__(name: str) -> object:
    """A name of before: `Result` is now `Run`."""
    moved = {"Result": Run}
    if name not in moved:
        raise AttributeError(f"module 'fedkin' has no attribute '{name}'")
    from warnings import warn

    warn(f"fedkin.{name} is now fedkin.{moved[name].__name__}.", DeprecationWarning, stacklevel=2)
    return moved[name]
