"""SCAFFOLD (Karimireddy et al. 2020): control variates against client drift, option II.

Round:
    select       `count` clients uniformly; they are sent W and c
    train        y <- y - eta (g(y) - c_i + c); then c_i by option II
    collaborate  W <- the mean of the y_i;  c <- c + |S| / N mean(change of c_i)
"""

from fedkin.collaborate import Control
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Scaffold


def scaffold(count: int = 20, eta: float = 0.02, steps: int = 20, momentum: float = 0.0) -> Method:
    train = Scaffold(eta=eta, steps=steps, momentum=momentum)
    return Method("scaffold", Uniform(count=count), train, Everyone(), Control())
