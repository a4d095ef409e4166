"""fedkin on Flower: its methods as Flower strategies, its runs on Flower's grid, and the ClientApp of a site."""

from importlib.util import find_spec

from fedkin.errors import require

require(find_spec("flwr") is not None, "Flower is not installed; install it with: pip install 'fedkin[flower]'.")

from fedkin.flower.client import client  # noqa: E402
from fedkin.flower.grid import OnGrid  # noqa: E402
from fedkin.flower.server import run  # noqa: E402
from fedkin.flower.strategy import Strategy  # noqa: E402

__all__ = ["OnGrid", "Strategy", "client", "run"]
