"""train: what does a client do with what it receives?"""

from fedkin.train.prox import Prox
from fedkin.train.sgd import SGD

__all__ = ["SGD", "Prox"]
