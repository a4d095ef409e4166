"""Trackers of other projects as callbacks: TensorBoard, MLflow, Weights & Biases. Each needs an extra of its name.

fk.compare(["fedavg", "fedmcsa"], "digits", callbacks=[fk.track.TensorBoard("logs")])
"""

from fedkin.track.mlflow import MLflow
from fedkin.track.tensorboard import TensorBoard
from fedkin.track.tracker import Tracker
from fedkin.track.wandb import WandB

TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}

__all__ = ["TRACKERS", "MLflow", "TensorBoard", "Tracker", "WandB"]
