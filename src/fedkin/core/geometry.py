"""Inner products, angles and distances between the models of clients.

Everything works on stacked models and in blocks, so that no temporary is larger than `BLOCK` numbers. Results are in
float64. A matrix with a number for each pair of clients is the only thing that grows with the square of their number,
and `Pairs` does without it where it is told to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fedkin.core.tree import Model

BLOCK = 2**21  # numbers of a temporary
NOTHING = 1e-12  # a norm below this has no direction
CHUNK = 1024  # rows of a random projection that are drawn at a time; another value is another projection
SAMPLE = 2**18  # pairs by which `quantile` knows where to look


def blocks(m: int, width: int) -> list[slice]:
    """Ranges of columns of a matrix (m, width), each with at most `BLOCK` numbers."""
    step = max(1, BLOCK // m)
    return [slice(first, min(first + step, width)) for first in range(0, width, step)]


def pieces(stacked: Model, names: Sequence[str], origin: Model | None = None) -> Iterator[Tensor]:
    """The clients' models in blocks of columns, in float64: the tensors with these names, less `origin` if given."""
    for name in names:
        flat = stacked[name].reshape(len(stacked[name]), -1)
        start = None if origin is None else origin[name].reshape(-1)
        for at in blocks(*flat.shape):
            yield flat[:, at].double() if start is None else flat[:, at].double() - start[at].double()  # (m, w)


def gram(stacked: Model, names: Sequence[str], origin: Model | None = None) -> Tensor:
    """Inner products of the clients' models, of the tensors with these names, less `origin` where it is given."""
    m = len(stacked[names[0]])
    total = torch.zeros(m, m, dtype=torch.float64, device=stacked[names[0]].device)
    for piece in pieces(stacked, names, origin):
        for at in blocks(m, m):
            total[at] += piece[at] @ piece.mT
    for at in blocks(m, m):  # products of blocks are symmetric but for the last digits
        rest = slice(at.start, m)
        half = (total[at, rest] + total[rest, at].mT) / 2
        total[at, rest], total[rest, at] = half, half.mT
    return total  # (m, m)


def cosines(products: Tensor) -> Tensor:
    """Cosines from inner products: within [-1, 1], exactly 1 with itself, 0 with a model that has no direction."""
    squares = products.diagonal()
    return cosine(products, squares[:, None], squares).fill_diagonal_(1.0)  # (m, m)


def distances(products: Tensor) -> Tensor:
    """Squared Euclidean distances from inner products."""
    squares = products.diagonal()
    return distance(products, squares[:, None], squares).fill_diagonal_(0.0)  # (m, m)


