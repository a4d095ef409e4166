"""Irrelevant clients: what changes, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from fedkin.data import Data, Federation, Index, load
from fedkin.data.scenarios import flip, ood, random_clients, rounded_count
from fedkin.errors import BadInput
from fedkin.runs.facts import fingerprint

Federate = Callable[..., Federation]
SIZES = tuple(range(20, 60, 2))  # 20 clients


@pytest.fixture
def federate(federate: Federate) -> Federate:
    """Without irrelevant clients."""
    return lambda *train, **options: replace(federate(*train, **options), irrelevant=None)


@pytest.fixture
def federation(federate: Federate) -> Federation:
    """20 clients of 20 to 58 samples, with everything that can be held out."""
    made = federate(SIZES, test=7, shape=(1, 4, 3), classes=5, common=30, validation=4)
    assert made.common is not None
    return replace(made, common=made.common[:20], server=made.common[20:])


def of(federation: Federation, index: Index) -> list[tuple[Tensor, Tensor]]:
    return [(federation.x[rows], federation.y[rows]) for rows in index.lists()]


def train(federation: Federation, relevant: bool) -> list[tuple[Tensor, Tensor]]:
    assert federation.irrelevant is not None
    everyone = of(federation, federation.train)
    return [own for own, foreign in zip(everyone, federation.irrelevant.tolist(), strict=True) if foreign != relevant]


def spoilt(before: Federation, after: Federation) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """The samples x, y of each irrelevant client before and after."""
    old = train(replace(before, irrelevant=after.irrelevant), relevant=False)
    return [(*own, *new) for own, new in zip(old, train(after, relevant=False), strict=True)]


def assert_rest_is_clean(before: Federation, after: Federation) -> None:
    """Sizes, everything held out and the relevant clients' training samples are what they were, to the bit."""
    assert after.irrelevant is not None
    assert torch.equal(before.train.start, after.train.start)
    for name in ("test", "validation"):
        old, new = getattr(before, name), getattr(after, name)
        assert torch.equal(old.rows, new.rows)
        assert torch.equal(old.start, new.start)
    for name in ("common", "server"):
        assert torch.equal(getattr(before, name), getattr(after, name))
    lists = [before.test.rows, before.common, before.server, before.validation and before.validation.rows]
    for rows in lists:
        assert rows is not None
        assert torch.equal(before.x[rows], after.x[rows])
        assert torch.equal(before.y[rows], after.y[rows])
    for (x, y), (u, v) in zip(
        train(replace(before, irrelevant=after.irrelevant), relevant=True), train(after, relevant=True), strict=True
    ):
        assert torch.equal(x, u)
        assert torch.equal(y, v)


@pytest.mark.parametrize(
    ("amount", "number"),
    [(0.1 * 10, 1), (0.25 * 10, 3), (0.24 * 10, 2), (0.01 * 10, 1), (0.145 * 100, 15), (0.4 * 500, 200), (0.9 * 3, 3)],
)
def test_halves_are_rounded_up_and_nothing_is_one(amount: float, number: int) -> None:
    assert rounded_count(amount) == number


@pytest.mark.parametrize(("fraction", "number"), [(0.1, 2), (0.2, 4), (0.4, 8), (0.125, 3), (0.001, 1), (0.97, 19)])
def test_the_fraction_is_exact(federation: Federation, fraction: float, number: int) -> None:
    for made in (flip(federation, fraction), ood(federation, fraction)):
        assert made.irrelevant is not None
        assert made.irrelevant.dtype == torch.bool
        assert made.irrelevant.shape == (20,)
        assert int(made.irrelevant.sum()) == number


def test_flipped_labels_are_always_wrong_and_nothing_else_changes(federation: Federation) -> None:
    flipped = flip(federation, 0.3)
    assert_rest_is_clean(federation, flipped)
    for x, y, u, v in spoilt(federation, flipped):
        assert torch.equal(x, u)
        assert (y != v).all()
    assert flipped.x is federation.x  # nobody shares a row, so that no image is copied
    assert federation.irrelevant is None
    assert flipped.source == {"irrelevant": "flip:0.3"}


def test_flips_are_uniform_over_the_other_classes(federate: Federate) -> None:
    federation = federate((4000,) * 3, classes=5)
    flipped = flip(federation, 0.5)
    rows = flipped.train.rows[torch.repeat_interleave(flipped.irrelevant, flipped.train.sizes)]
    old, new = federation.y[rows], flipped.y[rows]
    assert len(rows) == 8000
    for number in range(5):
        counts = torch.bincount(new[old == number], minlength=5)
        assert counts[number] == 0
        assert chisquare(counts[torch.arange(5) != number]).pvalue > 0.001


