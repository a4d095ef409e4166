"""What stands between a client and the server: updates are clipped and noised before they leave."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b, shake_256

import numpy as np
import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Message
from fedkin.messages import Reply, Sent
from fedkin.privacy.privacy import Privacy


@dataclass(frozen=True)
class Guard:
    """Clips and noises what simulated clients upload. The noise is drawn by the key (seed, "dp", round, client).

    Whoever knows the seed knows this noise, so it protects nobody: it shows what noise does to a method. A site has a
    guard of its own (`sites/guard.py`).
    """

    privacy: Privacy
    secret: bytes  # in a simulation the seed, as text

    def key(self, round: int, client: int, update: Tensor) -> bytes:
        """Return the key of the noise of one upload. `update` is the clipped update, as one vector."""
        return blake2b(f"dp/{round}/{client}".encode(), key=self.secret).digest()

    def passed(self, reply: Reply, sent: Sent, round: int, numbers: np.ndarray, changes: Collection[str] = ()) -> Reply:
        """Return the reply with its uploads clipped and noised. `numbers` are those of all clients, by their ids."""
        clients = numbers[reply.ids.numpy()].tolist()
        return replace(reply, upload=self.released(reply.upload, sent.to(reply.ids), round, clients, changes))

    def released(
        self, upload: Message, sent: Message, round: int, clients: Sequence[int], changes: Collection[str] = ()
    ) -> Message:
        """Return what these clients may upload in place of `upload`, stacked; the models that they keep stay as they
        are.

        What is clipped is the update: how far each upload is from what was sent by its name, which the server knows.
        What was not sent, or is a change already (`changes`, as SCAFFOLD's of a control variate), is clipped by itself.
        The length of the update is that of all these tensors together, as one vector.
        """
        values = tree.flat(upload)
        names = sorted(values)  # so that the order of a dictionary does not decide which number gets which noise
        before = {name: value for name, value in tree.flat(sent).items() if name.partition("/")[0] not in changes}
        moves = [(values[name] - before[name] if name in before else values[name]).double() for name in names]
        vector = torch.cat([one.reshape(len(one), -1) for one in moves], dim=1)  # (m, d)
        clip = self.privacy.clip
        vector *= clip / torch.linalg.vector_norm(vector, dim=1, keepdim=True).clamp(min=clip)
        for row, client in zip(vector, clients, strict=True):
            noise = normal(self.key(round, int(client), row), len(row))
            row += self.privacy.noise * clip * noise.to(row.device)
        found = {}
        for name, change in zip(names, vector.split([one[0].numel() for one in moves], dim=1), strict=True):
            value = values[name]
            moved = change.reshape(value.shape)
            found[name] = (before[name].double() + moved if name in before else moved).to(value.dtype)
        return {name: {key: found[f"{name}/{key}"] for key in model} for name, model in upload.items()}


def normal(key: bytes, count: int) -> Tensor:
    """Return so many standard normal numbers, which nobody can foretell or tell apart without the key.

    The bits are SHAKE-256's. A fast generator would not do: its key can be found from a few of its numbers, and where
    an update is zero the noise is seen as it is.
    """  # (count,) float64
    bits = np.frombuffer(shake_256(key).digest(8 * count), dtype="<u8")
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53  # in (0, 1)
    found: Tensor = torch.special.ndtri(torch.from_numpy(uniform))
    return found
