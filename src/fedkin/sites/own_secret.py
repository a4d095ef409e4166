"""Random bytes that a site makes when it first needs them, and keeps in its own folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from fedkin.runs import files

PROOF = "secret"  # told to the server, by which it knows the site again
DIGEST = "digest-key"  # told to nobody: the check sum of the samples is keyed by it
NOISE = "noise"  # told to nobody: noise is drawn by it


def own_secret(folder: Path, name: str, size: int = 32) -> bytes:
    """Return the bytes that lie under this name in a site's folder, made when they are not there yet."""
    path = folder / name
    with files.alone(folder):
        if not path.exists():
            files.write(path, secrets.token_bytes(size))
            path.chmod(0o600)
    return path.read_bytes()
