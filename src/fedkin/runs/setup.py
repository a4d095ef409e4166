"""What is chosen for an experiment before it runs, and the engine that it runs on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedkin import evaluate, metrics, models
from fedkin.core import batches, tree
from fedkin.core.layers import layers
from fedkin.data.federation import Federation
from fedkin.engines import ACTORS, Engine, engine_called
from fedkin.engines.cluster.connection import check_cluster, kept
from fedkin.engines.cluster.division import check_actors
from fedkin.engines.network import Network
from fedkin.engines.problem import network_of, task_of
from fedkin.errors import require
from fedkin.messages import Batch, Model, Task
from fedkin.parts import Method
from fedkin.privacy import Guard, accountant
from fedkin.runs import files, memory
from fedkin.runs.experiment import DTYPES, Experiment

PLANNED = 40  # bytes of a sample in the plan of a round: its place, its row and its target, and their draw


@dataclass(frozen=True)
class Setup:
    """An experiment on its data, with everything chosen that it left open."""

    network: Network
    task: Task
    kinds: tuple[str, ...]  # of models, to be scored
    chunk: int
    threads: int
    evaluate_every: int
    metric: str  # the one that decides
    memory: int  # bytes of private models that are held in memory
    sample: Tensor | None  # (k,) the clients that are scored; None: all
    need: dict[str, int]  # about how many bytes the run takes, by what takes them; empty where clients are elsewhere


Build = Callable[[Experiment, Setup], Engine]


def set_up(experiment: Experiment, federation: Federation) -> Setup:
    """Check that an experiment fits its data, and choose what it leaves open. No client is built."""
    method = experiment.method
    check_task(experiment, federation)
    shown = f"'{method.name}' mixes the models that clients hold, so no update can be attacked; use flip or ood."
    require(federation.attack is None or not method.needs.current, shown)
    if experiment.privacy is not None:
        accountant.check_installed()
    if experiment.engine == "ray":
        check_cluster(experiment.ray_address)
        check_actors(experiment.actors, federation.n)
    if experiment.engine == "flower":
        check_simulated(experiment)
    kinds = evaluate.wanted_kinds(method, experiment.score, federation.common is not None)
    module, sample = experiment.model, evaluate.sampled(experiment.seed, federation.n, experiment.score_clients)
    scored = federation.n if sample is None else len(sample)
    if isinstance(module, str):
        about = federation.shape, federation.classes, federation.vocabulary
        least = models.size_of(module, *about)
        memory.advice(method.name, needs(experiment, federation, size_in(experiment, federation, least, scored)))
        module = models.build(module, *about[:2], experiment.seed, federation.vocabulary)
    device = torch.device(experiment.device)
    network = network_of(federation, module, method.train, DTYPES[experiment.dtype], device)
    at_once = network.unlifted is None or experiment.engine == "plain"
    require(at_once, f"{network.unlifted} cannot run for many clients at once; use --engine plain, or another layer.")
    task = task_of(federation, network, experiment.rounds, experiment.seed)
    check_layers(method, list(network.model))
    if method.needs.truth:
        task = replace(task, irrelevant=federation.irrelevant)
    engine = engine_called(experiment.engine)
    chunk, usual = (experiment.chunk or choice(network) for choice in (engine.default_chunk, engine.usual_chunk))
    threads = experiment.threads or default_threads()
    tested = federation.test.sizes if sample is None else federation.test.sizes[sample]
    every = experiment.evaluate_every or evaluate.cadence(method, task, kinds, usual, tested, federation.common)
    private = method.train.slots(network.model, method.collaborate.gives.own_model)
    size = tree.size(private.values())[1]
    held = memory.budget(experiment.memory, min(chunk, federation.n), size)
    metric = metrics.deciding(experiment.metric, federation.task)
    width = min(method.train.batch, int(federation.train.sizes.max()))
    sizes = size_in(experiment, federation, tree.size([task.model])[1], scored)
    sizes = replace(sizes, slots=size, chunk=chunk, held=held, threads=threads, activations=width * network.footprint)
    need = needs(experiment, federation, sizes)
    return Setup(network, task, kinds, chunk, threads, every, metric, held, sample, need)


def needs(experiment: Experiment, federation: Federation, size: memory.Size) -> dict[str, int]:
    """Return how many bytes a run takes, by what takes them; empty where clients are not in this process."""
    elsewhere = federation.elsewhere or experiment.engine == "ray"
    return {} if elsewhere else memory.needed(experiment.method, size)


def size_in(experiment: Experiment, federation: Federation, model: int, scored: int) -> memory.Size:
    """Return what is known of the memory of a run before its network is built: `model` are the bytes of one."""
    method, sizes = experiment.method, federation.train.sizes.numpy()
    train, shape = method.train, Task(federation.n, federation.train.sizes, experiment.rounds, {}, no_loss)
    m = 1 if train.pools else max(1, round(method.select.share(shape) * federation.n))
    reached, trained = (federation.n if who == "everyone" else m for who in (method.receives, method.trains))
    steps = int(batches.number(sizes, train.batch, train.steps, train.epochs).max()) * train.batches_per_step
    planned = steps * (min(train.batch, int(sizes.max())) + 1) * PLANNED
    x = federation.x
    copied = x.nbytes * 2 if x.is_floating_point() and x.dtype != DTYPES[experiment.dtype] else 0
    return memory.Size(model, 0, federation.n, m, reached, trained, scored, planned=planned, copied=copied)


def no_loss(model: Model, batch: Batch) -> Tensor:
    """Stand for the loss of a network that is not built yet."""
    raise TypeError("the network is not built yet")


def check_task(experiment: Experiment, federation: Federation) -> None:
    """Refuse what needs classes where the targets are numbers."""
    numbers, method = federation.y.is_floating_point(), experiment.method
    same = numbers == (federation.task == "regress")
    require(same, 'A federation with numbers as targets has task="regress", and only such a one; set it.')
    if not numbers:
        return
    part = next((p for p in (method.select, method.train, method.keep, method.collaborate) if p.needs.classes), None)
    name = type(part).__name__
    require(part is None, f"{name} of '{method.name}' needs classes, and the targets here are numbers; choose another.")
    weighted = experiment.class_weights is not None
    require(not weighted, "The targets are numbers, so there are no classes to weigh; leave --class-weights out.")


def check_simulated(experiment: Experiment) -> None:
    """Refuse what a site that Flower simulates cannot do."""
    engine_called(experiment.engine)
    name = experiment.method.name
    require(
        not experiment.method.train.pools, f"{name} puts samples together, and each node has its own; leave it out."
    )
    require(experiment.device == "cpu", "With --engine flower clients train on the CPU; leave --device out.")


def check_layers(method: Method, names: list[str]) -> None:
    """Refuse a network of one layer where a part treats its head and its body differently."""
    part = next((p for p in (method.select, method.train, method.keep, method.collaborate) if p.needs.layers), None)
    sentence = f"{type(part).__name__} of '{method.name}' needs a network with a body and a head, and this one has"
    require(part is None or len(layers(names)) > 1, f"{sentence} one layer; choose one with hidden layers, as dnn:100.")


def built(
    experiment: Experiment, federation: Federation, setup: Setup, scratch: Path | None, warn: Callable[[str], None]
) -> Engine:
    """Build the engine that an experiment names."""
    kind: Callable[..., Engine] = engine_called(experiment.engine)
    more: dict[str, Any] = {"warn": warn} if experiment.engine in ACTORS else {}
    if experiment.engine == "ray":
        more |= {"actors": experiment.actors, "address": experiment.ray_address}
    return kind(
        federation,
        setup.network,
        experiment.method.train,
        experiment.seed,
        own=experiment.method.collaborate.gives.own_model,
        chunk=setup.chunk,
        dtype=DTYPES[experiment.dtype],
        device=experiment.device,
        budget=setup.memory,
        scratch=scratch,
        balanced=experiment.class_weights == "balanced",
        cores=setup.threads,
        guard=None if experiment.privacy is None else Guard(experiment.privacy, str(experiment.seed).encode()),
        **more,
    )


@contextmanager
def engine_of(
    experiment: Experiment,
    federation: Federation,
    setup: Setup,
    scratch: Path | None = None,
    warn: Callable[[str], None] = print,
    build: Build | None = None,
) -> Iterator[Engine]:
    """Build the engine of an experiment, on the cores that were chosen, and close it when the block ends.

    `scratch` is a folder for private models that do not fit into memory. `warn` gets what the user should read. `build`
    builds another engine than the one that the experiment names.
    """
    if scratch is not None:
        files.make_folder(scratch)
    before = torch.get_num_threads()
    engine = built(experiment, federation, setup, scratch, warn) if build is None else build(experiment, setup)
    torch.set_num_threads(1)  # cores train whole clients (engines/team.py): a product that is shared out may differ
    try:
        yield engine
    finally:
        torch.set_num_threads(before)
        engine.close()


@contextmanager
def actors_for(experiments: Sequence[Experiment]) -> Iterator[None]:
    """Let the actors of these experiments, where they have any, wait for the next one until the block ends."""
    with kept() if any(one.engine in ACTORS for one in experiments) else nullcontext():
        yield


def on_this_machine(experiment: Experiment) -> Experiment:
    """Return the experiment without a cluster: what was trained by actors is looked at by the stacked engine."""
    here = replace(experiment, engine="stacked", actors=None, ray_address=None)
    return here if experiment.engine in ACTORS else experiment


def default_threads() -> int:
    """Return how many cores a run takes: as many as torch would, which is the machine's cores or OMP_NUM_THREADS.

    Rounds that are over too soon to be shared are trained by one core all the same (engines/team.py).
    """
    return torch.get_num_threads()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
