"""Federations with irrelevant clients: some hold training samples of no use to the others, and who does is known.

    fk.data.scenarios.flip(federation, 0.2)     # a fifth of the clients with wrong labels

The truth is `Federation.irrelevant`, for the evaluation: only the oracle is given it (`Needs.truth`).

Training samples change, and nothing else does: test, validation, common and server samples stay clean, and so does what
relevant clients train on, also where clients share rows.
"""

from __future__ import annotations

from dataclasses import replace
from math import floor, prod

import numpy as np
import torch
from torch import Tensor

from fedkin.data.divide import split, taken
from fedkin.data.federation import Federation, Index
from fedkin.data.named import named
from fedkin.data.samples import Samples
from fedkin.data.seeds import keyed
from fedkin.data.spec import Data, scenario
from fedkin.errors import require

ODD = [1, 3, 5, 7, 9]


def flip(federation: Federation, fraction: float, rate: float = 1.0, seed: int = 0) -> Federation:
    """Wrong labels: on this fraction of the clients, `rate` of the training samples (at least one a client) get a label
    drawn uniformly from the other classes."""
    told = f"flip:{fraction}" + (f",{rate}" if rate != 1 else "")
    scenario(told)  # for its checks
    require(federation.classes > 1, f"{federation.name} has one class only, so no label can be flipped.")
    truth = drawn(federation, fraction, seed)
    places, labels = [], []
    for client, start, rows in held(federation, truth):
        gen = keyed(seed, "flip", client)
        which = np.sort(gen.choice(len(rows), min(rounded(rate * len(rows)), len(rows)), replace=False))
        old = federation.y[rows[which]].numpy()
        places.append(start + torch.from_numpy(which))
        labels.append((old + gen.integers(1, federation.classes, len(old))) % federation.classes)
    relabelled = _relabelled(federation, torch.cat(places), torch.from_numpy(np.concatenate(labels)))
    return replace(relabelled, irrelevant=truth, source=federation.source | {"irrelevant": told})


def ood(
    federation: Federation, fraction: float, source: str | Tensor = "permuted", seed: int = 0, progress: bool = True
) -> Federation:
    """Out-of-distribution samples: this fraction of the clients train on as many others, with labels drawn uniformly.

    `source` says what they are. "permuted": the client's own, with the features (pixels, places of a text) in another
    order, the same one for the whole federation. "noise": normal, with the mean and the deviation of all samples and
    all features; for text, tokens drawn uniformly. The name of a dataset, or a tensor: samples from there, in a random
    order, each once as long as they last.
    """
    scenario(f"ood:{fraction}" + (f",{source}" if isinstance(source, str) else ""))  # for its checks
    truth = drawn(federation, fraction, seed)
    clients = held(federation, truth)
    rows = torch.cat([own for _, _, own in clients])
    if not isinstance(source, str):
        x = _dealt(federation, source, "The tensor", len(rows), seed)
    elif source == "permuted":
        x = _permuted(federation.x[rows], federation.name, seed)
    elif source == "noise":
        x = _noise(federation, [(client, len(own)) for client, _, own in clients], seed)
    else:
        samples = named(Data(source), progress).checked(source)
        other = samples.source["id"] != federation.source.get("id")
        require(other, f"{source} is what the other clients have too; choose another dataset, noise or permuted.")
        x = _dealt(federation, samples.x, source, len(rows), seed)
    places = torch.repeat_interleave(truth, federation.train.sizes).nonzero().flatten()
    labels = [keyed(seed, "ood labels", client).integers(0, federation.classes, len(own)) for client, _, own in clients]
    changed = _appended(federation, places, x, torch.from_numpy(np.concatenate(labels)))
    told = f"ood:{fraction},{source if isinstance(source, str) else 'given'}"
    return replace(changed, irrelevant=truth, source=federation.source | {"irrelevant": told})


