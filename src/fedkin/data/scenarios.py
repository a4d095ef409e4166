"""Federations with irrelevant clients: clients whose training samples are of no use to the other clients.

    fk.data.scenarios.flip(federation, 0.2)     # a fifth of the clients get wrong labels

`Federation.irrelevant` says which clients are irrelevant. It is for the evaluation: of all parts of a method only the
oracle may see it (`Needs.truth`).

Only the training samples of irrelevant clients change, or only what they upload (`attacked`). Test, validation, common
and server samples stay clean, and so do the training samples of relevant clients, also where clients share rows.
"""

from __future__ import annotations

from dataclasses import replace
from math import floor, prod

import numpy as np
import torch
from torch import Tensor

from fedkin.data.attacks import Attack
from fedkin.data.federation import Federation, Index
from fedkin.data.holdout import server_rows, split
from fedkin.data.named_data import read_named
from fedkin.data.notation import ATTACKS, scenario_arguments
from fedkin.data.samples import Samples
from fedkin.data.seeds import keyed_generator
from fedkin.data.spec import Data
from fedkin.errors import require

ODD = [1, 3, 5, 7, 9]


def flip(federation: Federation, fraction: float, rate: float = 1.0, seed: int = 0) -> Federation:
    """Give wrong labels to a random `fraction` of the clients.

    A fraction `rate` of the training samples of each of them, at least one, gets a label drawn uniformly from the other
    classes.
    """
    spec = f"flip:{fraction}" + (f",{rate}" if rate != 1 else "")
    scenario_arguments(spec)  # for its checks
    regress = f"'flip' changes classes, but {federation.name} has numbers to predict; use ood."
    require(federation.task == "classify", regress)
    require(federation.classes > 1, f"{federation.name} has one class only, so no label can be flipped.")
    truth = draw_irrelevant(federation, fraction, seed)
    places, labels = [], []
    for client, start, rows in training_rows(federation, truth):
        gen = keyed_generator(seed, "flip", client)
        which = np.sort(gen.choice(len(rows), min(rounded_count(rate * len(rows)), len(rows)), replace=False))
        old = federation.y[rows[which]].numpy()
        places.append(start + torch.from_numpy(which))
        labels.append((old + gen.integers(1, federation.classes, len(old))) % federation.classes)
    relabelled = _relabelled(federation, torch.cat(places), torch.from_numpy(np.concatenate(labels)))
    return replace(relabelled, irrelevant=truth, source=federation.source | {"irrelevant": spec})


def ood(
    federation: Federation, fraction: float, source: str | Tensor = "permuted", seed: int = 0, progress: bool = True
) -> Federation:
    """Give out-of-distribution training samples to a random `fraction` of the clients.

    Each of these clients gets as many samples as it had, with labels drawn uniformly from all classes or, to regress,
    with values drawn from the training samples of all clients. `source` is one of these:
    - "permuted": the client's own samples with their features (pixels, places of a text) in another order, which is the
      same for the whole federation.
    - "noise": normal noise with the mean and the deviation over all samples and features; for text, tokens drawn
      uniformly.
    - the name of a dataset, or a tensor: samples from there in a random order. None is used twice before all are used.
    """
    scenario_arguments(f"ood:{fraction}" + (f",{source}" if isinstance(source, str) else ""))  # for its checks
    truth = draw_irrelevant(federation, fraction, seed)
    clients = training_rows(federation, truth)
    rows = torch.cat([own for _, _, own in clients])
    if not isinstance(source, str):
        x = _dealt(federation, source, "The tensor", len(rows), seed)
    elif source == "permuted":
        x = _permuted(federation.x[rows], federation.name, seed)
    elif source == "noise":
        x = _noise(federation, [(client, len(own)) for client, _, own in clients], seed)
    else:
        samples = read_named(Data(source), progress).checked(source)
        other = samples.source["id"] != federation.source.get("id")
        require(other, f"{source} is what the other clients have too; choose another dataset, noise or permuted.")
        x = _dealt(federation, samples.x, source, len(rows), seed)
    places = torch.repeat_interleave(truth, federation.train.sizes).nonzero().flatten()
    labels = [
        _random_labels(federation, keyed_generator(seed, "ood labels", client), len(own)) for client, _, own in clients
    ]
    changed = _appended(federation, places, x, torch.cat(labels))
    spec = f"ood:{fraction},{source if isinstance(source, str) else 'given'}"
    return replace(changed, irrelevant=truth, source=federation.source | {"irrelevant": spec})


