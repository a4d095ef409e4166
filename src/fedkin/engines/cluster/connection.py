"""The connection to Ray: to a cluster that is there, or to a Ray that runs on this machine as long as it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from fedkin.engines.cluster.address import check_address, refusal
from fedkin.errors import BadInput

HERE = "here"  # the address that means: start Ray on this machine
QUIET: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}


SETTINGS = {  # that Ray reads when it is imported
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else each start warns of a future change
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # else Ray prints pages about an actor that ended, on standard output
}


def load_ray() -> Any:
    """Import Ray, or say what to install."""
    os.environ.update({name: value for name, value in SETTINGS.items() if name not in os.environ})
    try:
        import ray
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "ray"
        what = "Ray is not installed" if absent else f"Ray cannot be imported ({error})"
        raise BadInput(f"{what}; install it with: pip install 'fedkin[ray]'.") from error
    return ray


def check_cluster(address: str | None) -> None:
    """Refuse, before anything is begun, to use a Ray that is not installed, or a cluster that does not answer."""
    ray = load_ray()
    if address is not None and address != HERE and not ray.is_initialized():
        check_address(address)


@contextmanager
def only_here(ray: Any) -> Iterator[None]:
    """Let a Ray that is started meanwhile have the address 127.0.0.1, as on other systems than Linux: no open door."""
    name, constants = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", ray._private.ray_constants
    before, there = constants.ENABLE_RAY_CLUSTER, os.environ.get(name)
    constants.ENABLE_RAY_CLUSTER, os.environ[name] = False, "0"  # here, and in processes that are started from here
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        os.environ.pop(name)
        os.environ.update({} if there is None else {name: there})


@contextmanager
def opened(ray: Any, address: str | None, cores: int | None) -> Iterator[None]:
    """Connect to the cluster at this address, or start Ray on this machine; at the end let go of it again."""
    here = address is None or address == HERE
    number = None if cores is None else max(cores, os.cpu_count() or 1)
    how = {"num_cpus": number, "include_dashboard": False} if here else {"address": address}
    with only_here(ray) if here else nullcontext():
        there = os.environ.pop("RAY_ADDRESS", None) if here else None  # which Ray would take for one that was asked for
        try:
            ray.init(**how, **QUIET)
        except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            ray.shutdown()
            if not here:
                raise refusal(str(address), str(error)) from error
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise BadInput(f"Ray does not start on this machine ({reason}); leave Ray out.") from error
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
    ray = load_ray()
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
