"""What a run leaves behind when it ends: the models by which its clients are judged, and what these say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin import evaluate
from fedkin.core import tree
from fedkin.core.store import WHOLE
from fedkin.core.tree import Model
from fedkin.data.federation import Federation
from fedkin.engines.engine import Engine
from fedkin.evaluate import blocks, personal_models
from fedkin.messages import Task
from fedkin.parts import Method
from fedkin.round import State

PREDICTED = 2_000_000  # numbers up to which the predictions for the test samples are kept
STORED = 4_000_000  # numbers up to which fine-tuned models are stored when a run ends


@dataclass(frozen=True)
class Ending:
    """A run after its last round. `sample` are the clients that were scored; None: all."""

    method: Method
    task: Task
    engine: Engine
    federation: Federation
    state: State
    kinds: tuple[str, ...]
    sample: Tensor | None

    @property
    def in_pieces(self) -> bool:
        """Whether the personal models of all clients are too large to be held at once, and are stored in pieces."""
        large = self.task.n * tree.size([self.task.model])[1] > WHOLE
        return large and not self.method.finetunes and not self.federation.elsewhere

    def models(self) -> dict[str, Model]:
        """Return the common model, and the model by which each client is judged.

        Models that clients do not hold themselves, the common model after a local pass, are left out where they are
        many numbers; `judged.again` makes them when they are asked for. Models that are stored in pieces are left out.
        Where the samples lie elsewhere, so do the personal models.
        """
        common = self.method.collaborate.model(self.state.collaborate)
        final = {} if common is None else {"global": common}
        numbers = self.task.n * tree.size([self.task.model])[0]
        stored = "post" in self.kinds and numbers <= STORED if self.method.finetunes else not self.in_pieces
        if stored and not self.federation.elsewhere:
            final["personal"] = tree.joined(list(self.personal()))
        return final

    def personal(self) -> Iterator[Model]:
        """Yield the models by which clients are judged, stacked, in blocks of clients."""
        for ids in blocks(self.task, size=self.method.train.personal_size):
            yield personal_models(self.method, self.task, self.engine, self.state, ids)

    def pieces(self) -> Iterator[dict[str, Tensor]]:
        """Yield what `personal` gives as tensors of a file."""
        for models in self.personal():
            yield tree.flat({"personal": models})

    def predictions(self, models: dict[str, Model]) -> dict[str, Tensor] | None:
        """Return what the final models say of the test samples of all clients that were scored; None where that is too
        much to keep."""
        test = self.federation.test
        who = torch.arange(self.task.n) if self.sample is None else self.sample
        client = who.repeat_interleave(test.sizes[who])
        if self.federation.elsewhere or not 0 < len(client) * self.federation.classes <= PREDICTED:
            return None
        personal = models.get("personal")
        asked = self.method, self.task, self.engine, self.state, self.kinds, personal, self.sample
        said = evaluate.predictions(*asked)
        rows = test.rows if self.sample is None else torch.cat([test[i] for i in who.tolist()])
        return {"rows": rows, "client": client, "y": self.federation.y[rows]} | said if said else None
