"""The model, tomorrow: exported for a service, asked for predictions, offered to a site that was not there."""

from fedkin.deploy.choice import Choice, Chooser, choose
from fedkin.deploy.joining import Joined, join
from fedkin.deploy.package import export
from fedkin.deploy.prediction import predict

__all__ = ["Choice", "Chooser", "Joined", "choose", "export", "join", "predict"]
