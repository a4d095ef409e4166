"""What every engine does. An engine holds the clients: it lets them train, and it scores models on their samples.

`round.py`, `evaluate.py` and a run ask an engine for nothing but what stands in `Engine`. Clients are numbered from 0
to n - 1; `ids` are ascending client numbers. A stacked model has one row for each of the `ids` it comes with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from fedkin.core.rows import Rows, Sealed
from fedkin.messages import Message, Model, Reply, Sent, Tell
from fedkin.parts import Train

Split = Literal["train", "test", "validation"]  # the parts of a client's own samples

Current = Callable[[Tensor, str], Model]  # (clients, slot) -> the models that they show, as `Engine.current` gives them


@dataclass(frozen=True)
class Score:
    """How many of each client's samples were classified rightly, and their summed loss; and all metrics by name.

    Where the targets are numbers none is right. There are no metrics where a model was scored on training samples.
    """

    correct: Tensor  # (m,) int64
    loss: Tensor  # (m,) float64, summed over samples
    count: Tensor  # (m,) int64
    values: dict[str, Tensor] = field(default_factory=dict)  # (m,) float64 each; nan where a metric is not defined

    @property
    def accuracy(self) -> Tensor:
        """The accuracy of each client; nan for a client without samples."""  # (m,) float64
        return self.correct.double() / self.count.double()

    @property
    def mean_loss(self) -> Tensor:
        """The mean loss of each client's samples; 0 for a client without samples."""  # (m,) float64
        return self.loss / self.count.clamp(min=1)


class Order(NamedTuple):
    """The training of a round: what `Engine.train` is given."""

    part: Train
    sent: Sent
    ids: Tensor  # (m,) those who train
    round: int
    uploads: Tensor  # those of them who send something back
    reports: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """Which model of each client is scored, and on which splits. It says where the model is, and holds none.

    'held' is the model that a client is sent or, if none, its private slot; 'personal' is the model that the train part
    says; 'tuned' is the model that it is sent after one local pass of this round.
    """

    of: Literal["held", "personal", "tuned"]
    sent: Sent
    splits: tuple[Split, ...]
    round: int = 0
    slot: str = "model"
    stored: bool = False  # whether each client writes this model down, at its own place


class Engine(Protocol):
    """Holds the clients, their samples and their private slots."""

    splits: tuple[Split, ...]  # which splits the clients have samples in
    has_common_test: bool  # whether there is a test set that belongs to no client
    irrelevant: Tensor | None  # (n,) bool: which clients are irrelevant, where that is known; for the record only
    tell: Tell  # whom the engine tells how far it is while clients train and are scored; it is told often

    def prepare(self, part: Train) -> tuple[int, int]:
        """Let every client send what `part.prepare` says, once, before round 1; where samples are pooled, its samples.

        Returns how many numbers, and how many bytes, all clients sent together.
        """
        ...

    def survey(self, part: Train, sent: Sent, ids: Tensor, reports: tuple[str, ...]) -> Reply:
        """Ask these clients for reports on what they are sent. Nobody trains; the reply has no upload."""
        ...

    def current(self, ids: Tensor, slot: str) -> Model:
        """Return the models that these clients show now: their private slot of this name, stacked."""
        ...

    def train(
        self,
        part: Train,
        sent: Sent,
        ids: Tensor,
        round: int,
        uploads: Tensor | None = None,
        reports: tuple[str, ...] = (),
        keep: bool = True,
    ) -> Reply:
        """Let these clients train for one round, from what they were sent or, if nothing, from what they hold.

        The reply has the uploads of the clients in `uploads` (by default all of `ids`), sorted by client, with the
        numbers named in `reports`. With `keep=False` the clients' private slots stay as they were.
        """
        ...

    def train_together(
        self,
        part: Train,
        sent: Sent,
        ids: Tensor,
        round: int,
        uploads: Tensor | None = None,
        reports: tuple[str, ...] = (),
    ) -> Reply:
        """Train one model for one round on the samples of all these clients, as `part.in_pool` says.

        The clients' private slots stay as they were. Every client of `uploads` replies with that one model.
        """
        ...

    def personal(self, part: Train, sent: Sent, ids: Tensor, round: int) -> Model:
        """Return the personal models of these clients, stacked, as `part.personal_model` says. Nothing is trained."""
        ...

    def score(self, models: Model, ids: Tensor, split: Split, part: Train | None = None) -> Score:
        """Score each client's own model on its own samples of a split.

        `part` says how a personal model predicts; without it the network's logits decide.
        """
        ...

    def score_one(self, model: Model, split: Split) -> Score:
        """Score one model on every client's samples of a split."""
        ...

    def score_common(self, model: Model) -> Score:
        """Score one model on the common test set; the score has one row."""
        ...

    def gradients(self, models: Model, ids: Tensor) -> Model:
        """Return the gradient of each client's mean loss on all its training samples at its model, stacked."""
        ...

    def outputs(self, models: Model, ids: Tensor, split: Split, part: Train | None = None) -> Tensor:
        """Return what `score` looks at: the outputs of each client's own model for its own samples of a split.

        They are in the order of the split's rows, client after client.
        """  # (R, outputs) float32
        ...

    def outputs_one(self, model: Model, split: Split) -> Tensor:
        """Return what `score_one` looks at: one model's outputs for every client's samples, client after client."""
        ...

    def private(self) -> Message | Rows:
        """Return the private slots of all clients for a checkpoint: stacked or, where they are large, as rows of which
        the checkpoint stores those that changed."""
        ...

    def restore(self, private: Message | Sealed) -> None:
        """Put the private slots of all clients back to what a checkpoint holds: stacked, or rows in files. An engine
        that never gives rows is never handed any."""
        ...

    def clean(self) -> None:
        """Remove scratch files that earlier processes left in this run's folder."""
        ...

    def close(self) -> None:
        """Free what the engine holds."""
        ...


@runtime_checkable
class Far(Protocol):
    """An engine whose clients are far away, so that it asks them for several things in one message."""

    def expect(self, order: Order, looks: Mapping[str, Look]) -> None:
        """Ask for this training, which comes next, together with what is looked at now. `looks` are of the round of
        this training too: what clients hold before they train."""
        ...

    def looked(self, looks: Mapping[str, Look], ids: Tensor) -> dict[str, dict[Split, Score]]:
        """Let these clients score models that stay where they are: by the name of the look, and by split.

        A client that does not answer is as one without samples.
        """
        ...