def test_a_rate_flips_that_part_of_the_samples(federation: Federation) -> None:
    flipped = flip(federation, 0.3, 0.25)
    assert_rest_is_clean(federation, flipped)
    for _, y, _, v in spoilt(federation, flipped):
        assert int((y != v).sum()) == int(0.25 * len(y) + 0.5)
    assert flipped.source["irrelevant"] == "flip:0.3,0.25"


def test_noise_has_the_mean_and_deviation_of_the_data(federate: Federate) -> None:
    federation = federate((500,) * 4, shape=(3, 5), classes=4)
    federation = replace(federation, x=federation.x * 3 + 7)
    noisy = ood(federation, 0.5, "noise")
    x = torch.cat([x for x, _ in train(noisy, relevant=False)])
    assert x.shape == (1000, 3, 5)
    assert x.dtype == federation.x.dtype
    error = 3 / len(x.flatten()) ** 0.5  # one standard error of the mean
    assert float(x.mean()) == pytest.approx(float(federation.x.mean()), abs=4 * error)
    assert float(x.std()) == pytest.approx(float(federation.x.std()), abs=4 * error)
    assert len(x.unique()) > 14_000  # all drawn apart


def test_permuted_features_are_in_one_order_for_the_whole_federation(federation: Federation) -> None:
    permuted = ood(federation, 0.3, "permuted")
    assert_rest_is_clean(federation, permuted)
    pairs = spoilt(federation, permuted)
    old, new = (torch.cat([pair[k].flatten(1) for pair in pairs]) for k in (0, 2))
    order = [int((old == new[:, [column]]).all(0).nonzero()) for column in range(12)]  # float features have no ties
    assert sorted(order) == list(range(12))
    assert order != list(range(12))


def test_two_features_change_places(federate: Federate) -> None:
    federation = federate((5, 5), shape=(2,))
    for seed in range(6):  # half of the permutations of two are none
        permuted = ood(federation, 0.5, seed=seed)
        ((x, _, u, _),) = spoilt(federation, permuted)
        assert torch.equal(x.flip(1), u)


@pytest.mark.parametrize("source", ["noise", "permuted"])
def test_out_of_distribution_labels_are_uniform(federate: Federate, source: str) -> None:
    federation = federate((4000,) * 3, classes=5)
    federation = replace(federation, y=torch.zeros_like(federation.y))
    y = torch.cat([y for _, y in train(ood(federation, 0.5, source), relevant=False)])
    assert chisquare(torch.bincount(y, minlength=5)).pvalue > 0.001
    assert len(y) == 8000


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16])
def test_text_out_of_distribution(federate: Federate, kind: torch.dtype) -> None:
    federation = federate((400,) * 4, shape=(20,), classes=4)
    tokens = torch.from_numpy(np.random.default_rng(0).integers(3, 9, federation.x.shape)).to(kind)
    federation = replace(federation, x=tokens, vocabulary=12)
    for source in ("noise", "permuted"):
        made = ood(federation, 0.5, source)
        old, x = (torch.cat([pair[k] for pair in spoilt(federation, made)]) for k in (0, 2))
        assert x.dtype == kind
        if source == "noise":
            assert chisquare(torch.bincount(x.flatten().int(), minlength=12)).pvalue > 0.001
        else:
            assert torch.equal(old.sort(1).values, x.sort(1).values)
            assert (old != x).any(1).float().mean() > 0.9


def test_samples_of_another_dataset_are_given_once_each(federation: Federation) -> None:
    foreign = torch.arange(400.0)[:, None, None, None].expand(400, 1, 4, 3)
    made = ood(federation, 0.3, foreign)
    assert_rest_is_clean(federation, made)
    given = torch.cat([x for x, _ in train(made, relevant=False)])[:, 0, 0, 0]
    assert len(given) == sum(len(x) for x, _ in train(made, relevant=False)) > 100
    assert len(given.unique()) == len(given)
    few = torch.cat([x for x, _ in train(ood(federation, 0.3, foreign[:100]), relevant=False)])[:, 0, 0, 0]
    times = torch.bincount(few.long())
    assert times.max() - times.min() <= 1
    assert made.source["irrelevant"] == "ood:0.3,given"


