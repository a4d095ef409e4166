"""select: who takes part this round?"""

from fedkin.select.uniform import Uniform

__all__ = ["Uniform"]
