"""Differential privacy: what leaves a client is clipped and noised, and how much privacy that has cost is counted."""

from fedkin.privacy.guard import Guard
from fedkin.privacy.privacy import Privacy, protected, read, unprotected

__all__ = ["Guard", "Privacy", "protected", "read", "unprotected"]
