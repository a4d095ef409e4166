"""Flower's simulation runtime: a grid whose nodes are simulated by actors of Ray on this machine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from flwr.app import Message
from flwr.clientapp import ClientApp
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.proto.task_pb2 import Task
from flwr.server.superlink.fleet.vce import vce_api
from flwr.server.superlink.fleet.vce.metrics import VceMetrics
from flwr.server.superlink.linkstate import LinkStateFactory
from flwr.server.superlink.linkstate.in_memory_linkstate import RunRecord
from flwr.serverapp import Grid
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME, NOOP_FEDERATION_ID
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.federation import NoOpFederationManager
from flwr.superlink.grid import InMemoryGrid

from fedkin.data.federation import Federation
from fedkin.engines.cluster import tensors
from fedkin.engines.cluster.connection import connected
from fedkin.errors import Unfinished

RUN, TASK = 1, 1  # the numbers of the one run that this grid knows
Make = Callable[[Callable[[int], Federation]], ClientApp]  # (what gives a node's samples) -> the app of all nodes


class Watched(InMemoryGrid):  # type: ignore[misc]  # flwr has no types where it is not installed
    """A grid that says so when what answers its messages has ended."""

    why: BaseException | None = None

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        if self.why is not None:
            raise Unfinished(f"Flower's simulation runtime ended ({self.why}); go on with --resume.") from self.why
        return super().pull_messages(message_ids)  # type: ignore[no-any-return]


@contextmanager
def simulated(make: Make, parts: list[Federation], cores: int) -> Iterator[Grid]:
    """Give a grid with a node for each of these samples; so many actors answer what nodes are asked.

    This is what `flwr run` does in a simulation, but the server's part stays in this thread. Samples, and the app, lie
    in Ray's memory, and a message carries neither.
    """
    with connected(None, cores) as ray, quiet():
        tensors.register()
        samples = [ray.put(part) for part in parts]
        app = ray.put(make(lambda number: taken(samples[number])))
        states = LinkStateFactory(FLWR_IN_MEMORY_DB_NAME, NoOpFederationManager(), ObjectStoreFactory())
        run, state = Run.create_empty(run_id=RUN), states.state()
        run.primary_task_id, run.federation_id = TASK, NOOP_FEDERATION_ID
        state.run_ids[RUN], state.task_store[TASK] = RunRecord(run=run), Task(task_id=TASK, run_id=RUN)
        nodes = vce_api._register_nodes(len(parts), states)
        stores = vce_api._register_node_info_stores(nodes, run)
        grid, stop = Watched(states), threading.Event()
        grid.set_run(run)

        def work() -> None:
            try:
                vce_api.run_api(
                    lambda: taken(app), lambda: backend(ray, cores), nodes, states, stores, stop, VceMetrics()
                )
            except BaseException as error:
                grid.why = error.__cause__ or error

        thread = threading.Thread(target=work, name="flower")
        with identity():
            thread.start()
            try:
                yield grid
            finally:
                stop.set()
                thread.join()


def taken(reference: Any) -> Any:
    """Return what lies in Ray's memory, in the process of an actor too."""
    import ray

    return ray.get(reference)


def backend(ray: Any, cores: int) -> Any:
    """Return what hands messages to actors: one for each of so many cores, as far as Ray has them."""
    from flwr.server.superlink.fleet.vce.backend.raybackend import BasicActorPool, ClientAppActor, RayBackend

    class Actors(RayBackend):  # type: ignore[misc]
        """Flower's own, with as many actors as are asked for; at the end it leaves Ray to whoever started it."""

        def build(self, app: Callable[[], ClientApp]) -> None:
            self.pool, self.app_fn = BasicActorPool(ClientAppActor, self.client_resources, {}), app
            self.pool.add_actors_to_pool(min(cores, self.pool.actors_capacity))

        def terminate(self) -> None:
            for actor in self.pool.pool if self.pool is not None else ():
                ray.kill(actor)

    return Actors({"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})


@contextmanager
def identity() -> Iterator[None]:
    """Let this process write messages: Flower wants to know as whom, and of which run."""
    names = {"_task_id": TASK, "_run_id": RUN, "_node_id": SUPERLINK_NODE_ID}
    before = {name: getattr(TaskIdentity, name) for name in names}
    for name, value in names.items():
        setattr(TaskIdentity, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(TaskIdentity, name, value)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Flower's own pages about a failure from the terminal; what failed is told as a sentence."""
    logger = logging.getLogger("flwr")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
