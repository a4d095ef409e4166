"""The connection to Ray: to a cluster that is there, or to a Ray that runs on this machine as long as it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fedkin.engines.cluster.address import check_address, refusal
from fedkin.errors import BadInput

HERE = "here"  # the address that means: start Ray on this machine
QUIET: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}


def load_ray(alone: bool) -> Any:
    """Import Ray, or say what to install. `alone`: it will be started on this machine and listens to nobody else."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else each start warns of a future change
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # else Ray prints pages of an actor that ended, to stdout
    if alone and "ray" not in sys.modules:
        # Ray reads this when it is imported. On Linux too it then has the address 127.0.0.1, and is no open door
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "ray"
        what = "Ray is not installed" if absent else f"Ray cannot be imported ({error})"
        raise BadInput(f"{what}; install it with: pip install 'fedkin[ray]'.") from error
    return ray


def check_cluster(address: str | None) -> None:
    """Refuse, before anything is begun, to use a Ray that is not installed, or a cluster that does not answer."""
    ray = load_ray(alone=address in (None, HERE))
    if address is not None and address != HERE and not ray.is_initialized():
        check_address(address)


@contextmanager
def opened(ray: Any, address: str | None, cores: int | None) -> Iterator[None]:
    """Connect to the cluster at this address, or start Ray on this machine; at the end let go of it again."""
    here = address is None or address == HERE
    there = os.environ.pop("RAY_ADDRESS", None) if here else None  # which Ray would take for one that was asked for
    number = None if cores is None else max(cores, os.cpu_count() or 1)
    how = {"num_cpus": number, "include_dashboard": False} if here else {"address": address}
    try:
        ray.init(**how, **QUIET)
    except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        ray.shutdown()
        if here:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise BadInput(f"Ray does not start on this machine ({reason}); leave Ray out.") from error
        raise refusal(str(address), str(error)) from error
    finally:
        os.environ.update({} if there is None else {"RAY_ADDRESS": there})
    try:
        yield
    finally:
        ray.shutdown()


KEPT: list[ExitStack] = []  # what is open until the innermost block of `kept` ends
WAITING: dict[str, list[tuple[float, Any]]] = {}  # by Ray's job: actors, and their share of a GPU


@contextmanager
def kept() -> Iterator[None]:
    """Keep the connection that a run makes, and its actors, for the next run, until the block ends."""
    with ExitStack() as stack:
        KEPT.append(stack)
        stack.callback(KEPT.remove, stack)
        yield


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
    with ExitStack() as own:
        stack = KEPT[-1] if KEPT else own
        stack.enter_context(opened(ray, address, cores))
        if KEPT:
            stack.enter_context(waiting_actors(ray))
        yield ray


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
