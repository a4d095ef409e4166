"""One round of any method, and the loop over rounds. Read `parts.py` first. There is no other loop anywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.rng import generator
from fedkin.core.tree import Message, Model
from fedkin.engines.simulation import Score, Simulation
from fedkin.evaluate import KINDS
from fedkin.messages import Kin, Reply, Sent, Slot, Task
from fedkin.parts import Method

BLOCK = 512  # clients whose judged models are held at once while they are scored, ...
HELD = 2**30  # ... as far as these take no more bytes


@dataclass(frozen=True)
class State:
    """All the server remembers, after `round` rounds."""

    round: int
    select: Slot
    keep: Slot
    collaborate: Slot


@dataclass
class Traffic:
    """Messages that were used: in models (uploads, downloads) and in bytes."""

    uploads: float = 0.0
    downloads: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0

    def up(self, message: Message, like: int) -> None:
        numbers, size = tree.size(message.values())
        self.uploads, self.bytes_up = self.uploads + numbers / like, self.bytes_up + size

    def down(self, sent: Sent, like: int) -> None:
        shared, own = tree.size(sent.shared.values()), tree.size(sent.own.values())
        self.downloads += (shared[0] * len(sent.ids) + own[0]) / like
        self.bytes_down += shared[1] * len(sent.ids) + own[1]


@dataclass
class Log:
    """What happened in a round, for the record."""

    round: int
    selected: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    replied: int = 0
    weights: Tensor = field(default_factory=lambda: torch.zeros(0))  # how far each selected counted; nan: no reply
    dropped: list[int] = field(default_factory=list)  # clients whose training or upload was not finite
    traffic: Traffic = field(default_factory=Traffic)
    seconds: dict[str, float] = field(default_factory=dict)
    received: Model | None = None  # what every client holds before training, on evaluated rounds of per-client methods
    kin: Kin | None = None  # who learned from whom, on those rounds too
    local: Score | None = None  # what was uploaded, on its clients' training samples; on evaluated rounds that ask

    @property
    def kept(self) -> float:
        """How many updates counted."""
        return float(self.weights.nansum())

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + perf_counter() - start


def begun(method: Method, task: Task, seed: int) -> State:
    """The server before round 1."""
    keep = method.keep.init(task, generator(seed, "keep"))
    return State(0, method.select.init(task), keep, method.collaborate.init(task))


def surveyed(method: Method, task: Task, engine: Simulation, state: State) -> tuple[State, Traffic]:
    """Before round 1 every client reports once, where the selection asks for it; and what that costs."""
    traffic = Traffic()
    if not method.needs.survey:
        return state, traffic
    everyone = torch.arange(task.n)
    current = engine.current(everyone, method.train.shared) if method.needs.current else None
    sent, _ = method.collaborate.send(state.collaborate, task, everyone, current)
    reply = engine.survey(method.train, sent, everyone, method.needs.reports)
    gen, kept = generator(engine.seed, "observe"), torch.ones(task.n, dtype=torch.float64)
    select = method.select.observe(state.select, task, sent, reply, kept, None, gen)
    traffic.down(sent, tree.size([task.model])[0])
    return replace(state, select=select), traffic


def play(
    method: Method, task: Task, engine: Simulation, state: State, evaluates: bool = False, losses: bool = False
) -> tuple[State, Log]:
    """One round; if it `evaluates`, with what evaluation needs of it, and `losses` asks for those of the uploads."""
    select, train, keep, collaborate = method.select, method.train, method.keep, method.collaborate
    r, seed, log = state.round + 1, engine.seed, Log(state.round + 1)
    with log.timed("mix_s"):
        ids, sel = select(state.select, task, r, generator(seed, "select", r))
        everyone = torch.arange(task.n)
        receivers = everyone if method.receives == "everyone" else ids
        current = engine.current(receivers, train.shared) if method.needs.current else None
        sent, col = collaborate.send(state.collaborate, task, receivers, current)
        if evaluates and current:
            log.received = overlaid(engine.current(everyone, train.shared), sent)
            log.kin = sent.kin
    with log.timed("train_s"):
        trainers = everyone if method.trains == "everyone" else ids
        uploads = ids if collaborate.gives.replies else ids[:0]
        reply = engine.train(train, sent, trainers, r, uploads, method.needs.reports)
    with log.timed("mix_s"):
        reply, log.dropped = sound(reply)
        log.dropped = sorted({*log.dropped, *reply.broken})
        kp, weights = state.keep, torch.full((len(ids),), torch.nan)
        if len(reply.ids):
            kept, kp = keep(kp, task, sent, reply, r, generator(seed, "keep", r))
            col = collaborate.receive(col, task, sent, reply, kept)
            after = collaborate.model(col)
            sel = select.observe(sel, task, sent, reply, kept, after, generator(seed, "observe", r))
            weights[torch.searchsorted(ids, reply.ids)] = kept.cpu().float()
    log.selected, log.replied, log.weights = ids, len(reply.ids), weights
    if evaluates and losses and "model" in reply.upload:
        with log.timed("evaluate_s"):
            log.local = engine.evaluate(reply.upload["model"], reply.ids, engine.federation.train)
    like = tree.size([task.model])[0]
    log.traffic.up(reply.upload, like)
    log.traffic.down(sent, like)
    return State(r, sel, kp, col), log


def sound(reply: Reply) -> tuple[Reply, list[int]]:
    """The reply without clients that uploaded anything not finite, and who they are: their weight is 0 everywhere."""
    if not len(reply.ids):
        return reply, []
    good = torch.ones(len(reply.ids), dtype=torch.bool)
    for model in reply.upload.values():
        good &= tree.finite(model).cpu()
    return (reply, []) if good.all() else (reply.only(good), reply.ids[~good].tolist())


def overlaid(current: Model, sent: Sent) -> Model:
    """What every client holds just before it trains: the model it was sent, or the one it had."""
    if "model" not in sent.own:
        return current
    return {name: value.index_copy(0, sent.ids, sent.own["model"][name]) for name, value in current.items()}


def scores(
    method: Method,
    task: Task,
    engine: Simulation,
    state: State,
    received: Model | None,
    wanted: Collection[str] = KINDS,
) -> dict[str, Score]:
    """How good the models are now: `recv`, `post`, `global`, on every client's own test samples (and, as
    'kind/validation', on its validation samples), and `test`, the one model on the common test set; of these kinds
    those that are `wanted`."""
    federation = engine.federation
    indices = {"": federation.test}
    if federation.validation is not None:
        indices["/validation"] = federation.validation
    everyone = torch.arange(task.n)
    found: dict[str, Score] = {}
    common = method.collaborate.model(state.collaborate)
    for suffix, index in indices.items():
        if received is not None and "recv" in wanted:
            found["recv" + suffix] = engine.evaluate(received, everyone, index)
        if common is not None and "global" in wanted:
            found["global" + suffix] = engine.evaluate_one(common, index)
    parts: dict[str, list[Score]] = {}
    fits = max(1, min(BLOCK, HELD // tree.size([task.model])[1]))
    for ids in everyone.split(fits) if "post" in wanted else ():
        models = judged(method, task, engine, state, ids)
        for suffix, index in indices.items():
            parts.setdefault("post" + suffix, []).append(engine.evaluate(models, ids, index, method.train))
            for name, slot in method.train.also.items():
                score = engine.evaluate(engine.slots.read(ids)[slot], ids, index)
                parts.setdefault(f"post-{name}{suffix}", []).append(score)
    found |= {kind: joined(scores) for kind, scores in parts.items()}
    if common is not None and federation.common is not None and "test" in wanted:
        hit, cost = engine.evaluate_rows(common, federation.common)
        found["test"] = Score(hit.sum()[None], cost.sum()[None], torch.tensor([len(hit)]))
    return found


def joined(parts: list[Score]) -> Score:
    """The scores of blocks of clients as one."""
    return Score(*(torch.cat([getattr(part, name) for part in parts]) for name in ("correct", "loss", "count")))


def judged(method: Method, task: Task, engine: Simulation, state: State, ids: Tensor) -> Model:
    """The personal models of these clients. Where clients keep none, it is the one model after one local pass: what a
    client gets that takes the model home. Nothing is changed by looking."""
    current = engine.current(ids, method.train.shared) if method.needs.current else None
    if method.finetunes:
        sent, _ = method.collaborate.send(state.collaborate, task, ids, current)
        return engine.train(method.train, sent, ids, state.round + 1, keep=False).upload["model"]
    sent = Sent(ids[:0])
    if not method.collaborate.gives.own_model:
        sent, _ = method.collaborate.send(state.collaborate, task, ids, current)
    return engine.personal(method.train, sent, ids, state.round)


def loop(
    method: Method,
    task: Task,
    engine: Simulation,
    state: State,
    evaluates: Callable[[int], bool],
    heard: Callable[[State, Log, dict[str, Score] | None], bool],
    wanted: Collection[str] = KINDS,
    losses: bool = False,
) -> State:
    """Rounds until `task.rounds`; `heard` is told of each and says whether to go on; `wanted` is what is scored, and
    `losses` asks for those of the uploads too."""
    while state.round < task.rounds:
        scoring = evaluates(state.round + 1)
        state, log = play(method, task, engine, state, scoring, losses)
        found = None
        if scoring:
            with log.timed("evaluate_s"):
                found = scores(method, task, engine, state, log.received, wanted)
            log.received = None
        if not heard(state, log, found):
            break
    return state
