"""The samples of a site, as its configuration names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flwr.app import Context

from fedkin.errors import require
from fedkin.sites import Arrays, Samples
from fedkin.sites.samples import Given


def samples(name: str, context: Context) -> Samples:
    """Return the samples of a site from what its site.toml says."""
    config = context.node_config
    path = Path(str(config.get("data", "")))
    require(path.is_file(), f"Site {name} has no data; name its file in site.toml, as data.")
    return Arrays(name, lambda: arrays(path))


def arrays(path: Path) -> Given:
    """Return the samples of a file of arrays: x and y, or x_train, y_train, x_test and y_test."""
    with np.load(path) as found:
        if "x" in found:
            return found["x"], found["y"]
        splits = [split for split in ("train", "test", "validation") if f"x_{split}" in found]
        return {split: (found[f"x_{split}"], found[f"y_{split}"]) for split in splits}
