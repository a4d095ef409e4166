"""How clients run: `stacked` trains many clients at once (the default), `plain` one after another, for debugging, `ray`
divides the clients among actors, on the cores of this machine or on a cluster, and `flower` plays each as a site on
Flower's simulation runtime."""

from importlib import import_module
from importlib.util import find_spec

from fedkin.engines.cluster.ray import Ray
from fedkin.engines.engine import Engine, Score
from fedkin.engines.plain import Plain
from fedkin.engines.simulation import Simulation
from fedkin.engines.stacked import Stacked
from fedkin.errors import require

ENGINES: dict[str, type[Simulation] | type[Ray]] = {"stacked": Stacked, "plain": Plain, "ray": Ray}
ABOVE = {"flower": ("fedkin.flower.simulated", "Simulated")}  # made of rooms above, and imported when asked for
ACTORS = ("ray", "flower")  # engines whose clients train in actors of Ray, which use all cores by themselves


def engine_called(name: str) -> type[Simulation] | type[Ray]:
    """Return the engine of this name; where what it needs is not installed, a sentence says what to install."""
    if name in ENGINES:
        return ENGINES[name]
    missing = [module for module in ("flwr", "ray") if find_spec(module) is None]
    lacks = f"The engine {name} is Flower's simulation runtime, and {' and '.join(missing)} is not installed"
    require(not missing, f"{lacks}; install it with: pip install 'fedkin[flower,ray]'.")
    module, attribute = ABOVE[name]
    found: type[Simulation] = getattr(import_module(module), attribute)
    return found


__all__ = ["ABOVE", "ACTORS", "ENGINES", "Engine", "Plain", "Ray", "Score", "Simulation", "Stacked", "engine_called"]
