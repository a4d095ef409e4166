"""keep: whose update counts?"""

from fedkin.keep.alignment import Alignment
from fedkin.keep.everyone import Everyone
from fedkin.keep.krum import Krum, MultiKrum
from fedkin.keep.oracle import Oracle
from fedkin.keep.relevance import Relevance, UpdateDistance
from fedkin.keep.robust import Robust

__all__ = ["Alignment", "Everyone", "Krum", "MultiKrum", "Oracle", "Relevance", "Robust", "UpdateDistance"]
