"""FedACS's similarity-thresholded client attention (eqs. 3 and 4). Not the industrial-IoT method of the same name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing, blended, cosines, gram, normalised, sound, spread
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.parts import Kin, Reply, Sent, Slot, Task


@dataclass(frozen=True)
class SimilarityThreshold(Mixing):
    """u_i = sum_j a_ij w_j,  a_ij = s_ij [s_ij > delta and s_ij > 0, or i = j], normalised; s = cosine of whole models.

    delta is the p-quantile, interpolated linearly, of all entries of the similarity matrix, its diagonal included;
    p=None stands for delta = -infinity, every client with a positive cosine (A-A1). A client always counts for itself
    (A-A2). The pool of sources is the selected clients, or everyone seen so far by their last uploads (`pool="all"`,
    A-A7). `similarity="update"` compares w - theta^0 instead of w (A-A8, not the paper). u_i <- (1 - alpha) w_i +
    alpha u_i (A-A5).
    """

    p: float | None = 0.9
    pool: Literal["selected", "all"] = "selected"
    similarity: Literal["model", "update"] = "model"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        require(self.p is None or 0 <= self.p <= 1, f"collaborate.p is a quantile from 0 to 1, or null, not {self.p}.")
        require(self.pool in ("selected", "all"), f"collaborate.pool is 'selected' or 'all', not '{self.pool}'.")
        known = self.similarity in ("model", "update")
        require(known, f"collaborate.similarity is 'model' or 'update', not '{self.similarity}'.")
        require(0 <= self.alpha <= 1, f"collaborate.alpha must be from 0 to 1, not {self.alpha}.")

    def similarities(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None
    ) -> dict[str, Tensor]:
        require(self.similarity == "model" or origin is not None, "Comparing updates needs the model they start from.")
        start = origin if self.similarity == "update" else None
        s = cosines(gram(stacked, list(stacked), start))
        attention = normalised(torch.where(self.mask(s), s, 0.0), kept)  # (4)
        eye = torch.eye(len(s), dtype=attention.dtype, device=attention.device)
        return {"model": (1 - self.alpha) * eye + self.alpha * attention}

    def threshold(self, s: Tensor) -> float:
        """delta: the p-quantile of all entries."""
        return float("-inf") if self.p is None else float(np.quantile(s.cpu().numpy(), self.p))

    def mask(self, s: Tensor) -> Tensor:
        """Who counts for whom; strictly above the threshold, and always oneself."""  # (m, m) bool
        return ((s > self.threshold(s)) & (s > 0)) | torch.eye(len(s), dtype=torch.bool, device=s.device)

    def cautions(self, task: Task, share: float) -> list[str]:
        """Only the diagonal survives once p >= 1 - 1/(m - 1), because the most similar pairs come in twos."""
        m = task.n if self.pool == "all" else round(share * task.n)
        if self.p is None or m < 2 or self.p < 1 - 1 / max(m - 1, 1):
            return []
        return [f"With p={self.p} and {m} clients no two ever exchange anything: this is training alone; lower p."]

    # the pool of everyone seen so far

    def init(self, task: Task) -> Slot:
        slot = super().init(task)
        if self.pool == "selected":
            return slot
        cache = tree.mapped(torch.clone, tree.repeated(task.model, task.n))
        return slot | {"cache": cache, "seen": torch.zeros(task.n, dtype=torch.bool)}

    def pooled(self, slot: Slot, ids: Tensor, current: Model) -> tuple[Tensor, Model]:
        """The sources: everyone seen by their last upload, and the selected as they are now."""
        seen = slot["seen"].index_fill(0, ids, True)
        sources = seen.nonzero().reshape(-1)
        cache = {name: value.index_copy(0, ids, current[name]) for name, value in slot["cache"].items()}
        return sources, tree.rows(cache, sources)

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        if self.pool == "selected":
            return super().send(slot, task, ids, current)
        assert current is not None
        sources, models = self.pooled(slot, ids, current)
        safe, good = sound(models)
        weights = self.similarities(safe, slot["kept"][sources] * good, None, task.model)["model"]
        mine = torch.searchsorted(sources, ids)
        mixed = blended({"model": weights[mine]}, safe, {"model": list(safe)})
        keeps = good[mine]  # a broken model stays as it is, and is nobody's source
        own = tree.mapped(lambda new, old: torch.where(spread(keeps, old), new, old), mixed, current)
        return Sent(ids, own={"model": own}), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        slot = super().receive(slot, task, sent, reply, kept)
        if self.pool == "selected":
            return slot
        uploads = reply.upload["model"]
        cache = {name: value.index_copy(0, reply.ids, uploads[name]) for name, value in slot["cache"].items()}
        return slot | {"cache": cache, "seen": slot["seen"].index_fill(0, reply.ids, True)}

    def kin(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> Kin | None:
        assert current is not None
        sources, models = (ids, current) if self.pool == "selected" else self.pooled(slot, ids, current)
        weights = self.weights(models, slot["kept"][sources], None, task.model)["model"]
        start = task.model if self.similarity == "update" else None
        delta = self.threshold(cosines(gram(models, list(models), start)))
        numbers = {"threshold": delta} if np.isfinite(delta) else {}
        return Kin(ids, sources, {"model": weights[torch.searchsorted(sources, ids)]}, numbers)
