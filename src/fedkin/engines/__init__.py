"""How clients run: `stacked` trains many clients at once (the default), `plain` one after another, for debugging."""

from fedkin.engines.engine import Engine, Score
from fedkin.engines.plain import Plain
from fedkin.engines.simulation import Simulation
from fedkin.engines.stacked import Stacked

ENGINES: dict[str, type[Simulation]] = {"stacked": Stacked, "plain": Plain}

__all__ = ["ENGINES", "Engine", "Plain", "Score", "Simulation", "Stacked"]
