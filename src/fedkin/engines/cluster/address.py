"""The address of a Ray cluster: whether one answers there, and if not, why, in one sentence."""

from __future__ import annotations

import socket
import subprocess
import sys
from functools import cache

from fedkin.errors import BadInput, require

SECONDS = 3.0  # that a machine has to answer
PATIENCE = 40.0  # seconds that a cluster has to take somebody in
JOIN = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"


def check_address(address: str) -> None:
    """Refuse an address at which no cluster takes this process in."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        fits = host and "/" not in host and port.isdigit() and 0 < int(port) < 65536
        require(fits, f"The address of a Ray cluster is host:port, as 10.0.0.1:6379, auto or here, not '{address}'.")
        try:
            socket.create_connection((host, int(port)), timeout=SECONDS).close()
        except OSError as error:
            raise nobody_at(address) from error
    try_to_join(address)


@cache
def try_to_join(address: str) -> None:
    """Refuse a cluster that another process cannot join. Ray itself would try for minutes, and say why line by line."""
    try:
        tried = subprocess.run([sys.executable, "-c", JOIN, address], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise refusal(address, bytes(error.stderr or b"").decode(errors="replace")) from error
    if tried.returncode:
        raise refusal(address, tried.stderr)


def refusal(address: str, said: str) -> BadInput:
    """Return the error for a cluster that did not take this process in, by what Ray said of it."""
    if "Unauthenticated" in said or "AuthenticationError" in said or "no authentication token" in said:
        how = "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to the file that has it"
        return BadInput(f"The Ray cluster at '{address}' asks for its token; {how}.")
    if "Version mismatch" in said:
        how = "install the same on all machines"
        return BadInput(
            f"The Ray cluster at '{address}' has another version of Ray or Python than this machine; {how}."
        )
    if "No node info found" in said:
        how = f"add it with: ray start --address={address}, or call fedkin on one of its machines"
        return BadInput(f"This machine is not part of the Ray cluster at '{address}'; {how}.")
    return nobody_at(address)


def nobody_at(address: str) -> BadInput:
    """Return the error for an address at which there is no cluster."""
    advice = "start one with: ray start --head --port=6379, and give its address"
    return BadInput(f"There is no Ray cluster at '{address}'; {advice}.")
