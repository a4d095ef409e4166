"""The vocabulary, and the four parts every method is made of. Read this first, then `round.py`.

    select       who takes part this round?
    train        what does a client do with what it receives?
    keep         whose update counts?
    collaborate  what does each client get back?

A part is a frozen dataclass whose fields are its paper's hyper-parameters. It stores nothing on itself: the server
holds one *slot* (a nested dictionary of tensors) for each of select, keep and collaborate, hands it in and takes it
back. What a client keeps to itself is in private slots that belong to the engine; a server part sees only what a client
sends.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import PurePath
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import BadInput, require

NEIGHBOUR = 1e-3  # the weight from which another client counts as a neighbour
KINDS = ("post", "global", "recv", "test")  # of accuracy: of which model on whose samples, as `round.scores` says

Slot = dict[str, Any]  # nested dictionaries of tensors: what a checkpoint can hold exactly


@dataclass(frozen=True)
class Task:
    """What the server knows of the problem."""

    n: int
    sizes: Tensor  # (n,) training samples of each client
    rounds: int
    model: Model  # the initial model, common to all
    loss: Callable[[Model, Batch], Tensor]
    validation: Batch | None = None  # the server's own samples, if it has any
    logits: Callable[[Model, Batch], Tensor] | None = None
    classes: int = 0
    shape: tuple[int, ...] = ()  # of one sample as the network can differentiate it: tokens count as embedded
    irrelevant: Tensor | None = None  # (n,) bool: the truth, only in a method whose keep asks for it (`Keep.told`)


@dataclass(frozen=True)
class Sent:
    """What goes down: `shared` is the same for all, `own` has one row an id."""

    ids: Tensor  # (m,) ascending
    shared: Message = field(default_factory=dict)
    own: Message = field(default_factory=dict)  # stacked

    def to(self, ids: Tensor) -> Message:
        """The message of each of these clients, stacked; they must be among `self.ids`."""
        at = torch.searchsorted(self.ids, ids)
        shared = tree.each(lambda model: tree.repeated(model, len(ids)), self.shared)
        return shared | tree.each(lambda model: tree.rows(model, at), self.own)


@dataclass(frozen=True)
class Reply:
    """What comes up, sorted by client. Fewer replies than selected is normal."""

    ids: Tensor  # (k,) ascending
    upload: Message  # stacked
    report: dict[str, Tensor]  # size, steps, reach (`Train.reach`), rate, and what `Select.asks` for; (k,) each
    broken: tuple[int, ...] = ()  # clients whose training gave something not finite; they keep what they had

    def only(self, mask: Tensor) -> Reply:
        if mask.dtype == torch.bool and mask.all():
            return self  # nothing to copy
        upload = tree.each(lambda model: tree.rows(model, mask), self.upload)
        return Reply(self.ids[mask], upload, {name: value[mask] for name, value in self.report.items()}, self.broken)


@dataclass(frozen=True)
class Kin:
    """Who learns from whom: for each component the weight of every source in every client's mixture."""

    ids: Tensor  # (m,)
    sources: Tensor  # (s,) ascending, the ids among them
    weights: dict[str, Tensor]  # component -> (m, s)
    numbers: dict[str, float] = field(default_factory=dict)

    def log(self) -> dict[str, float]:
        """Means over clients and components: the weight of a client's own model, and how many others count."""
        own = torch.searchsorted(self.sources, self.ids)
        every = torch.stack(list(self.weights.values()))  # (L, m, s)
        mine = every[:, torch.arange(len(self.ids)), own]  # (L, m)
        others = (every > NEIGHBOUR).sum(2) - (mine > NEIGHBOUR).long()
        return {"self_weight": float(mine.mean()), "neighbours": float(others.double().mean())} | self.numbers


@dataclass(frozen=True)
class Work:
    """What one client did in a round, as 0-d tensors."""

    size: Tensor
    steps: Tensor
    rate: Tensor


class Objective(Protocol):
    """f_i of the papers: the mean loss of a model on a batch, and its gradient; and the network's outputs."""

    def logits(self, model: Model, batch: Batch) -> Tensor: ...

    def loss(self, model: Model, batch: Batch) -> Tensor: ...

    def grad(self, model: Model, batch: Batch) -> Model: ...


