"""Comparisons: several methods and seeds on the same data, always with training alone beside them."""
