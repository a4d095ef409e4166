"""How clients run: `stacked` trains many clients at once (the default), `plain` one after another, for debugging, and
`ray` divides the clients among actors, on the cores of this machine or on a cluster."""

from fedkin.engines.cluster.ray import Ray
from fedkin.engines.engine import Engine, Score
from fedkin.engines.plain import Plain
from fedkin.engines.simulation import Simulation
from fedkin.engines.stacked import Stacked

ENGINES: dict[str, type[Simulation] | type[Ray]] = {"stacked": Stacked, "plain": Plain, "ray": Ray}

__all__ = ["ENGINES", "Engine", "Plain", "Ray", "Score", "Simulation", "Stacked"]