def test_a_source_must_fit(federation: Federation) -> None:
    with pytest.raises(BadInput, match=r"shape 4 x 3, not 1 x 4 x 3 as small has; choose another source"):
        ood(federation, 0.3, torch.zeros(9, 4, 3))
    with pytest.raises(BadInput, match="another kind than small"):
        ood(federation, 0.3, torch.zeros(9, 1, 4, 3, dtype=torch.uint8))
    text = replace(federation, x=torch.zeros(len(federation.x), 6, dtype=torch.uint8), vocabulary=4)
    with pytest.raises(BadInput, match="another kind than small"):
        ood(text, 0.3, torch.full((9, 6), 4, dtype=torch.uint8))
    assert ood(text, 0.3, torch.full((9, 6), 3, dtype=torch.uint8)).x.max() == 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: flip(f, 1.0), "above 0 and below 1"),
        (lambda f: flip(f, 0.1, 0.0), "above 0 and up to 1"),
        (lambda f: ood(f, 0.0), "above 0 and below 1"),
        (lambda f: ood(f, 0.1, "nois"), "did you mean noise"),
        (lambda f: flip(f, 0.99), "20 irrelevant of 20 clients"),
        (lambda f: ood(flip(f, 0.1), 0.1), "already"),
        (lambda f: flip(replace(f, classes=1), 0.1), "one class only"),
        (lambda f: ood(replace(f, x=f.x[:, :1, :1, :1]), 0.1), "one feature only"),
    ],
)
def test_mistakes_in_python(federation: Federation, call: Callable[[Federation], Federation], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        call(federation)


def test_a_seed_decides_who_and_what(federation: Federation) -> None:
    for make in (
        lambda seed: flip(federation, 0.3, 0.5, seed),
        lambda seed: ood(federation, 0.3, "noise", seed),
        lambda seed: ood(federation, 0.3, "permuted", seed),
    ):
        first, again, other = make(1), make(1), make(2)
        assert first.irrelevant is not None
        assert torch.equal(first.irrelevant, random_clients(20, 6, 1))  # the same clients, whatever they hold
        assert torch.equal(first.x, again.x)
        assert torch.equal(first.y, again.y)
        assert not torch.equal(first.irrelevant, other.irrelevant)


def test_a_clients_flips_are_its_own(federation: Federation) -> None:
    """Its draws go by its name, so that they are the same with other clients beside it."""
    named = replace(federation, clients=tuple(f"c{i}" for i in range(20)))
    both = [flip(named, fraction, seed=3) for fraction in (0.4, 0.9)]
    assert both[0].irrelevant is not None
    assert both[1].irrelevant is not None
    (client, *_) = (both[0].irrelevant & both[1].irrelevant).nonzero().flatten().tolist()
    rows = federation.train[client]
    assert torch.equal(both[0].y[rows], both[1].y[rows])
    assert not torch.equal(both[0].y[rows], flip(federation, 0.9, seed=3).y[rows])  # of another name


@pytest.mark.parametrize("spec", ["flip:0.3", "flip:0.3,0.5", "ood:0.3", "ood:0.3,noise"])
def test_who_shares_rows_with_an_irrelevant_client_keeps_them(spec: str) -> None:
    plain = Data("digits", "pfedme-overlap", validation=0.1)
    before, after = load(plain), load(replace(plain, irrelevant=spec))
    assert after.irrelevant is not None
    owner = torch.repeat_interleave(after.irrelevant, before.train.sizes)
    theirs, ours = before.train.rows[owner], before.train.rows[~owner]
    assert torch.isin(theirs, ours).any(), "the partition should share training rows"
    assert torch.isin(theirs, before.test.rows).any(), "and rows of tests"
    none = torch.zeros(0, dtype=torch.int64)
    assert_rest_is_clean(replace(before, common=none, server=none), replace(after, common=none, server=none))
    for x, y, u, v in spoilt(before, after):
        if spec == "flip:0.3":
            assert torch.equal(x, u)
            assert (y != v).all()
        elif spec == "flip:0.3,0.5":
            assert int((y != v).sum()) == int(0.5 * len(y) + 0.5)
        else:
            assert (x != u).flatten(1).any(1).all()


def test_the_scenario_is_applied_to_any_data(tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text("client,a,b,label\n" + "".join(f"c{i % 5},{i / 2},{-i / 2},{i % 3}\n" for i in range(100)))
    for data in (Data(str(table)), Data("synthetic", clients=5), Data("digits", clients=5)):
        made = load(replace(data, irrelevant="flip:0.4", seed=2))
        assert made.irrelevant is not None
        assert made.irrelevant.tolist() == random_clients(5, 2, 2).tolist()
        assert made.source["irrelevant"] == "flip:0.4"
        plain = load(replace(data, seed=2))
        assert plain.irrelevant is None
        rows = plain.train.rows
        assert torch.equal(plain.y[rows] != made.y[rows], torch.repeat_interleave(made.irrelevant, made.train.sizes))


def test_other_truth_is_other_data(federation: Federation) -> None:
    marks = [random_clients(20, 4, seed) for seed in (0, 1)]
    different = [
        federation,
        flip(federation, 0.2),
        flip(federation, 0.2, seed=1),
        flip(federation, 0.2, 0.5),
        ood(federation, 0.2),
        ood(federation, 0.2, "noise"),
        *(replace(federation, irrelevant=mark) for mark in marks),
    ]
    assert len({fingerprint(each) for each in different}) == len(different)
    assert fingerprint(flip(federation, 0.2)) == fingerprint(flip(federation, 0.2))
