"""LSTM for text: the next character (Shakespeare), the mood of a tweet (Sentiment140).

Written as plain matrix products, because torch.nn.LSTM does not run under vmap, and has no second derivative, which
inverting an update needs, where cuDNN computes it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedkin.errors import require
from fedkin.models.shape import Shape

CHARACTERS = 256  # a vocabulary of up to so many tokens is one of characters, a larger one of words
PADDING = 0  # the token before the first real one


class Recurrence(nn.Module):
    """One layer: (i, f, o, g) = W x_t + U h_(t-1) + b;  c_t = s(f) c_(t-1) + s(i) tanh(g);  h_t = s(o) tanh(c_t).

    The products with the inputs of all times are one product. All numbers start uniform within 1 / sqrt(hidden), as in
    torch.nn.LSTM; there is one bias, not two.
    """

    def __init__(self, into: int, hidden: int):
        super().__init__()
        bound = hidden**-0.5
        self.weight = nn.Parameter(torch.empty(4 * hidden, into).uniform_(-bound, bound))  # W
        self.recurrent = nn.Parameter(torch.empty(4 * hidden, hidden).uniform_(-bound, bound))  # U
        self.bias = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))  # b

    def forward(self, x: Tensor, begun: Tensor | None) -> Tensor:
        """`begun` is 0 where a sample is still padding: nothing enters there, so its state stays zero, and padding
        changes neither outputs nor gradients."""  # (B, T, into), (B, T, 1) -> (B, T, hidden)
        hidden = self.recurrent.shape[1]
        entering = (x.flatten(0, 1) @ self.weight.mT + self.bias).unflatten(0, x.shape[:2])  # (B, T, 4 hidden)
        if begun is not None:
            entering = entering * begun
        back = self.recurrent.mT
        h = c = torch.zeros_like(entering[:, 0, :hidden])
        states = []
        for now in entering.unbind(1):
            gates = now + h @ back  # (B, 4 hidden)
            i, f, o = torch.sigmoid(gates[:, : 3 * hidden]).chunk(3, dim=1)
            c = f * c + i * torch.tanh(gates[:, 3 * hidden :])
            h = o * torch.tanh(c)
            states.append(h)
        return torch.stack(states, dim=1)


class LSTM(nn.Module):
    """Embedding, layers of `Recurrence`, and a linear layer on the last state.

    Samples are whole numbers below `vocabulary`, padded with 0 on the left, so the last state is that of the last real
    token. Samples of floats are taken for tokens already embedded, of the shape that `embedded` gives; none of them is
    padding.
    """

    def __init__(self, vocabulary: int, embedding: int, hidden: int, layers: int, classes: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        sizes = [embedding] + [hidden] * (layers - 1)
        self.layers = nn.ModuleList([Recurrence(into, hidden) for into in sizes])
        self.head = nn.Linear(hidden, classes)

    def embedded(self, shape: Shape) -> Shape:
        """The shape of a sample whose tokens are embedded."""
        return (*shape, self.embedding.embedding_dim)

    def forward(self, x: Tensor) -> Tensor:  # (B, T) or (B, T, embedding) -> (B, classes)
        begun = None
        if not x.is_floating_point():
            begun = ((x != PADDING).cumsum(1) > 0)[..., None].to(self.head.weight.dtype)
            x = self.embedding(x.long())
        for layer in self.layers:
            x = layer(x, begun)
        found: Tensor = self.head(x[:, -1])
        return found


def lstm(
    shape: Shape,
    classes: int,
    vocabulary: int,
    hidden: int | None = None,
    layers: int = 2,
    embedding: int | None = None,
) -> nn.Module:
    """lstm:hidden,layers,embedding. PFedRe's paper gives no sizes; unless said they are LEAF's: two layers of 256 units
    on embeddings of 8 for characters, two of 100 on embeddings of 100 for words (without LEAF's linear layer before the
    last, which adds nothing a linear layer cannot do). Embeddings are learned."""
    require(
        len(shape) == 1 and shape[0] > 0, f"Model 'lstm' takes lists of tokens, but a sample here has shape {shape}."
    )
    characters = vocabulary <= CHARACTERS
    return LSTM(
        vocabulary, embedding or (8 if characters else 100), hidden or (256 if characters else 100), layers, classes
    )
