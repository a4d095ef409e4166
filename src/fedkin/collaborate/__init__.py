"""collaborate: what does each client get back?"""

from fedkin.collaborate.mean import Mean
from fedkin.collaborate.nothing import Nothing

__all__ = ["Mean", "Nothing"]
