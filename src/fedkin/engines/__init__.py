"""How clients run: `stacked` (many at once, the default) and `plain` (one after another, for debugging)."""

from fedkin.engines.plain import Plain
from fedkin.engines.simulation import Simulation
from fedkin.engines.stacked import Stacked

ENGINES: dict[str, type[Simulation]] = {"stacked": Stacked, "plain": Plain}

__all__ = ["ENGINES", "Plain", "Simulation", "Stacked"]
