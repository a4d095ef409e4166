"""fedkin: personalised federated learning in which each client learns from its kin."""

from fedkin import collaborate, keep, methods, select, train
from fedkin.data import Data, Federation, from_clients
from fedkin.data import load as load_data
from fedkin.descent import Descent
from fedkin.errors import BadInput
from fedkin.experiment import Experiment
from fedkin.messages import Reply, Sent, Task, Work
from fedkin.parts import Collaborate, Keep, Method, Select, Train
from fedkin.play import Result, run
from fedkin.results.saved import load

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "Collaborate",
    "Data",
    "Descent",
    "Experiment",
    "Federation",
    "Keep",
    "Method",
    "Reply",
    "Result",
    "Select",
    "Sent",
    "Task",
    "Train",
    "Work",
    "collaborate",
    "from_clients",
    "keep",
    "load",
    "load_data",
    "methods",
    "run",
    "select",
    "train",
]
