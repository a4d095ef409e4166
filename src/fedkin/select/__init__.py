"""select: who takes part this round?"""

from fedkin.select.attention import Attention
from fedkin.select.dismiss import Dismiss
from fedkin.select.schedule import Constant, Listed, Steps
from fedkin.select.shapley import Shapley
from fedkin.select.uniform import Uniform
from fedkin.select.valuation import Active

__all__ = ["Active", "Attention", "Constant", "Dismiss", "Listed", "Shapley", "Steps", "Uniform"]
