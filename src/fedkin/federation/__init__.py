"""A federation of real machines: its folder, certificates and keys, the server, the sites, and all on one machine."""

from importlib.util import find_spec

from fedkin.errors import require

require(find_spec("flwr") is not None, "Flower is not installed; install it with: pip install 'fedkin[flower]'.")