class Part:
    """Anything a method is made of. Classes outside fedkin are known by 'module:Class'."""

    known: ClassVar[dict[str, type[Part]]] = {}

    def __init_subclass__(cls) -> None:
        Part.known[cls.label()] = cls
        own = cls.__dict__.get("__post_init__")
        if own is not None:  # the numbers of a part are checked before what its own sentences say of them

            def checked(self: Part) -> None:
                plausible(self)
                own(self)

            cls.__post_init__ = checked  # type: ignore[attr-defined]

    @classmethod
    def label(cls) -> str:
        return cls.__name__ if cls.__module__.split(".")[0] == "fedkin" else f"{cls.__module__}:{cls.__qualname__}"

    def values(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def plausible(part: Part) -> None:
    """Every field that is to be a number is one, and finite; whole where it counts something."""
    hints = get_type_hints(type(part))
    for name, value in part.values().items():
        hint = hints[name]
        kinds = set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
        if not kinds & {int, float} or (value is None and type(None) in kinds) or isinstance(value, Part):
            continue
        wanted = "a finite number" if float in kinds else "a whole number"
        require(fits(value, float in kinds), f"{type(part).__name__}.{name} must be {wanted}, not {value!r}.")


def fits(value: Any, broken: bool) -> bool:
    """Whether this is a finite number, and a whole one unless it may be `broken`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not isfinite(value):
        return False
    return broken or float(value).is_integer()


class Select(Part):
    """Who takes part this round?"""

    asks: ClassVar[tuple[str, ...]] = ()  # reports it needs of the clients, e.g. "loss"
    needs_model: ClassVar[bool] = False  # True: works only with one common model
    surveys: ClassVar[bool] = False  # True: every client reports once, before round 1
    learns: ClassVar[bool] = False  # True: lives by what comes back
    extends: ClassVar[bool] = True  # False where the schedule depends on the number of rounds

    def init(self, task: Task) -> Slot:
        return {}

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        """The ids of this round, ascending."""
        raise TypeError(f"{type(self).__name__} does not say who takes part")

    def share(self, task: Task) -> float:
        """About which share of the clients takes part in a round; only the cost of a run is estimated by it."""
        return 1.0

    def observe(
        self,
        slot: Slot,
        task: Task,
        sent: Sent,
        reply: Reply,
        kept: Tensor,
        after: Model | None,
        gen: torch.Generator,
    ) -> Slot:
        """Learn from what came back; `after` is the new common model where there is one."""
        return slot

    def log(self, slot: Slot) -> dict[str, float]:
        """Cheap numbers for the record of an evaluated round."""
        return {}

    def cautions(self, task: Task) -> list[str]:
        """What a user should know before a run, a sentence each."""
        return []

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        """What the part thinks of every client, by name, for the pictures; nan where it does not know one."""  # (n,)
        return {}


@dataclass(frozen=True)
class Descent:
    """A step that is affine in the gradient, declared so that an engine may fuse it:

    v <- momentum v + grad(model) + decay model + pull (model - towards) + sum(plus) - sum(minus)
    model <- model - rate v

    All names are those of models in the carry; the velocity of `model` is carried as 'velocity of <model>'.
    """

    model: str = "model"
    towards: str | None = None
    pull: float = 0.0
    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    momentum: float = 0.0
    decay: float = 0.0
    speed: float = 1.0  # times the round's rate
    batch: int = 0  # which of a step's batches

    def terms(self) -> dict[str, float]:
        """The factor with which each model of the carry stands beside the gradient in v."""
        found: dict[str, float] = {}
        pulled = [(self.model, self.pull), (self.towards, -self.pull)] if self.towards is not None else []
        beside = [*((name, 1.0) for name in self.plus), *((name, -1.0) for name in self.minus)]
        for name, factor in [(self.model, self.decay), *pulled, *beside]:
            found[name] = found.get(name, 0.0) + factor
        return {name: factor for name, factor in found.items() if factor}

    def begin(self, carry: Message) -> Message:
        """The carry with this descent's velocity at rest."""
        return carry | {f"velocity of {self.model}": tree.zeros(carry[self.model])} if self.momentum else carry

    def step(self, carry: Message, batch: Batch, f: Objective, rate: float) -> Message:
        model = carry[self.model]
        v = f.grad(model, batch)
        if self.decay:
            v = tree.added(v, model, self.decay)
        if self.towards is not None and self.pull:
            v = tree.added(v, tree.update(carry[self.towards], model), self.pull)
        for name in self.plus:
            v = tree.added(v, carry[name])
        for name in self.minus:
            v = tree.added(v, carry[name], -1.0)
        result = dict(carry)
        if self.momentum:
            v = tree.added(v, carry[f"velocity of {self.model}"], self.momentum)
            result[f"velocity of {self.model}"] = v
        result[self.model] = tree.added(model, v, -rate * self.speed)
        return result


class Train(Part):
    """What does a client do with what it receives? Everything here is for ONE client and pure; engines lift it to many.

    A part that only declares `descents` has its `step` for free, and engines may fuse it. A part whose own `step` uses
    nothing but arithmetic between tensors of one name, and `f.grad`, sets `elementwise`: it then means the same on
    stacked models, and the stacked engine calls it so.
    """

    eta: float
    steps: int | None  # mini-batch steps a round ...
    epochs: int | None  # ... or passes over the client's data
    batch: int
    sampler: str
    elementwise: ClassVar[bool] = True
    batches_per_step: ClassVar[int] = 1
    draws: ClassVar[int] = 0  # uniform numbers a step needs, handed in as batch["draws"]
    picks: ClassVar[str | None] = (
        None  # a prepared model of which a random row comes with each batch, as "picked <name>"
    )
    picks_own: ClassVar[bool] = True  # whether that row may be one the client prepared itself
    shared: ClassVar[str] = "model"  # the private model a client shows when asked for its current one
    also: ClassVar[dict[str, str]] = {}  # further private models to score: 'post-<name>' -> slot

    def rate(self, round: int) -> float:
        return self.eta

    def reach(self, steps: Tensor) -> Tensor:
        """How many plain gradient steps so many steps of this part are worth, under a constant gradient."""
        return steps

    def alone(self) -> dict[str, Any]:
        """The fields of plain SGD with which a client that trains alone does as much, at the same rate."""
        names = ("eta", "steps", "epochs", "batch", "momentum", "weight_decay", "rate_decay", "gamma", "sampler")
        return {name: value for name, value in self.values().items() if name in names}

    def slots(self, model: Model, own: bool) -> Message:
        """The private models of a client before round 1; `own`: clients hold a model of their own between rounds."""
        return {"model": model} if own else {}

    def prepare(self, x: Tensor, y: Tensor, classes: int) -> Message | None:
        """What a client sends once, before round 1, as rows; every client then finds the rows of all in what it is
        sent."""
        return None

    def descents(self) -> tuple[Descent, ...]:
        return ()

    def begin(self, sent: Message | None, mine: Message) -> Message:
        """The carry of a round: named models. `sent` is None for a client that trains without being sent anything."""
        raise TypeError(f"{type(self).__name__} does not say where a client starts")

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        for descent in self.descents():
            carry = descent.step(carry, batches[descent.batch], f, rate)
        return carry

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        """(private slots, upload)."""
        raise TypeError(f"{type(self).__name__} does not say what a client keeps and sends")

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        """The model this client is judged by; `batch` is one of its *training* batches."""
        return mine["model"]

    def predicted(self, judged: Model, batch: Batch, logits: Callable[[Model, Batch], Tensor]) -> Tensor:
        """What the judged model says of a batch: its logits, unless a client is judged by more than one network."""
        return logits(judged, batch)


class Keep(Part):
    """Whose update counts?"""

    judges: ClassVar[bool] = True  # False: every update counts
    told: ClassVar[bool] = False  # True: an oracle, which is told who is irrelevant

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        return {}

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        """How far each reply counts, (k,) in [0, 1]."""
        raise TypeError(f"{type(self).__name__} does not say whose update counts")

    def log(self, slot: Slot) -> dict[str, float]:
        return {}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        """As `Select.marks`. 'divergence', where there is one, is larger for clients that seem less relevant."""
        return {}


class Collaborate(Part):
    """What does each client get back?

    One-model parts mix after training what was uploaded and kept. Model-per-client parts (`own`) mix before training
    what the selected clients hold now (`mixes_before`).
    """

    own: ClassVar[bool] = False  # each client holds a model of its own between rounds
    mixes_before: ClassVar[bool] = False
    listens: ClassVar[bool] = True  # False: nothing is ever exchanged

    def init(self, task: Task) -> Slot:
        return {}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        raise TypeError(f"{type(self).__name__} does not say what is sent")

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        return slot

    def model(self, slot: Slot) -> Model | None:
        """The one model, where there is one."""
        return None

    def kin(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> Kin | None:
        """Who learns from whom in what is about to be sent to these clients, where each gets a model of its own."""
        return None

    def cautions(self, task: Task, share: float) -> list[str]:
        """What a user should know before a run with this share of the clients in a round, a sentence each."""
        return []

    def log(self, slot: Slot) -> dict[str, float]:
        return {}


@dataclass(frozen=True)
class Method(Part):
    """Four parts, and who trains and receives. `trains="everyone"`: also clients that were not selected train."""

    name: str
    select: Select
    train: Train
    keep: Keep
    collaborate: Collaborate
    trains: Literal["selected", "everyone"] = "selected"
    receives: Literal["selected", "everyone"] = "selected"

    def __post_init__(self) -> None:
        plain = isinstance(self.name, str) and PurePath(self.name).name == self.name != ""
        require(plain, f"A method's name is the name of its folder too, and '{self.name}' cannot be.")
        for part, kind in (("select", Select), ("train", Train), ("keep", Keep), ("collaborate", Collaborate)):
            if not isinstance(getattr(self, part), kind):
                found = type(getattr(self, part)).__name__
                raise BadInput(f"Method '{self.name}' needs a {kind.__name__} part as {part}, not {found}.")
        for verb in ("trains", "receives"):
            allowed = getattr(self, verb) in ("selected", "everyone")
            require(allowed, f"{verb} must be 'selected' or 'everyone', not '{getattr(self, verb)}'.")
        require(
            self.receives == "selected" or self.trains == "everyone",
            f"In '{self.name}' everyone receives but only the selected train; set trains='everyone'.",
        )
        require(
            self.collaborate.own or self.trains == "selected" or self.receives == "everyone",
            f"In '{self.name}' everyone trains but {type(self.collaborate).__name__} leaves the others no model to "
            "train; set receives='everyone' or trains='selected'.",
        )
        require(
            not (self.select.needs_model and self.collaborate.own),
            f"In '{self.name}' {type(self.select).__name__} needs one common model, and "
            f"{type(self.collaborate).__name__} has none; choose another selection.",
        )
        require(
            self.collaborate.listens or not (self.select.learns or self.keep.judges),
            f"In '{self.name}' nothing is ever sent, so neither {type(self.select).__name__} nor "
            f"{type(self.keep).__name__} can learn anything; choose a base whose clients exchange something.",
        )
        require(
            self.collaborate.own or getattr(self.train, "start", "sent") == "sent",
            f"In '{self.name}' clients cannot start from their own model, because "
            f"{type(self.collaborate).__name__} gives them none; set train.start=sent.",
        )

    @property
    def finetunes(self) -> bool:
        """Clients keep no model of their own, so they are judged by the common one after one local pass."""
        return not self.collaborate.own and type(self.train).personal_model is Train.personal_model

    def kinds(self, common: bool) -> tuple[str, ...]:
        """Of `KINDS`, what this method can be scored by; `common`: there is a common test set."""
        one = type(self.collaborate).model is not Collaborate.model
        has = {"post": True, "global": one, "recv": self.collaborate.mixes_before, "test": one and common}
        return tuple(kind for kind in KINDS if has[kind])


def built(base: Method | None) -> None:
    """A base method is a method, not its name or the function that makes it."""
    require(
        base is None or isinstance(base, Method), f"A base is a method, as fk.methods.fedprox() gives, not {base!r}."
    )
