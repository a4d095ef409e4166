import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedkin.data import Data, Federation, Index, load
from fedkin.data.divide import divide
from fedkin.data.holdout import apportioned, dealt_by_class, split
from fedkin.data.samples import Samples
from fedkin.errors import BadInput


def samples(count: int = 1000, official: int | None = 800, owners: int = 0, ordered: bool = False) -> Samples:
    gen = np.random.default_rng(0)
    return Samples(
        x=torch.arange(count, dtype=torch.float32)[:, None],
        y=torch.from_numpy(gen.integers(0, 5, count)),
        classes=5,
        official=official,
        owner=gen.integers(0, owners, count) if owners else None,
        owners=tuple(f"c{i}" for i in range(owners)),
        ordered=ordered,
    )


def same(a: Index, b: Index) -> bool:
    return torch.equal(a.rows, b.rows) and torch.equal(a.start, b.start)


def disjoint(federation: Federation) -> bool:
    lists = [federation.train.rows, federation.test.rows]
    if federation.validation is not None:
        lists.append(federation.validation.rows)
    rows = torch.cat(lists)
    return len(rows.unique()) == len(rows)


@given(count=st.integers(0, 300), test=st.sampled_from([0, 0.1, 0.25, 0.5, 0.9]), validation=st.sampled_from([0, 0.05]))
def test_a_split_loses_nothing_and_trains_on_something(count: int, test: float, validation: float) -> None:
    rows = np.arange(1000, 1000 + count)
    train, held, tested = split(rows, test, validation, 0, "a")
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held, tested])), rows)
    assert len(train) >= min(count, 1)
    assert abs(len(train) - (1 - test - validation) * count) <= 1
    if validation == 0:
        assert len(held) == 0
    if test == 0:
        assert len(tested) == 0


def test_a_split_is_the_clients_own() -> None:
    rows = np.arange(100)
    assert np.array_equal(split(rows, 0.25, 0, 0, "a")[0], split(rows, 0.25, 0, 0, "a")[0])
    assert not np.array_equal(split(rows, 0.25, 0, 0, "a")[0], split(rows, 0.25, 0, 0, "b")[0])
    assert not np.array_equal(split(rows, 0.25, 0, 0, "a")[0], split(rows, 0.25, 0, 1, "a")[0])


def test_float_fractions_do_not_eat_a_sample() -> None:
    assert len(split(np.arange(10), 0.9, 0, 0, "a")[0]) == 1
    assert len(split(np.arange(100), 0.2, 0.1, 0, "a")[0]) == 70


def test_windows_of_a_text_are_tested_on_what_follows() -> None:
    train, held, test = split(np.arange(100), 0.2, 0.1, 0, "a", ordered=True)
    assert train.max() < held.min() <= held.max() < test.min()
    assert not np.array_equal(train, np.sort(train))  # so that a cap takes a random part


@pytest.mark.parametrize("partition", ["iid", "dirichlet:0.5", "classes:2", "shards:2", "natural"])
def test_lists_are_disjoint_and_whole(partition: str) -> None:
    federation = divide(
        samples(owners=12), Data("mnist", partition, None if partition == "natural" else 10, validation=0.1)
    )
    assert federation.validation is not None
    assert disjoint(federation)
    assert len(federation.train.rows) + len(federation.validation.rows) + len(federation.test.rows) == 1000


def test_a_cap_touches_training_only() -> None:
    whole = divide(samples(), Data("mnist", "dirichlet:0.5", 10, validation=0.1))
    capped = divide(samples(), Data("mnist", "dirichlet:0.5", 10, validation=0.1, samples=20))
    less = divide(samples(), Data("mnist", "dirichlet:0.5", 10, validation=0.1, samples=5))
    assert same(whole.test, capped.test)
    assert whole.validation is not None
    assert capped.validation is not None
    assert same(whole.validation, capped.validation)
    assert torch.equal(capped.train.sizes, whole.train.sizes.clamp(max=20))
    assert (whole.train.sizes < 20).any()  # all if fewer
    for few, some, all_ in zip(less.train.lists(), capped.train.lists(), whole.train.lists(), strict=True):
        assert set(few.tolist()) <= set(some.tolist()) <= set(all_.tolist())


def test_seeds_change_the_partition() -> None:
    first, again, other = (divide(samples(), Data("mnist", "iid", 5, seed=seed)) for seed in (0, 0, 1))
    assert same(first.train, again.train)
    assert not same(first.train, other.train)


@pytest.fixture(scope="module")
def official() -> Federation:
    return divide(samples(), Data("mnist", "dirichlet:0.3", 10, holdout="official", validation=0.1, samples=30))


def test_the_official_training_split_is_divided(official: Federation) -> None:
    assert official.train.rows.max() < 800
    assert official.validation is not None
    assert official.validation.rows.max() < 800
    assert official.train.sizes.max() == 30


