"""The four parts of which every method is made. Read this file first, then `messages.py`, then `round.py`.

    select       who takes part this round?
    train        what does a client do with what it receives?
    keep         whose update counts?
    collaborate  what does each client get back?

A part is a frozen dataclass whose fields are the hyper-parameters of its paper. A part stores nothing on itself. The
server holds one *slot* (a nested dictionary of tensors) for each of select, keep and collaborate; it hands the slot to
the part and stores the slot that the part returns. What a client keeps for itself is in its *private models*, which
belong to the engine: a server part sees only what a client sends. Every `gen` is a random generator that is meant for
this one call; a part draws from no other. `Train`, which runs at the client, has a file of its own, `training.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from fedkin.contract import Gives, Needs, Part, redefines
from fedkin.errors import BadInput, require, shown
from fedkin.fields import Rule, names_a_folder
from fedkin.messages import Model, Reply, Sent, Slot, Task
from fedkin.training import Train

__all__ = ["Collaborate", "Gives", "Keep", "Method", "Needs", "Part", "Select", "Train", "Who", "redefines"]

Who = Annotated[
    Literal["selected", "everyone"],
    Rule(lambda v: v in ("selected", "everyone"), "{name} must be 'selected' or 'everyone', not '{value}'."),
]


class Select(Part):
    """Who takes part this round?"""

    verb = "select"

    def init(self, task: Task) -> Slot:
        """The slot before round 1."""
        return {}

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        """Choose the clients of a round. Called first in every round; rounds count from 1.

        Returns the ids of the chosen clients, ascending, and the new slot.
        """
        raise TypeError(f"{type(self).__name__} does not say who takes part")

    def share(self, task: Task) -> float:
        """About which share of the clients takes part in a round. Only the cost of a run is estimated by it."""
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
        """Learn from what came back. Called last in every round in which somebody replied.

        sent, reply: the messages of this round. kept: the weight of each reply, (k,), as `Keep.__call__` gave it.
        after: the new common model, or None if the method has none. After the survey before round 1 (`Needs.survey`)
        the reply has reports but no uploads. Returns the new slot.
        """
        return slot

    def log(self, slot: Slot) -> dict[str, float]:
        """Cheap numbers for the record. Called after every scored round."""
        return {}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        """The scores of all clients for the pictures, by name, (n,) each; nan for a client without a score."""
        return {}

    def cautions(self, task: Task) -> list[str]:
        """What a user should know before a run, one sentence each. Called once, before round 1."""
        return []


class Keep(Part):
    """Whose update counts?"""

    verb = "keep"

    @property
    def needs(self) -> Needs:
        return Needs(replies=True, start=True)

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        """The slot before round 1."""
        return {}

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        """Weigh the replies. Called after training, in every round in which somebody replied.

        Returns how far each reply counts, (k,) in [0, 1], and the new slot.
        """
        raise TypeError(f"{type(self).__name__} does not say whose update counts")

    def log(self, slot: Slot) -> dict[str, float]:
        """As `Select.log`."""
        return {}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        """As `Select.marks`. A mark called 'divergence' is larger for clients that seem less relevant."""
        return {}


class Collaborate(Part):
    """What does each client get back?

    A part with one common model mixes after training what was uploaded and kept. A part with a model for each client
    (`Gives.own_model`) mixes before training what the selected clients hold now (`Needs.current`).
    """

    verb = "collaborate"

    @property
    def gives(self) -> Gives:
        """What this part gives to the other parts. There is a common model if `model` is redefined."""
        return Gives(common_model=redefines(self, Collaborate.model))

    def init(self, task: Task) -> Slot:
        """The slot before round 1."""
        return {}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        """Make what these clients are sent. Called before training in every round, and by `send_to_judge`.

        ids: ascending. current: the models that these clients hold now, stacked, if `Needs.current`, else None.
        Returns what is sent, with `Sent.kin` where each client gets a mixture of its own, and the new slot.
        """
        raise TypeError(f"{type(self).__name__} does not say what is sent")

    def send_to_judge(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> Sent:
        """Make what `Train.personal_model` finds in `sent` when these clients, any of all, are scored. A part redefines
        it where clients need less than to train, or where `send` depends on who else is sent something.
        """
        return self.send(slot, task, ids, current)[0]

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        """Take in the replies, each weighted by `kept` (k,). Called in every round in which somebody replied."""
        return slot

    def model(self, slot: Slot) -> Model | None:
        """The common model, or None if there is none."""
        return None

    def cautions(self, task: Task, share: float) -> list[str]:
        """What a user should know before a run with this share of the clients in a round, one sentence each."""
        return []

    def log(self, slot: Slot) -> dict[str, float]:
        """As `Select.log`."""
        return {}


@dataclass(frozen=True)
class Method(Part):
    """Four parts, and who trains and receives. `trains="everyone"`: clients that were not selected train as well."""

    name: str  # what the method is called, and its folder
    select: Select  # who takes part this round?
    train: Train  # what does a client do with what it receives?
    keep: Keep  # whose update counts?
    collaborate: Collaborate  # what does each client get back?
    trains: Who = "selected"  # who trains in a round: the selected clients, or everyone
    receives: Who = "selected"  # who is sent something: the selected clients, or everyone

    def __post_init__(self) -> None:
        sentence = f"A method's name is the name of its folder too, and {shown(self.name)} cannot be."
        require(names_a_folder(self.name), sentence)
        for kind in (Select, Train, Keep, Collaborate):
            if not isinstance(part := getattr(self, kind.verb), kind):
                found = type(part).__name__
                raise BadInput(f"Method '{self.name}' needs a {kind.__name__} part as {kind.verb}, not {found}.")
        super().__post_init__()

    def check(self) -> None:
        """Refuse parts that do not fit together."""
        for part in (self.select, self.train, self.keep, self.collaborate):
            sentence = f"{type(part).__name__} is not a dataclass; write @dataclass(frozen=True) above the class."
            require(is_dataclass(part), sentence)
        needs, gives = self.needs, self.collaborate.gives
        start = gives.start and not self.train.at_hand  # whether clients start where they are told to
        select, keep, collaborate = (type(part).__name__ for part in (self.select, self.keep, self.collaborate))
        require(
            self.receives == "selected" or self.trains == "everyone",
            f"In '{self.name}' everyone receives but only the selected train; set trains='everyone'.",
        )
        require(
            gives.own_model or self.trains == "selected" or self.receives == "everyone",
            f"In '{self.name}' everyone trains but {collaborate} leaves the others no model to "
            "train; set receives='everyone' or trains='selected'.",
        )
        require(
            start or self.trains == "selected" or self.receives == "everyone",
            f"In '{self.name}' clients make the model they start from of those they are sent, so that nobody trains "
            "who is sent none; set receives='everyone' or trains='selected'.",
        )
        one = gives.common_model and not gives.own_model
        require(
            not needs.common_model or self.train.needs.common_model or one,
            f"In '{self.name}' {select} needs one common model, and {collaborate} has none; choose another selection.",
        )
        require(
            not self.train.needs.common_model or one,
            f"In '{self.name}' {type(self.train).__name__} trains one common model, and {collaborate} has none; set "
            "collaborate=Mean.",
        )
        self.check_models()
        require(
            gives.replies or not needs.replies,
            f"In '{self.name}' nothing is ever sent, so neither {select} nor "
            f"{keep} can learn anything; choose a base whose clients exchange something.",
        )
        require(
            gives.whole_model or not needs.whole_model,
            f"In '{self.name}' only some layers are sent, and {select} or {keep} needs whole models; choose others.",
        )
        require(
            start or not needs.start,
            f"In '{self.name}' clients choose where they start, so that neither {select} nor {keep} can tell how far "
            "they went; choose others.",
        )
        require(
            gives.own_model or not needs.own_model,
            f"In '{self.name}' clients cannot start from their own model, because "
            f"{collaborate} gives them none; set train.start=sent.",
        )

    def check_models(self) -> None:
        """Refuse parts of which one hands over a model that the other does not know."""
        needed, given = self.train.needs.models, self.collaborate.gives.models
        train, collaborate = type(self.train).__name__, type(self.collaborate).__name__
        lacking = [name for name in needed if name not in given]
        sentence = f"In '{self.name}' {train} needs a model called '{''.join(lacking[:1])}' to be sent too, which"
        require(not lacking, f"{sentence} {collaborate} does not; choose a collaborate part that goes with {train}.")
        unknown = [name for name in given if name not in needed]
        sentence = f"In '{self.name}' {collaborate} takes a model called '{''.join(unknown[:1])}' from uploads, which"
        require(not unknown, f"{sentence} {train} does not send; choose a train part that goes with {collaborate}.")

    @property
    def needs(self) -> Needs:
        """What the four parts need together."""
        return self.select.needs | self.train.needs | self.keep.needs | self.collaborate.needs

    def cautions(self, task: Task) -> list[str]:
        """What a user should know before a run, one sentence each."""
        said = [*self.select.cautions(task), *self.collaborate.cautions(task, self.select.share(task))]
        return [f"{self.name}: {sentence}" for sentence in said]

    @property
    def judged(self) -> str:
        """The kind of score that says what the method is good for: `post`, each client's own model, unless that model
        never sees the others, or samples are pooled; then `global`, the common model."""
        by_common = self.train.personal_is_local or self.train.pools
        return "global" if by_common and self.collaborate.gives.common_model else "post"

    @property
    def finetunes(self) -> bool:
        """Whether clients hold no model of their own, so that they are scored by the common model after one local
        pass."""
        return not self.collaborate.gives.own_model and not self.train.has_personal_model
