"""Attacks on updates: what irrelevant clients upload instead of what they have trained.

Their samples stay clean, and so do the models that they keep to themselves. An engine hands the replies of a round to
`Attack.passed` when all clients have trained, after whatever protects privacy: an attacker keeps to no rule.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.messages import Reply, Sent


@dataclass(frozen=True)
class Attack:
    """How irrelevant clients change their updates. An update is how far each upload is from what was sent by its name;
    what was not sent, or is a change already (`changes`: SCAFFOLD's of a control variate), is changed by itself.

    scale: `strength` times the update. sign: minus the update, and `strength` has no meaning. alie ("a little is
    enough", Baruch et al. 2019): all attackers upload mean - strength * deviation of the updates of the round's other
    clients, number by number. They are as strong as can be: they know what every honest client uploads. Nothing here is
    random, so that a run is resumed exactly.
    """

    kind: str  # one of notation.ATTACKS
    who: Tensor  # (n,) bool
    strength: float = 1.0

    def passed(self, reply: Reply, sent: Sent, changes: Collection[str] = ()) -> Reply:
        """Return the reply with the uploads of attackers changed. Non-finite uploads of others teach them nothing."""
        bad = self.who[reply.ids]
        good = ~bad & reply.finite() if bad.any() else bad
        if not bad.any() or (self.kind == "alie" and not good.any()):
            return reply
        before = {name: model for name, model in sent.to(reply.ids).items() if name not in changes}
        upload = {
            name: {key: self.changed(value, before.get(name, {}).get(key), bad, good) for key, value in model.items()}
            for name, model in reply.upload.items()
        }
        return Reply(reply.ids, upload, reply.report, reply.broken)

    def changed(self, value: Tensor, before: Tensor | None, bad: Tensor, good: Tensor) -> Tensor:
        """Return one tensor of all uploads, (m, ...), with the rows of the attackers changed."""
        start = torch.zeros_like(value) if before is None else before
        updates = (value - start).double()
        if self.kind == "alie":
            deviation, mean = torch.std_mean(updates[good], dim=0, correction=0)
            wrong = (mean - self.strength * deviation).expand_as(updates[bad])
        else:
            wrong = (-1.0 if self.kind == "sign" else self.strength) * updates[bad]
        found = value.clone()
        found[bad] = (start[bad].double() + wrong).to(value.dtype)
        return found