def target(federation: Federation, fraction: float, label: int | None = None, seed: int = 0) -> Federation:
    """Let a `fraction` of the clients call every training sample of one class by the next class, and no other sample.

    They are the clients that have most samples of this class: the class `label` or, if None, the one that most clients
    have. Of clients that have equally many, random ones are taken.
    """
    spec = f"target:{fraction}" + ("" if label is None else f",{label}")
    scenario_arguments(spec)  # for its checks
    regress = f"'target' changes a class, but {federation.name} has numbers to predict; use ood."
    require(federation.task == "classify", regress)
    counts, many = federation.label_counts(), federation.classes
    label = int((counts > 0).sum(0).argmax()) if label is None else label
    require(many > 1, f"{federation.name} has one class only, so no sample can be called by another.")
    require(label < many, f"{federation.name} has the classes 0 to {many - 1}, and no class {label}.")
    number = int(draw_irrelevant(federation, fraction, seed).sum())
    having = int((counts[:, label] > 0).sum())
    require(having >= number, f"Only {having} clients have class {label}, not {number}; take fewer clients.")
    shuffled = keyed_generator(seed, "target").permutation(federation.n)
    chosen = shuffled[np.argsort(-counts[shuffled, label], kind="stable")[:number]]
    truth = torch.zeros(federation.n, dtype=torch.bool).index_fill(0, torch.from_numpy(chosen), True)
    clients = training_rows(federation, truth)
    places = torch.cat([start + (federation.y[rows] == label).nonzero().flatten() for _, start, rows in clients])
    relabelled = _relabelled(federation, places, torch.full((len(places),), (label + 1) % many))
    return replace(relabelled, irrelevant=truth, source=federation.source | {"irrelevant": spec})


def attacked(
    federation: Federation, kind: str, fraction: float, strength: float | None = None, seed: int = 0
) -> Federation:
    """Let a random `fraction` of the clients upload something else than what they have trained (`attacks.Attack`)."""
    spec = f"{kind}:{fraction}" + ("" if strength is None else f",{strength:g}")
    require(kind in ATTACKS, f"An attack is one of {', '.join(ATTACKS)}, not '{kind}'.")
    _, (_, *found) = scenario_arguments(spec)
    truth = draw_irrelevant(federation, fraction, seed)
    attack = Attack(kind, truth, *found)
    return replace(federation, irrelevant=truth, attack=attack, source=federation.source | {"irrelevant": spec})


def _random_labels(federation: Federation, gen: np.random.Generator, count: int) -> Tensor:
    """So many random classes or, to regress, values of random training samples."""
    if federation.task == "classify":
        return torch.from_numpy(gen.integers(0, federation.classes, count))
    return federation.y[federation.train.rows[gen.integers(0, len(federation.train.rows), count)]]


