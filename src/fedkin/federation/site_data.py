"""The samples of a site, as its site.toml names them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from flwr.app import Context

from fedkin.errors import require
from fedkin.sites import Samples
from fedkin.sites.tables import from_config

ELSEWHERE = ("server",)  # keys of site.toml that do not speak of samples


def samples(name: str, context: Context) -> Samples:
    """Return the samples of a site; they are read again only when their file, or what site.toml says, has changed."""
    said = {key: value for key, value in context.node_config.items() if key not in ELSEWHERE and value != ""}
    path = Path(str(said.get("data", ""))).expanduser()
    require(said.get("data") and path.exists(), f"Site {name} has no data; name its file in site.toml, as data.")
    return read(name, tuple(sorted(said.items())), path.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def read(name: str, said: tuple[tuple[str, Any], ...], changed: int) -> Samples:
    """Return the samples of a site from a file that changed then."""
    return from_config(name, dict(said))
