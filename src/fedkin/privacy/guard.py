"""What stands between a client and the server: updates are clipped and noised before they leave."""

from __future__ import annotations

from collections.abc import Sequence
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

    def passed(self, reply: Reply, sent: Sent, round: int, numbers: np.ndarray) -> Reply:
        """Return the reply with its uploads clipped and noised. `numbers` are those of all clients, by their ids."""
        clients = numbers[reply.ids.numpy()].tolist()
        return replace(reply, upload=self.released(reply.upload, sent.to(reply.ids), round, clients))

    def released(self, upload: Message, sent: Message, round: int, clients: Sequence[int]) -> Message:
        """Return what these clients may upload in place of `upload`, stacked; the models that they keep stay as they
        are.

        What is clipped is the update: the change of 'model' since the model that was sent, which the server knows, and
        whatever else is uploaded, as SCAFFOLD's change of a control variate, by itself. Its length is that of all these
        tensors together, as one vector.
        """
        values = tree.flat(upload)
        names = sorted(values)  # so that the order of a dictionary does not decide which number gets which noise
        before = {f"model/{name}": value for name, value in sent.get("model", {}).items()}
        changes = [(values[name] - before[name] if name in before else values[name]).double() for name in names]
        vector = torch.cat([change.flatten(1) for change in changes], dim=1)  # (m, d)
        clip = self.privacy.clip
        vector *= clip / torch.linalg.vector_norm(vector, dim=1, keepdim=True).clamp(min=clip)
        for row, client in zip(vector, clients, strict=True):
            noise = normal(self.key(round, int(client), row), len(row))
            row += self.privacy.noise * clip * noise.to(row.device)
        found = {}
        for name, change in zip(names, vector.split([c[0].numel() for c in changes], dim=1), strict=True):
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