def test_the_official_test_split_is_common(official: Federation) -> None:
    assert official.common is not None
    assert official.common.tolist() == list(range(800, 1000))


def test_clients_share_the_official_test_split_by_class_proportions(official: Federation) -> None:
    assert disjoint(official)
    assert sorted(official.test.rows.tolist()) == list(range(800, 1000))
    whole = divide(samples(), Data("mnist", "dirichlet:0.3", 10, holdout="official"))
    assert same(whole.test, official.test)  # neither the cap nor the validation part matters
    train = torch.stack([torch.bincount(official.y[rows], minlength=5) for rows in whole.train.lists()])
    test = torch.stack([torch.bincount(official.y[rows], minlength=5) for rows in whole.test.lists()])
    exact = train / train.sum(0) * test.sum(0)
    assert ((test - exact).abs() < 1).all()


def test_an_official_holdout_needs_an_official_split() -> None:
    for without in (samples(official=None), samples(official=1000)):
        with pytest.raises(BadInput, match="no official test split"):
            divide(without, Data("mnist", "iid", 10, holdout="official"))
    with pytest.raises(BadInput, match="synthetic has no official test split"):
        load(Data("synthetic", clients=3, holdout="official"))


@given(seats=st.integers(0, 500), votes=st.lists(st.integers(0, 100), min_size=1, max_size=30).filter(any))
def test_largest_remainders_sum_up_and_are_close(seats: int, votes: list[int]) -> None:
    given = apportioned(seats, np.array(votes))
    assert given.sum() == seats
    assert (np.abs(given - seats * np.array(votes) / sum(votes)) < 1).all()


def test_largest_remainders_known_case() -> None:
    assert apportioned(10, np.array([6, 6, 2])).tolist() == [4, 4, 2]
    assert apportioned(3, np.array([1, 1])).tolist() == [2, 1]


def test_a_class_nobody_has_goes_to_nobody() -> None:
    labels = np.array([0, 0, 1, 0, 1, 2])
    parts = dealt_by_class([np.array([0]), np.array([1, 2])], labels, np.array([3, 4, 5]), 3, 0)
    assert sorted(np.concatenate(parts).tolist()) == [3, 4]


def test_clients_without_samples_are_named_and_left_out() -> None:
    some = samples(owners=5)
    assert some.owner is not None
    some.owner[some.owner == 2] = 3
    federation = divide(some, Data("mnist", "natural"))
    assert federation.left_out == ("c2",)
    assert federation.clients == ("c0", "c1", "c3", "c4")
    assert federation.n == 4
    empty = divide(samples(), Data("mnist", "dirichlet:0.005", 50, minimum=0))
    assert len(empty.left_out) > 0
    assert len(empty.left_out) + empty.n == 50
    assert (empty.train.sizes > 0).all()


def test_some_natural_clients_can_be_taken() -> None:
    every = divide(samples(owners=20), Data("mnist", "natural"))
    few = divide(samples(owners=20), Data("mnist", "natural", clients=6))
    other = divide(samples(owners=20), Data("mnist", "natural", clients=6, seed=1))
    assert few.n == 6
    assert set(few.clients) < set(every.clients)
    assert few.clients != other.clients
    for name, rows in zip(few.clients, few.train.lists(), strict=True):
        assert torch.equal(rows, every.train[every.clients.index(name)])  # its split does not depend on the others
    with pytest.raises(BadInput, match="20 clients with at least 1 samples, not 21"):
        divide(samples(owners=20), Data("mnist", "natural", clients=21))


def test_small_natural_clients_are_dropped_and_counted() -> None:
    some = samples(owners=10)
    assert some.owner is not None
    size = np.bincount(some.owner)
    least = int(np.sort(size)[3])
    federation = divide(some, Data("mnist", "natural", minimum=least))
    assert federation.n == (size >= least).sum()
    assert federation.source["below_minimum"] == (size < least).sum()
    with pytest.raises(BadInput, match="has 2000 samples; lower 'minimum'"):
        divide(some, Data("mnist", "natural", minimum=2000))


def test_natural_needs_owners() -> None:
    with pytest.raises(BadInput, match="does not say whose"):
        divide(samples(), Data("mnist", "natural"))


def test_bad_samples_are_refused() -> None:
    good = samples()
    with pytest.raises(BadInput, match="label 5, but its classes are 0 to 4"):
        Samples(good.x, good.y + 1, 5).checked("it")
    with pytest.raises(BadInput, match="label -1"):
        Samples(good.x, good.y - 1, 5).checked("it")
    with pytest.raises(BadInput, match="no samples"):
        Samples(good.x[:0], good.y[:0], 5).checked("it")
    x = good.x.clone()
    x[7] = torch.nan
    with pytest.raises(BadInput, match="1 rows with a feature that is not a finite number, first 7"):
        Samples(x, good.y, 5).checked("it")
    Samples(torch.full((3, 2), 3e38), good.y[:3], 5).checked("it")  # a sum that overflows is no fault