def odd_even(samples: Samples, data: Data) -> Federation:
    """Let relevant clients learn the odd classes, as classes 0 to 4, and give irrelevant clients the even classes.

    The relevant clients share the odd official training samples equally. The irrelevant clients share the even ones,
    with labels drawn uniformly from the five classes. The odd official test samples are the common test set, and every
    client tests on an equal share of them. Relevant clients and the server hold out odd samples; irrelevant clients
    hold out none, since an even sample has no right class.
    """
    _, (relevant, irrelevant) = scenario_arguments(data.irrelevant or "odd_even")
    require(
        samples.classes == 10 and samples.official is not None,
        f"'odd_even' needs a dataset with 10 classes and an official test split, such as mnist, not {data.name}.",
    )
    odd, train = samples.y.numpy() % 2 == 1, np.arange(len(samples.y)) < (samples.official or 0)
    server, pool = server_rows(np.flatnonzero(odd & train), data)
    even, tested = np.flatnonzero(~odd & train), np.flatnonzero(odd & ~train)
    for kind, rows, clients in (("odd", pool, relevant), ("even", even, irrelevant)):
        require(len(rows) >= clients, f"{clients} clients cannot share {len(rows)} {kind} samples of {data.name}.")
    n = relevant + irrelevant
    truth = random_clients(n, irrelevant, data.seed)
    lists = _odd_even_rows(pool, even, truth, data)
    wrong = torch.from_numpy(keyed_generator(data.seed, "odd_even labels").integers(0, len(ODD), len(samples.y)))
    return Federation(
        name=data.dataset,
        x=samples.x,
        y=torch.where(torch.from_numpy(odd), samples.y // 2, wrong),
        classes=len(ODD),
        train=Index.of([rows[: data.samples] for rows, _ in lists]),
        validation=Index.of([rows for _, rows in lists]) if data.validation else None,
        test=Index.of(_equal_shares(tested, n, "test", data)),
        common=torch.from_numpy(tested),
        server=server,
        clients=tuple(str(client) for client in range(n)),
        source=samples.source
        | {"partition": "odd_even", "irrelevant": f"odd_even:{relevant},{irrelevant}", "labels": ODD},
        irrelevant=truth,
        labels=tuple(samples.labels[number] if samples.labels else str(number) for number in ODD),
    )


def _odd_even_rows(odd: np.ndarray, even: np.ndarray, truth: Tensor, data: Data) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each client's training and validation rows: irrelevant clients get even rows, the others odd rows."""
    irrelevant = int(truth.sum())
    odd_shares = iter(_equal_shares(odd, len(truth) - irrelevant, "odd", data))
    even_shares = iter(_equal_shares(even, irrelevant, "even", data))
    nothing = np.zeros(0, dtype=np.int64)
    lists = []
    for client, foreign in enumerate(truth.tolist()):
        if foreign:
            lists.append((next(even_shares), nothing))
        else:
            lists.append(split(next(odd_shares), 0.0, data.validation, data.seed, str(client))[:2])
    return lists


def _equal_shares(rows: np.ndarray, clients: int, purpose: str, data: Data) -> list[np.ndarray]:
    """The rows in a random order, cut into equal shares. `purpose` keys the random order."""
    return np.array_split(keyed_generator(data.seed, f"odd_even {purpose}").permutation(rows), clients)


def rounded_count(amount: float) -> int:
    """The nearest whole number, halves rounded up, and at least 1.

    1e-9 is added because 0.145 * 100 is slightly below 14.5 in floats.
    """
    return max(1, floor(amount + 0.5 + 1e-9))


def random_clients(n: int, number: int, seed: int) -> Tensor:  # (n,) bool
    """A mask of `number` random clients of n."""
    truth = torch.zeros(n, dtype=torch.bool)
    truth[torch.from_numpy(keyed_generator(seed, "irrelevant").choice(n, number, replace=False))] = True
    return truth


def draw_irrelevant(federation: Federation, fraction: float, seed: int) -> Tensor:  # (n,) bool
    """A mask of the clients that become irrelevant: a random `fraction` of a federation without irrelevant clients."""
    n, number = federation.n, rounded_count(fraction * federation.n)
    require(federation.irrelevant is None, f"{federation.name} has irrelevant clients already; begin without them.")
    require(number < n, f"{number} irrelevant of {n} clients leaves none that is relevant; take more clients.")
    return random_clients(n, number, seed)


def training_rows(federation: Federation, truth: Tensor) -> list[tuple[str, int, Tensor]]:
    """For each irrelevant client: its name, the place in `train.rows` where its rows begin, and its training rows."""
    names, start = federation.names, federation.train.start.tolist()
    return [(names[client], start[client], federation.train[client]) for client in truth.nonzero().flatten().tolist()]


def _relabelled(federation: Federation, places: Tensor, y: Tensor) -> Federation:
    """Change the labels at these places of `train.rows`. A sample is copied only if its row has another use as well."""
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
    """Put other samples at these places of `train.rows`. They are new rows, so that other uses of the old rows stay."""
    rows = federation.train.rows.clone()
    rows[places] = torch.arange(len(federation.y), len(federation.y) + len(places))
    return replace(
        federation,
        x=torch.cat([federation.x, x]),
        y=torch.cat([federation.y, y]),
        train=Index(rows, federation.train.start),
    )


def _permuted(x: Tensor, name: str, seed: int) -> Tensor:
    """The samples with their features in another order, the same for all samples."""
    flat = x.reshape(len(x), prod(x.shape[1:]))  # (k, d)
    require(flat.shape[1] > 1, f"The samples of {name} have one feature only, which cannot be permuted; use noise.")
    gen = keyed_generator(seed, "permuted")
    order = gen.permutation(flat.shape[1])
    while (order == np.arange(len(order))).all():
        order = gen.permutation(len(order))
    return flat[:, order].reshape(x.shape)


def _noise(federation: Federation, sizes: list[tuple[str, int]], seed: int) -> Tensor:
    """Random samples; `sizes` has each client's name and its number of samples."""
    x = federation.x
    draws = [(keyed_generator(seed, "noise", client), (count, *federation.shape)) for client, count in sizes]
    if not x.is_floating_point():
        tokens = federation.vocabulary or int(x.max()) + 1
        return torch.from_numpy(np.concatenate([gen.integers(0, tokens, shape) for gen, shape in draws])).to(x.dtype)
    deviation, mean = torch.std_mean(x, correction=0)
    normal = np.concatenate([gen.standard_normal(shape, dtype=np.float32) for gen, shape in draws])
    return torch.from_numpy(normal).to(x.dtype) * deviation + mean


def _dealt(federation: Federation, x: Tensor, name: str, count: int, seed: int) -> Tensor:
    """`count` samples of x in a random order, which is repeated if x has fewer samples. `name` says where x is from."""
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
    order = keyed_generator(seed, "ood").permutation(len(x))
    return x[np.resize(order, count)].to(federation.x.dtype)
