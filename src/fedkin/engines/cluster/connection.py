"""The connection to Ray: to a cluster that is there, or to a Ray that runs on this machine as long as it is needed."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from fedkin.errors import BadInput, require

SECONDS = 3.0  # that a cluster has to answer
HERE = "here"  # the address that means: start Ray on this machine
QUIET = {"include_dashboard": False, "logging_level": "ERROR", "log_to_driver": False}


def load_ray(alone: bool) -> Any:
    """Import Ray, or say what to install. `alone`: it will be started on this machine and listens to nobody else."""
    require(find_spec("ray") is not None, "Ray is not installed; install it with: pip install 'fedkin[ray]'.")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else each start warns of a future change
    if alone and "ray" not in sys.modules:
        # Ray reads this when it is imported. On Linux too it then has the address 127.0.0.1, and is no open door
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    return ray


@contextmanager
def connected(address: str | None = None, cores: int | None = None) -> Iterator[Any]:
    """Connect to the cluster at this address, or start Ray on this machine; at the end let go of it again.

    Where this process is connected already, that connection is used, and stays. `cores` is how many a Ray that is
    started here may use at least.
    """
    ray = load_ray(alone=address in (None, HERE))
    if ray.is_initialized():
        yield ray
        return
    if address is None or address == HERE:
        there = os.environ.pop("RAY_ADDRESS", None)  # which Ray would take for an address that was asked for
        try:
            ray.init(num_cpus=None if cores is None else max(cores, os.cpu_count() or 1), **QUIET)
        finally:
            os.environ.update({} if there is None else {"RAY_ADDRESS": there})
    else:
        join(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


WAITING: dict[str, list[tuple[float, Any]]] = {}  # by Ray's job: actors, and their share of a GPU


@contextmanager
def waiting_actors(ray: Any) -> Iterator[None]:
    """Let actors wait for the next run, whose start is then quick, until the block ends."""
    job = ray.get_runtime_context().get_job_id()
    WAITING[job] = []
    try:
        yield
    finally:
        for _, actor in WAITING.pop(job):
            ray.kill(actor)


def idle_actors(ray: Any) -> list[tuple[float, Any]] | None:
    """Return the actors that wait for a run; None where actors do not wait."""
    return WAITING.get(ray.get_runtime_context().get_job_id())


def check_cluster(address: str | None) -> None:
    """Refuse, before anything is begun, to use a Ray that is not installed, or a cluster that does not answer."""
    ray = load_ray(alone=address in (None, HERE))
    if address is not None and address != HERE and not ray.is_initialized():
        check_address(address)


def check_address(address: str) -> None:
    """Refuse an address at which nobody listens."""
    if address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        fits = host and port.isdigit() and 0 < int(port) < 65536
        require(fits, f"The address of a Ray cluster is host:port, as 10.0.0.1:6379, auto or here, not '{address}'.")
        try:
            socket.create_connection((host, int(port)), timeout=SECONDS).close()  # Ray itself would try for a minute
        except OSError as error:
            raise nobody_at(address) from error


def nobody_at(address: str) -> BadInput:
    """Return the error for an address at which there is no cluster."""
    advice = "start one with: ray start --head --port=6379, and give its address"
    return BadInput(f"There is no Ray cluster at '{address}'; {advice}.")


def join(ray: Any, address: str) -> None:
    """Connect to the cluster at this address; refuses an address at which there is none."""
    check_address(address)
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        ray.shutdown()
        raise nobody_at(address) from error