def odd_even(samples: Samples, data: Data) -> Federation:
    """The odd classes are to be learned, as classes 0 to 4: the relevant clients share their official training samples
    alike, the irrelevant clients share those of the even classes, with labels drawn uniformly from the five.

    The odd official test samples are the common test set, and every client tests on an equal share of them. What the
    relevant clients and the server hold out is odd too; irrelevant clients hold out nothing, since an even sample has
    no right answer.
    """
    _, (many, few) = scenario(data.irrelevant or "odd_even")
    require(
        samples.classes == 10 and samples.official is not None,
        f"'odd_even' needs a dataset with 10 classes and an official test split, such as mnist, not {data.name}.",
    )
    odd, train = samples.y.numpy() % 2 == 1, np.arange(len(samples.y)) < (samples.official or 0)
    server, pool = taken(np.flatnonzero(odd & train), data)
    even, tested = np.flatnonzero(~odd & train), np.flatnonzero(odd & ~train)
    for kind, rows, clients in (("odd", pool, many), ("even", even, few)):
        require(len(rows) >= clients, f"{clients} clients cannot share {len(rows)} {kind} samples of {data.name}.")
    truth = chosen(many + few, few, data.seed)
    relevant, irrelevant, own = (
        iter(np.array_split(keyed(data.seed, f"odd_even {what}").permutation(rows), clients))
        for what, rows, clients in (("odd", pool, many), ("even", even, few), ("test", tested, many + few))
    )
    nothing = np.zeros(0, dtype=np.int64)
    lists = []
    for client, foreign in enumerate(truth.tolist()):
        if foreign:
            lists.append((next(irrelevant), nothing))
        else:
            lists.append(split(next(relevant), 0.0, data.validation, data.seed, str(client))[:2])
    wrong = torch.from_numpy(keyed(data.seed, "odd_even labels").integers(0, len(ODD), len(samples.y)))
    return Federation(
        name=data.dataset,
        x=samples.x,
        y=torch.where(torch.from_numpy(odd), samples.y // 2, wrong),
        classes=len(ODD),
        train=Index.of([rows[: data.samples] for rows, _ in lists]),
        validation=Index.of([rows for _, rows in lists]) if data.validation else None,
        test=Index.of(list(own)),
        common=torch.from_numpy(tested),
        server=server,
        clients=tuple(str(client) for client in range(many + few)),
        source=samples.source | {"partition": "odd_even", "irrelevant": f"odd_even:{many},{few}", "labels": ODD},
        irrelevant=truth,
    )


def rounded(amount: float) -> int:
    """To the nearest whole number, halves up, and at least 1; the little extra is for 0.145 * 100, a hair below."""
    return max(1, floor(amount + 0.5 + 1e-9))


def chosen(n: int, number: int, seed: int) -> Tensor:  # (n,) bool
    """So many of n clients, at random."""
    truth = torch.zeros(n, dtype=torch.bool)
    truth[torch.from_numpy(keyed(seed, "irrelevant").choice(n, number, replace=False))] = True
    return truth


def drawn(federation: Federation, fraction: float, seed: int) -> Tensor:  # (n,) bool
    """Who is irrelevant: this fraction of a federation in which nobody is yet."""
    n, number = federation.n, rounded(fraction * federation.n)
    require(federation.irrelevant is None, f"{federation.name} has irrelevant clients already; begin without them.")
    require(number < n, f"{number} irrelevant of {n} clients leaves none that is relevant; take more clients.")
    return chosen(n, number, seed)


def held(federation: Federation, truth: Tensor) -> list[tuple[str, int, Tensor]]:
    """Of each irrelevant client: its name, where its training rows begin in `train.rows`, and the rows."""
    names, start = federation.clients, federation.train.start.tolist()
    return [
        (names[client] if names else str(client), start[client], federation.train[client])
        for client in truth.nonzero().flatten().tolist()
    ]


def _relabelled(federation: Federation, places: Tensor, y: Tensor) -> Federation:
    """Other labels at these places of `train.rows`. Images need no copy where nobody else has the row."""
    rows = federation.train.rows[places]
    lists = [federation.train.rows, federation.test.rows, federation.common, federation.server]
    lists += [federation.validation.rows] if federation.validation is not None else []
    uses = torch.bincount(torch.cat([rows for rows in lists if rows is not None]), minlength=len(federation.y))
    alone = uses[rows] == 1
    labels = federation.y.clone()
    labels[rows[alone]] = y[alone]
    shared = places[~alone]
    if not len(shared):
        return replace(federation, y=labels)
    return _appended(replace(federation, y=labels), shared, federation.x[rows[~alone]], y[~alone])


def _appended(federation: Federation, places: Tensor, x: Tensor, y: Tensor) -> Federation:
    """Other samples at these places of `train.rows`, as new rows, so that whoever shares the old ones keeps them."""
    rows = federation.train.rows.clone()
    rows[places] = torch.arange(len(federation.y), len(federation.y) + len(places))
    return replace(
        federation,
        x=torch.cat([federation.x, x]),
        y=torch.cat([federation.y, y]),
        train=Index(rows, federation.train.start),
    )


def _permuted(x: Tensor, name: str, seed: int) -> Tensor:
    """Every sample's features in one other order."""
    flat = x.reshape(len(x), prod(x.shape[1:]))  # (k, d)
    require(flat.shape[1] > 1, f"The samples of {name} have one feature only, which cannot be permuted; use noise.")
    gen = keyed(seed, "permuted")
    order = gen.permutation(flat.shape[1])
    while (order == np.arange(len(order))).all():
        order = gen.permutation(len(order))
    return flat[:, order].reshape(x.shape)


def _noise(federation: Federation, sizes: list[tuple[str, int]], seed: int) -> Tensor:
    x = federation.x
    draws = [(keyed(seed, "noise", client), (count, *federation.shape)) for client, count in sizes]
    if not x.is_floating_point():
        tokens = federation.vocabulary or int(x.max()) + 1
        return torch.from_numpy(np.concatenate([gen.integers(0, tokens, shape) for gen, shape in draws])).to(x.dtype)
    deviation, mean = torch.std_mean(x, correction=0)
    normal = np.concatenate([gen.standard_normal(shape, dtype=np.float32) for gen, shape in draws])
    return torch.from_numpy(normal).to(x.dtype) * deviation + mean


def _dealt(federation: Federation, x: Tensor, name: str, count: int, seed: int) -> Tensor:
    """`count` samples of x in a random order, and once more from the first where they do not suffice."""
    here, there = (" x ".join(map(str, shape)) or "()" for shape in (federation.shape, x.shape[1:]))
    require(
        here == there,
        f"{name} has samples of shape {there}, not {here} as {federation.name} has; choose another source, noise or "
        "permuted.",
    )
    tokens = federation.vocabulary or int(x.max()) + 1
    alike = x.is_floating_point() == federation.x.is_floating_point()
    require(
        alike and (x.is_floating_point() or int(x.max()) < tokens),
        f"{name} has samples of another kind than {federation.name}; choose another source, noise or permuted.",
    )
    order = keyed(seed, "ood").permutation(len(x))
    return x[np.resize(order, count)].to(federation.x.dtype)
