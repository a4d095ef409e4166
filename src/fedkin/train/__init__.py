"""train: what does a client do with what it receives?"""

from fedkin.train.apfl import APFL
from fedkin.train.maml import MAML
from fedkin.train.moreau import Moreau
from fedkin.train.prox import Prox
from fedkin.train.sgd import SGD
from fedkin.train.two_streams import TwoStreams

__all__ = ["APFL", "MAML", "SGD", "Moreau", "Prox", "TwoStreams"]
