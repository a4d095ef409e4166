"""An LSTM for text: it predicts the next character (Shakespeare) or the mood of a tweet (Sentiment140).

The LSTM is written as matrix products, because torch.nn.LSTM does not run under vmap and, on cuDNN, has no second
derivative, which the inversion of an update needs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedkin.errors import require
from fedkin.models.shape import Shape

CHARACTERS = 256  # a vocabulary of at most so many tokens has characters, a larger one has words
PADDING = 0  # the token that fills a sample before its first real token


class Recurrence(nn.Module):
    """One LSTM layer.

    (i, f, o, g) = W x_t + U h_(t-1) + b;  c_t = s(f) c_(t-1) + s(i) tanh(g);  h_t = s(o) tanh(c_t).

    One matrix product computes W x_t for all times t. All parameters are drawn uniformly from within 1 / sqrt(hidden)
    of zero, as in torch.nn.LSTM. There is one bias, where torch.nn.LSTM has two.
    """

    def __init__(self, into: int, hidden: int):
        super().__init__()
        bound = hidden**-0.5
        self.weight = nn.Parameter(torch.empty(4 * hidden, into).uniform_(-bound, bound))  # W
        self.recurrent = nn.Parameter(torch.empty(4 * hidden, hidden).uniform_(-bound, bound))  # U
        self.bias = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))  # b

    def forward(self, x: Tensor, begun: Tensor | None) -> Tensor:
        """The states h_t. `begun` is 0 as long as a sample is padding, and 1 after that; None means no padding.

        The state stays zero while `begun` is 0, so padding changes neither outputs nor gradients.
        """  # (B, T, into), (B, T, 1) -> (B, T, hidden)
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
    """An embedding, layers of `Recurrence`, and a linear layer on the last state.

    Samples are whole numbers below `vocabulary`, padded with 0 on the left, so that the last state belongs to the last
    real token. Samples of floats are taken as embedded tokens without padding, of the shape that `embedded` gives.
    """

    def __init__(self, vocabulary: int, embedding: int, hidden: int, layers: int, classes: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        sizes = [embedding] + [hidden] * (layers - 1)
        self.layers = nn.ModuleList([Recurrence(into, hidden) for into in sizes])
        self.head = nn.Linear(hidden, classes)

    def embedded(self, shape: Shape) -> Shape:
        """The shape of an embedded sample. `shape` is the shape of the sample of tokens."""
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
    """An LSTM, written `lstm:hidden,layers,embedding`. Embeddings are learned.

    PFedRe's paper gives no sizes, so the defaults are LEAF's: two layers of 256 units on embeddings of size 8 for
    characters, and two layers of 100 units on embeddings of size 100 for words. LEAF's linear layer before the last one
    is left out, since two linear layers in a row can do no more than one.
    """
    require(
        len(shape) == 1 and shape[0] > 0, f"Model 'lstm' takes lists of tokens, but a sample here has shape {shape}."
    )
    characters = vocabulary <= CHARACTERS
    return LSTM(
        vocabulary, embedding or (8 if characters else 100), hidden or (256 if characters else 100), layers, classes
    )