def cosine(products: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Cosines from inner products and the squared lengths of either side."""
    a, b = one.clamp(min=0).sqrt(), other.clamp(min=0).sqrt()
    found = products / (a * b).clamp(min=NOTHING**2)
    return torch.where((a < NOTHING) | (b < NOTHING), 0.0, found).clamp(-1, 1)


def distance(products: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Squared distances from inner products and the squared lengths of either side."""
    return (one + other - 2 * products).clamp(min=0)


@dataclass(frozen=True)
class Pairs:
    """How alike the models of m clients are: a number for each pair of them, in blocks of rows.

    The numbers are held in one matrix, or a block is computed whenever it is asked for.
    """

    stacked: Model
    names: Sequence[str]
    kind: Literal["cosine", "distance"]
    origin: Model | None
    squares: Tensor  # (m,)
    held: Tensor | None  # (m, m)

    @property
    def m(self) -> int:
        return len(self.squares)

    def blocks(self) -> list[slice]:
        """The ranges of rows."""
        return blocks(self.m, self.m)

    def rows(self, at: slice) -> Tensor:
        """The numbers of these clients with all."""  # (r, m)
        if self.held is not None:
            return self.held[at]
        return self.measured(sum(piece[at] @ piece.mT for piece in self.pieces()), at)  # type: ignore[arg-type]

    def along(self, others: Tensor) -> Tensor:
        """The number of each client with the one that stands at its place in `others`."""  # (m,)
        if self.held is not None:
            return self.held.gather(1, others[:, None])[:, 0]
        products = sum((piece * piece[others]).sum(1) for piece in self.pieces())
        found = MEASURES[self.kind](products, self.squares, self.squares[others])  # type: ignore[arg-type]
        return torch.where(others == torch.arange(self.m, device=others.device), OWN[self.kind], found)

    def measured(self, products: Tensor, at: slice) -> Tensor:
        """What inner products of these clients with all say."""  # (r, m)
        found = MEASURES[self.kind](products, self.squares[at, None], self.squares)
        found.diagonal(at.start).fill_(OWN[self.kind])
        return found

    def pieces(self) -> Iterator[Tensor]:
        return pieces(self.stacked, self.names, self.origin)


MEASURES = {"cosine": cosine, "distance": distance}
OWN = {"cosine": 1.0, "distance": 0.0}  # of a client with itself


def pairs(
    stacked: Model,
    names: Sequence[str],
    kind: Literal["cosine", "distance"],
    origin: Model | None = None,
    hold: bool = True,
) -> Pairs:
    """How alike the clients' models are in the tensors with these names. A matrix of one block is held in any case."""
    m = len(stacked[names[0]])
    if not hold and m * m > BLOCK:
        squares = sum(piece.square().sum(1) for piece in pieces(stacked, names, origin))
        return Pairs(stacked, names, kind, origin, squares, None)  # type: ignore[arg-type]
    held = gram(stacked, names, origin)
    found = Pairs(stacked, names, kind, origin, held.diagonal().clone(), held)
    for at in found.blocks():
        held[at] = found.measured(held[at], at)
    return found


def quantile(of: Pairs, level: float) -> float:
    """The quantile of the numbers of all pairs, a client with itself included, interpolated linearly as numpy does.

    It is exact, and needs one pass over the pairs: a sample of them says between which two numbers it lies, and only
    what lies there is collected. Where the sample is wrong, which happens once in a billion times, a second pass looks
    further out.
    """
    count = of.m**2
    if count <= BLOCK:
        return float(np.quantile(of.rows(slice(0, of.m)).cpu().numpy(), level))
    gen = torch.Generator().manual_seed(0)  # the result does not depend on the sample
    orders = [torch.randperm(of.m, generator=gen).to(of.squares.device) for _ in range(-(-SAMPLE // of.m))]
    sample = torch.cat([of.along(order) for order in orders]).sort().values
    place = level * (count - 1)
    first, last = floor(place), min(floor(place) + 1, count - 1)
    margin = 3 * len(sample) ** 0.5  # six standard deviations of a rank at least
    while True:
        centre = level * (len(sample) - 1)
        low = sample[floor(centre - margin)] if centre >= margin else -torch.inf
        high = sample[floor(centre + margin) + 1] if centre + margin < len(sample) - 1 else torch.inf
        below, values, ends = between(of, low, high)
        if below <= first and len(ends) and last < int(ends[-1]):
            break
        margin *= 8
    a, b = (float(values[torch.searchsorted(ends, rank, right=True)]) for rank in (first, last))
    t = place - first
    return a + (b - a) * t if t < 0.5 else b - (b - a) * (1 - t)


def between(of: Pairs, low: Tensor | float, high: Tensor | float) -> tuple[int, Tensor, Tensor]:
    """How many pairs have a number below `low`; which different numbers there are from there to `high`, sorted; and
    for each how many pairs have at most this number."""
    below, used = 0, 0
    found = of.squares.new_empty(2, BLOCK, dtype=torch.float64)  # numbers, and how many pairs have each
    for at in of.blocks():
        block = of.rows(at)
        below += int((block < low).sum())
        values, counts = block[(block >= low) & (block <= high)].unique(return_counts=True)
        while used + len(values) > found.shape[1]:
            found = torch.cat([found, torch.empty_like(found)], 1)  # as in `Nearest.joined`, no small pieces are kept
        found[0, used : used + len(values)], found[1, used : used + len(values)] = values, counts
        used += len(values)
    values, order = found[0, :used].sort()
    return below, values, below + found[1, :used][order].cumsum(0)


def sketches(stacks: Sequence[Model], names: Sequence[str], k: int, gen: torch.Generator) -> list[Tensor]:
    """The tensors with these names as k numbers for each row of each of these stacks, by one random projection.

    The projection S has independent entries, normal with mean 0 and variance 1 / k. It is drawn in chunks and never
    held as a whole. For any x and y that do not depend on it,
    - <Sx, Sy> has mean <x, y> and standard deviation sqrt((1 + cos^2) / k) |x| |y|, at most sqrt(2 / k) |x| |y|;
    - |Sx - Sy|^2 is |x - y|^2 times chi^2_k / k: within 1 +- eps of it but with probability
      2 exp(-k (eps^2 / 4 - eps^3 / 6));
    - the cosine of Sx and Sy has standard deviation about (1 - cos^2) / sqrt(k), so that models which are nearly
      parallel, as those of one start, stay so.
    """  # (rows, k) each
    found = [
        torch.zeros(len(stack[names[0]]), k, dtype=torch.float64, device=stack[names[0]].device) for stack in stacks
    ]
    for name in names:
        flats = [stack[name].reshape(len(stack[name]), -1) for stack in stacks]
        for first in range(0, flats[0].shape[1], CHUNK):
            width = min(CHUNK, flats[0].shape[1] - first)
            drawn = torch.randn(width, k, generator=gen, dtype=torch.float64) / k**0.5
            for flat, out in zip(flats, found, strict=True):
                for at in blocks(width, len(flat)):
                    out[at] += flat[at, first : first + width].double() @ drawn.to(flat.device)
    return found
