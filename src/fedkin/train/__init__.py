"""train: what does a client do with what it receives?"""

from fedkin.train.aligned import Aligned
from fedkin.train.apfl import APFL
from fedkin.train.blending import Blending
from fedkin.train.choosing import Choosing
from fedkin.train.experts import Experts
from fedkin.train.fedmix import FedMix
from fedkin.train.head_then_body import HeadThenBody
from fedkin.train.label_shares import Calibrated, LabelShares
from fedkin.train.maml import MAML
from fedkin.train.mixing_itself import MixingItself
from fedkin.train.moreau import Moreau
from fedkin.train.pooled import Pooled
from fedkin.train.prox import Prox
from fedkin.train.scaffold import Scaffold
from fedkin.train.sgd import SGD
from fedkin.train.two_streams import TwoStreams

__all__ = [
    "APFL",
    "MAML",
    "SGD",
    "Aligned",
    "Blending",
    "Calibrated",
    "Choosing",
    "Experts",
    "FedMix",
    "HeadThenBody",
    "LabelShares",
    "MixingItself",
    "Moreau",
    "Pooled",
    "Prox",
    "Scaffold",
    "TwoStreams",
]
