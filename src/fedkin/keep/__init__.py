"""keep: whose update counts?"""

from fedkin.keep.everyone import Everyone

__all__ = ["Everyone"]
