"""How samples are divided among clients: counts by class or by ranges of the target, and the lines of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkin.data.federation import Federation

RANGES = 12  # columns of the values to regress
WIDEST = 14  # letters of a class's name in the table


@dataclass(frozen=True)
class Division:
    """Training samples of each client by class or, to regress, by ranges of the values to predict."""

    counts: np.ndarray  # (n, columns)
    columns: tuple[str, ...]  # names of the classes, or the middle of each range
    axis: str  # what the columns are
    ranges: bool = False

    def spoken(self, place: int) -> str:
        """A column in words."""
        if self.ranges:
            return f"about {self.columns[place]}"
        numbered = self.columns[place] == str(place)
        return f"class {self.columns[place]}" if numbered else self.columns[place]


def division_of(federation: Federation) -> Division:
    """The training samples of each client by class, or by ranges of the values to predict in their own unit."""
    if federation.task == "classify":
        return Division(federation.label_counts(), federation.class_names, "class")
    values = target_values(federation)
    low, high = np.quantile(np.concatenate(values), [0.005, 0.995])  # single extremes go to the first and last range
    edges = np.linspace(low, high if high > low else low + 1, RANGES + 1)
    counts = np.stack([np.histogram(np.clip(mine, edges[0], edges[-1]), edges)[0] for mine in values])
    words = tuple(f"{middle:.3g}" for middle in (edges[:-1] + edges[1:]) / 2)
    target = str((federation.preparation or {}).get("target", "the target"))
    return Division(counts, words, target, ranges=True)


def target_values(federation: Federation) -> list[np.ndarray]:
    """The values to predict of each client's training samples, in their own unit."""
    sites = (federation.preparation or {}).get("sites", {})
    none = {"target_shift": 0.0, "target_scale": 1.0}
    fitted = [sites.get(name, none) for name in federation.names]
    return [
        federation.y[rows].double().numpy() * numbers["target_scale"] + numbers["target_shift"]
        for rows, numbers in zip(federation.train.lists(), fitted, strict=True)
    ]


def marked_names(federation: Federation) -> tuple[str, ...]:
    """The clients' names, with an asterisk after the names of irrelevant clients."""
    if federation.irrelevant is None:
        return federation.names
    truth = federation.irrelevant.tolist()
    return tuple(f"{name} *" if foreign else name for name, foreign in zip(federation.names, truth, strict=True))


def irrelevant_sentence(federation: Federation) -> str | None:
    """How many clients are irrelevant, or None if the federation has no irrelevant clients."""
    if federation.irrelevant is None:
        return None
    how = f" ({spec})" if (spec := federation.source.get("irrelevant")) else ""
    return f"{int(federation.irrelevant.sum()):,} of {federation.n:,} clients are irrelevant{how}"


def sizes_sentence(federation: Federation) -> str:
    """The mean and the standard deviation of the clients' sizes: of their training samples, and of all they have."""
    train = federation.train.sizes.numpy()
    held = [index.sizes.numpy() for index in (federation.test, federation.validation) if index is not None]
    every = np.sum([train, *held], axis=0)
    return (
        f"mean {train.mean():,.1f}, sd {train.std():,.1f}; with those held out mean {every.mean():,.1f}, sd "
        f"{every.std():,.1f}, sum {every.sum():,}"
    )


def table(federation: Federation) -> list[str]:
    """The lines of a table.

    First come two lines of sizes, the names of clients that were left out and the number of irrelevant clients. Then
    each client has a line with its name, its numbers of training and test samples, and its training samples of each
    class or, to regress, what its values to predict are.
    """
    size, tested = federation.train.sizes.numpy(), federation.test.sizes.numpy()
    predicted = f"{federation.classes} classes" if federation.task == "classify" else "a number to predict"
    lines = [
        f"{federation.name}: {federation.n:,} clients, {predicted}, training samples per client min "
        f"{size.min():,}, median {np.median(size):,.0f}, max {size.max():,}, sum {size.sum():,}; test {tested.sum():,}"
    ]
    lines.append(f"training samples per client {sizes_sentence(federation)}")
    if federation.left_out:
        shown = ", ".join(federation.left_out[:5]) + (", ..." if len(federation.left_out) > 5 else "")
        lines.append(f"left out, without samples: {len(federation.left_out):,} ({shown})")
    if sentence := irrelevant_sentence(federation):
        lines.append(f"{sentence}, marked *")
    names = marked_names(federation)
    name = max(len("client"), *(len(client) for client in names))
    head, *cells = _cells(federation)
    lines.append(f"{'client':<{name}}  {'train':>8} {'test':>8}  {head}")
    for client, total, test, row in zip(names, size, tested, cells, strict=True):
        lines.append(f"{client:<{name}}  {total:>8,} {test:>8,}  {row}")
    return lines


def _cells(federation: Federation) -> list[str]:
    """The right part of the table: a line of names, then a line for each client."""
    if federation.task == "regress":
        rows = [[f"{number:.4g}" for number in _described(values)] for values in target_values(federation)]
        head = ["mean", "sd", "min", "median", "max"]
    else:
        rows = [[f"{count:,}" if count else "." for count in row] for row in federation.label_counts()]
        head = [name if len(name) <= WIDEST else name[: WIDEST - 1] + "…" for name in federation.class_names]
    wide = max(len(word) for row in rows for word in row)
    widths = [max(wide, len(word)) for word in head]
    return [" ".join(f"{word:>{width}}" for word, width in zip(row, widths, strict=True)) for row in [head, *rows]]


def _described(values: np.ndarray) -> tuple[float, ...]:
    return values.mean(), values.std(), values.min(), float(np.median(values)), values.max()
