import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkin.data.partition import filled_to_minimum, partition
from fedkin.data.seeds import keyed_generator
from fedkin.errors import BadInput

LABELS = np.random.default_rng(0).integers(0, 10, 6000)
DISJOINT = [
    "iid",
    "dirichlet:0.1",
    "dirichlet:5",
    "classes:2",
    "classes:3",
    "shards:2",
    "shards:3",
    "pfedme",
    "fedmcsa",
]


def clients_of(spec: str) -> int:
    return 20 if spec in ("pfedme", "fedmcsa") else 23


@pytest.mark.parametrize("spec", DISJOINT)
def test_every_sample_belongs_to_exactly_one_client(spec: str) -> None:
    shares = partition(spec, LABELS, clients_of(spec), seed=0)
    assert len(shares) == clients_of(spec)
    np.testing.assert_array_equal(np.sort(np.concatenate(shares)), np.arange(len(LABELS)))


@pytest.mark.parametrize("spec", [*DISJOINT, "pfedme-overlap"])
def test_a_seed_is_a_partition(spec: str) -> None:
    clients = None if spec.startswith("pfedme") else clients_of(spec)
    first, again, other = (partition(spec, LABELS, clients, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@given(
    clients=st.integers(1, 40),
    classes=st.integers(1, 7),
    count=st.integers(40, 300),
    spec=st.sampled_from(["iid", "dirichlet:0.05", "dirichlet:1", "classes:1", "shards:1"]),
    seed=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_any_labels_are_divided_without_loss(clients: int, classes: int, count: int, spec: str, seed: int) -> None:
    labels = np.random.default_rng(seed).integers(0, classes, count)
    shares = partition(spec, labels, clients, seed)
    whole = np.concatenate(shares)
    assert len(np.unique(whole)) == len(whole)
    if spec == "classes:1":  # fewer clients than classes leave classes without a holder
        held = np.unique(labels[whole])
        assert len(held) == min(clients, len(np.unique(labels)))
        assert len(whole) == np.isin(labels, held).sum()
    else:
        assert len(whole) == count


def test_iid_parts_are_equal_and_mixed() -> None:
    shares = partition("iid", np.sort(LABELS), 7, 0)
    assert {len(rows) for rows in shares} <= {6000 // 7, 6000 // 7 + 1}
    assert all(len(np.unique(np.sort(LABELS)[rows])) == 10 for rows in shares)


@pytest.mark.parametrize(("alpha", "expected"), [(0.1, 0.66), (0.5, 0.38), (1, 0.30), (5, 0.18), (10, 0.15)])
def test_dirichlet_is_as_skewed_as_measured(alpha: float, expected: float) -> None:
    """The largest class share of a client, on average; the values are the specification's."""
    labels = np.repeat(np.arange(10), 6000)
    shares = partition(f"dirichlet:{alpha}", labels, 100, 0)
    largest = np.mean([np.bincount(labels[rows], minlength=10).max() / len(rows) for rows in shares])
    assert abs(largest - expected) < 0.03


@pytest.mark.parametrize("minimum", [None, 0, 2, 25])
def test_dirichlet_reaches_the_minimum(minimum: int | None) -> None:
    shares = partition("dirichlet:0.05", LABELS, 200, 3, minimum=minimum)
    assert min(len(rows) for rows in shares) >= (10 if minimum is None else minimum)
    if minimum == 0:
        assert min(len(rows) for rows in shares) == 0


def test_the_default_minimum_gives_way_where_samples_are_few() -> None:
    shares = partition("dirichlet:0.1", LABELS[:100], 40, 0)
    assert min(len(rows) for rows in shares) == 2


def test_five_hundred_skewed_dirichlet_clients_reach_the_minimum_without_redrawing() -> None:
    labels = np.random.default_rng(0).integers(0, 10, 70_000)
    shares = partition("dirichlet:0.05", labels, 500, 0)  # drawing again until it holds would take for ever
    assert min(len(rows) for rows in shares) >= 10


def test_repair_takes_from_the_richest_and_leaves_the_others_alone() -> None:
    labels = np.arange(20) % 4
    shares = [np.arange(12), np.array([], dtype=int), np.arange(12, 16), np.arange(16, 20)]
    after = filled_to_minimum(shares, labels, 3, keyed_generator(0, "test"))
    assert [len(rows) for rows in after] == [9, 3, 4, 4]
    np.testing.assert_array_equal(after[2], shares[2])
    np.testing.assert_array_equal(np.sort(np.concatenate(after)), np.arange(20))
    assert set(after[1]) <= set(shares[0])


def test_repair_moves_random_classes() -> None:
    """Of a client with 990 samples of one class and 10 of another, about half of what moves is of the rare class."""
    labels = np.array([0] * 990 + [1] * 10)
    after = filled_to_minimum([np.arange(1000), np.array([], dtype=int)], labels, 10, keyed_generator(0, "test"))
    assert 2 <= labels[after[1]].sum() <= 8


def test_a_hundred_clients_with_two_classes_make_twenty_holders_a_class() -> None:
    labels = np.repeat(np.arange(10), 600)
    shares = partition("classes:2", labels, 100, 0)
    counts = np.stack([np.bincount(labels[rows], minlength=10) for rows in shares])
    assert ((counts > 0).sum(1) == 2).all()
    assert ((counts > 0).sum(0) == 20).all()
    assert set(np.unique(counts)) == {0, 30}
    pairs = {tuple(np.flatnonzero(row)) for row in counts}
    assert len(pairs) > 20  # neither a chain of ten nor five groups


def test_mcmahans_shards() -> None:
    """60,000 images, 200 shards of 300, 600 images a client, of two classes mostly."""
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 6000))
    shares = partition("shards:2", labels, 100, 0)
    assert {len(rows) for rows in shares} == {600}
    kinds = np.array([len(np.unique(labels[rows])) for rows in shares])
    assert kinds.max() == 2
    assert (kinds == 2).mean() > 0.8


def test_natural_clients_keep_their_rows() -> None:
    owner = np.array([2, 0, 0, 2, 4])
    shares = partition("natural", np.zeros(5, dtype=int), 6, 0, owner=owner)
    assert [rows.tolist() for rows in shares] == [[1, 2], [], [0, 3], [], [4], []]


@pytest.mark.parametrize(
    ("spec", "clients", "minimum", "sentence"),
    [
        ("iid", 6001, None, "6001 clients cannot share 6000 samples"),
        ("iid", None, None, "needs a number of clients"),
        ("dirichlet:0.5", 6001, None, "cannot share"),
        ("dirichlet:0.5", 100, 61, "need 6100 samples"),
        ("classes:11", 5, None, "cannot have 11 classes"),
        ("shards:100", 100, None, "need 10000 samples"),
        ("natural", None, None, "whose they are"),
        ("pfedme", 30, None, "has 20 clients, not 30"),
    ],
)
def test_what_cannot_be_divided_is_refused(spec: str, clients: int | None, minimum: int | None, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        partition(spec, LABELS, clients, 0, minimum=minimum)


@pytest.mark.filterwarnings("ignore")  # of the plotting libraries that Flower's package imports
def test_the_dirichlet_draw_is_that_of_flowers_partitioner() -> None:
    from datasets import Dataset
    from flwr_datasets.partitioner import DirichletPartitioner

    from fedkin.data.partition import dirichlet_parts

    labels = np.random.default_rng(3).integers(0, 7, 900)
    theirs = DirichletPartitioner(12, "label", 0.4, min_partition_size=0, self_balancing=False, shuffle=False, seed=5)
    theirs.dataset = Dataset.from_dict({"row": np.arange(900), "label": labels})
    draws = np.random.default_rng(5)
    ours = [dirichlet_parts(np.flatnonzero(labels == label), 12, 0.4, draws) for label in range(7)]
    for client in range(12):
        mine = np.concatenate([parts[client] for parts in ours])
        assert sorted(mine.tolist()) == sorted(theirs.load_partition(client)["row"])
