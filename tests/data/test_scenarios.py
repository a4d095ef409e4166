"""Irrelevant clients: what changes, what must not, and who may know."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

import fedkin as fk
from fedkin.command import cli
from fedkin.data import Data, Federation, Index, load, picture
from fedkin.data.samples import Samples
from fedkin.data.scenarios import flip, odd_even, ood, random_clients, rounded_count
from fedkin.engines import Plain, Simulation
from fedkin.errors import BadInput
from fedkin.runs.resolve import fingerprint
from tests.data.conftest import pictures

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
    before = train(replace(federation, irrelevant=flipped.irrelevant), relevant=False)
    for (x, y), (u, v) in zip(before, train(flipped, relevant=False), strict=True):
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
    before = train(replace(federation, irrelevant=flipped.irrelevant), relevant=False)
    for (_, y), (_, v) in zip(before, train(flipped, relevant=False), strict=True):
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
    before = train(replace(federation, irrelevant=permuted.irrelevant), relevant=False)
    old, new = (torch.cat([x.flatten(1) for x, _ in each]) for each in (before, train(permuted, relevant=False)))
    order = [int((old == new[:, [column]]).all(0).nonzero()) for column in range(12)]  # float features have no ties
    assert sorted(order) == list(range(12))
    assert order != list(range(12))


def test_two_features_change_places(federate: Federate) -> None:
    federation = federate((5, 5), shape=(2,))
    for seed in range(6):  # half of the permutations of two are none
        permuted = ood(federation, 0.5, seed=seed)
        (old,) = train(replace(federation, irrelevant=permuted.irrelevant), relevant=False)
        (new,) = train(permuted, relevant=False)
        assert torch.equal(old[0].flip(1), new[0])


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
        x = torch.cat([x for x, _ in train(made, relevant=False)])
        old = torch.cat([x for x, _ in train(replace(federation, irrelevant=made.irrelevant), relevant=False)])
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
    old = train(replace(before, irrelevant=after.irrelevant), relevant=False)
    for (x, y), (u, v) in zip(old, train(after, relevant=False), strict=True):
        if spec == "flip:0.3":
            assert torch.equal(x, u)
            assert (y != v).all()
        elif spec == "flip:0.3,0.5":
            assert int((y != v).sum()) == int(0.5 * len(y) + 0.5)
        else:
            assert (x != u).flatten(1).any(1).all()


def test_the_scenario_is_applied_to_any_data(tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text("client,a,b,label\n" + "".join(f"c{i % 5},{i},{-i},{i % 3}\n" for i in range(100)))
    for data in (Data(str(table)), Data("synthetic", clients=5), Data("digits", clients=5)):
        made = load(replace(data, irrelevant="flip:0.4", seed=2))
        assert made.irrelevant is not None
        assert made.irrelevant.tolist() == random_clients(5, 2, 2).tolist()
        assert made.source["irrelevant"] == "flip:0.4"
        plain = load(replace(data, seed=2))
        assert plain.irrelevant is None
        rows = plain.train.rows
        assert torch.equal(plain.y[rows] != made.y[rows], torch.repeat_interleave(made.irrelevant, made.train.sizes))


# odd and even digits


def images(train: int = 400, test: int = 100) -> Samples:
    """The one pixel of an image is its row; classes come in turn."""
    count = train + test
    return Samples(
        x=torch.arange(count, dtype=torch.float32).reshape(-1, 1, 1, 1),
        y=torch.arange(count) % 10,
        classes=10,
        official=train,
    )


def test_odd_digits_are_learned_and_even_ones_are_not() -> None:
    made = odd_even(images(), Data("mnist", irrelevant="odd_even"))
    assert made.irrelevant is not None
    assert made.classes == 5
    assert made.n == 10
    assert int(made.irrelevant.sum()) == 4
    assert torch.equal(made.irrelevant, random_clients(10, 4, 0))
    digit = made.x[:, 0, 0, 0].long() % 10
    for client, foreign in enumerate(made.irrelevant.tolist()):
        rows = made.train[client]
        assert (rows < 400).all()
        assert len(rows) == 50 if foreign else len(rows) in (33, 34)
        assert (digit[rows] % 2 == (0 if foreign else 1)).all()
        if not foreign:
            assert torch.equal(digit[rows], 2 * made.y[rows] + 1)
        own = made.test[client]
        assert len(own) == 5
        assert torch.equal(digit[own], 2 * made.y[own] + 1)
    assert len(made.train.rows.unique()) == 400
    assert made.common is not None
    assert made.common.tolist() == list(range(401, 500, 2))
    assert sorted(made.test.rows.tolist()) == made.common.tolist()
    assert made.source["labels"] == [1, 3, 5, 7, 9]
    assert made.source["irrelevant"] == "odd_even:6,4"


def test_labels_of_even_digits_are_uniform() -> None:
    made = odd_even(images(20_000), Data("mnist", irrelevant="odd_even"))
    digit = made.x[:, 0, 0, 0].long() % 10
    for number in (0, 2, 4, 6, 8):
        rows = made.train.rows[digit[made.train.rows] == number]
        assert chisquare(torch.bincount(made.y[rows], minlength=5)).pvalue > 0.001


def test_odd_and_even_with_caps_and_held_out_samples() -> None:
    data = Data("mnist", irrelevant="odd-even:3,2", samples=20, validation=0.1, server=10, seed=4)
    made = odd_even(images(), data)
    assert made.irrelevant is not None
    assert made.validation is not None
    assert made.server is not None
    assert made.train.sizes.tolist() == [20] * 5
    assert made.test.sizes.tolist() == [10] * 5
    assert len(made.server) == 10
    assert sorted(made.validation.sizes.tolist()) == [0, 0, 7, 7, 7]
    assert (made.validation.sizes[made.irrelevant] == 0).all()
    held = torch.cat([made.server, made.validation.rows])
    assert torch.equal(made.x[held].flatten().long() % 10, 2 * made.y[held] + 1)
    everything = torch.cat([held, made.train.rows, made.test.rows])
    assert len(everything.unique()) == len(everything)
    again, other = odd_even(images(), data), odd_even(images(), replace(data, seed=5))
    assert torch.equal(made.y, again.y)
    assert torch.equal(made.train.rows, again.train.rows)
    assert not torch.equal(made.y, other.y)
    assert not torch.equal(made.train.rows, other.train.rows)


def test_odd_and_even_need_enough_samples() -> None:
    with pytest.raises(BadInput, match="10 classes and an official test split"):
        odd_even(replace(images(), classes=47), Data("emnist", irrelevant="odd_even"))
    with pytest.raises(BadInput, match="10 classes and an official test split"):
        odd_even(replace(images(), official=None), Data("mnist", irrelevant="odd_even"))
    with pytest.raises(BadInput, match="201 clients cannot share 200 even samples of mnist"):
        odd_even(images(), Data("mnist", irrelevant="odd_even:6,201"))


def test_real_mnist_has_the_sizes_of_the_example(real: Callable[[str], Path]) -> None:
    real("ylecun/mnist")
    made = load(Data("mnist", irrelevant="odd_even"), progress=False)
    assert made.irrelevant is not None
    assert made.common is not None
    assert int(made.train.sizes[~made.irrelevant].sum()) == 30_508
    assert int(made.train.sizes[made.irrelevant].sum()) == 29_492
    assert set(made.train.sizes[~made.irrelevant].tolist()) == {5084, 5085}
    assert made.train.sizes[made.irrelevant].tolist() == [7373] * 4
    assert len(made.common) == 5_074
    assert set(made.test.sizes.tolist()) == {507, 508}
    assert made.y[made.common].bincount().tolist() == [1135, 1010, 892, 1028, 1009]
    assert made.shape == (1, 28, 28)


# who may know


def reachable(root: object) -> Iterator[object]:
    """Everything that can be got at from here: fields, items, what functions are bound to or close over."""
    seen: set[int] = set()
    left = [root]
    alive = []  # so that no id is used twice
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | str | bytes | int | float | None):
            continue
        seen.add(id(thing))
        alive.append(thing)
        yield thing
        if isinstance(thing, dict):
            left += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            left += thing
        elif isinstance(thing, MethodType):
            left += [thing.__self__, thing.__func__]
        elif isinstance(thing, FunctionType):
            left += [cell.cell_contents for cell in thing.__closure__ or ()]
            left += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        elif not isinstance(thing, Tensor):
            left += list(getattr(thing, "__dict__", {}).values())


def knows(root: object, truth: Tensor) -> bool:
    """Whether the federation, the truth or a copy of it can be reached."""
    return any(
        isinstance(thing, Federation)
        or (isinstance(thing, Tensor) and thing.shape == truth.shape and torch.equal(thing.double(), truth.double()))
        for thing in reachable(root)
    )


PROTOCOL = {
    "select": ("init", "__call__", "observe"),
    "train": ("slots", "prepare", "begin", "end"),  # engines look whether a part has a step of its own
    "keep": ("init", "__call__"),
    "collaborate": ("init", "send", "receive", "kin"),
}


def overheard(monkeypatch: pytest.MonkeyPatch, method: str, engine: str) -> tuple[list[object], Tensor]:
    """All that the parts of a method are handed during a run, and the truth."""
    federation = load(Data("digits", clients=8, server=40, irrelevant="flip:0.25"))
    assert federation.irrelevant is not None
    made = fk.methods.named(method)
    handed: list[object] = []
    calls: set[tuple[str, str]] = set()

    def listen(part: Any, role: str, name: str) -> None:
        original = getattr(type(part), name)

        def listening(self: object, *given: object) -> object:
            calls.add((role, name))
            handed.append((self, given))
            return original(self, *given)

        monkeypatch.setattr(type(part), name, listening)

    for role, names in PROTOCOL.items():
        for name in names:
            listen(getattr(made, role), role, name)
    fk.run(fk.Experiment(made, federation, rounds=2, engine=engine, evaluate_every=1))
    assert {("select", "__call__"), ("keep", "__call__"), ("collaborate", "send"), ("train", "begin")} <= calls
    return handed, federation.irrelevant


@pytest.mark.parametrize("engine", ["plain", "stacked"])
@pytest.mark.parametrize("method", ["fedprox", "fedmcsa", "sfedavg", "active", "pfedre", "multikrum"])
def test_no_part_can_reach_the_truth(monkeypatch: pytest.MonkeyPatch, method: str, engine: str) -> None:
    assert not knows(*overheard(monkeypatch, method, engine))


def test_the_oracle_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knows(*overheard(monkeypatch, "oracle", "stacked"))


def test_the_search_for_the_truth_finds_it(start: Callable[..., Any]) -> None:
    """Else the test above would say nothing."""
    federation = load(Data("digits", clients=8, irrelevant="flip:0.25"))
    truth = federation.irrelevant
    assert truth is not None
    engine, task, _ = start(
        Plain, fk.methods.fedavg(), federation, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    )
    assert isinstance(engine, Simulation)
    assert not knows(task, truth)
    assert knows(engine, truth)
    assert knows(replace(task, validation={"x": truth.clone()}), truth)
    assert knows(replace(task, loss=lambda model, batch: truth.sum()), truth)
    assert knows(replace(task, loss=engine.evaluate), truth)


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


# the command line


@pytest.fixture
def fedkin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Calls the command in an empty folder: exit code, standard output and errors."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedkin", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


BAD = {
    "flp:0.2": "did you mean flip",
    "flip": "'flip' needs the share of irrelevant clients, as in 'flip:0.2'",
    "flip:0": "above 0 and below 1 in 'flip:0', not '0'",
    "flip:1": "above 0 and below 1",
    "flip:nan": "above 0 and below 1",
    "flip:some": "above 0 and below 1",
    "flip:0.1,0": "above 0 and up to 1",
    "flip:0.1,2": "above 0 and up to 1",
    "flip:0.1,0.2,0.3": "at most 2 arguments, not 3",
    "flip:0.99": "20 irrelevant of 20 clients leaves none",
    "ood": "needs the share",
    "ood:-0.1": "above 0 and below 1",
    "ood:0.1,mnits": "did you mean mnist",
    "ood:0.1,digits": "digits is what the other clients have too",
    "ood:0.1,synthetic": "synthetic has samples of shape 60, not 1 x 8 x 8 as digits has",
    "odd_even": "10 classes and an official test split, such as mnist, not digits",
    "odd_even:6": "both numbers of clients",
    "odd_even:0,4": "number of relevant clients must be a whole number of at least 1",
    "odd_even:6,0": "number of irrelevant clients must be a whole number of at least 1",
}


@pytest.mark.parametrize("command", [("run", "fedavg", "--data"), ("compare", "fedavg", "--data"), ("data", "show")])
@pytest.mark.parametrize("spec", BAD)
def test_bad_input_is_one_sentence(fedkin, tmp_path: Path, command: tuple[str, ...], spec: str) -> None:
    code, _, err = fedkin(*command, "digits", "--irrelevant", spec)
    assert code == 2, err
    assert BAD[spec] in err
    assert len(err.strip().splitlines()) == 1, err
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("option", [("--clients", "10"), ("--partition", "iid")])
def test_odd_even_makes_its_own_clients(fedkin, option: tuple[str, str]) -> None:
    code, _, err = fedkin("data", "show", "mnist", "--irrelevant", "odd_even", *option)
    assert code == 2
    assert "'odd_even' makes its own clients; leave 'partition' and 'clients' out" in err


def test_a_run_records_who_is_irrelevant_and_resumes_only_that(fedkin, tmp_path: Path) -> None:
    words = ["run", "fedavg", "--data", "digits", "--clients", "10", "--rounds", "2", "--out", "run"]
    code, _, err = fedkin(*words, "--irrelevant", "flip:0.2")
    assert code == 0, err
    folder = tmp_path / "here" / "run" / "fedavg" / "seed-0"
    clients = json.loads((folder / "clients.json").read_text())
    assert clients["irrelevant"] == random_clients(10, 2, 0).tolist()
    made = load(Data("digits", clients=10, irrelevant="flip:0.2"))
    assert clients["labels"] == made.label_counts().tolist()
    experiment = json.loads((folder / "experiment.json").read_text())
    assert experiment["data"]["irrelevant"] == "flip:0.2"
    assert experiment["resolved"]["source"]["irrelevant"] == "flip:0.2"
    for other in ([], ["--irrelevant", "flip:0.3"], ["--irrelevant", "flip:0.2,0.5"], ["--irrelevant", "ood:0.2"]):
        code, _, err = fedkin(*words, *other, "--resume")
        assert code == 2
        assert "data.irrelevant is 'flip:0.2' there" in err
    code, _, err = fedkin(*words[:-4], "--rounds", "3", "--out", "run", "--irrelevant", "flip:0.2", "--resume")
    assert code == 0, err


def test_a_run_without_irrelevant_clients_says_nothing_of_them(fedkin, tmp_path: Path) -> None:
    code, _, err = fedkin("run", "fedavg", "--data", "digits", "--clients", "4", "--rounds", "1", "--out", "run")
    assert code == 0, err
    clients = json.loads((tmp_path / "here" / "run" / "fedavg" / "seed-0" / "clients.json").read_text())
    assert "irrelevant" not in clients


def test_irrelevant_clients_are_marked_in_the_table_and_the_picture(fedkin, tmp_path: Path) -> None:
    code, out, err = fedkin("data", "show", "digits", "--clients", "10", "--irrelevant", "flip:0.2")
    assert code == 0, err
    assert "2 of 10 clients are irrelevant (flip:0.2), marked *" in out
    rows = [line for line in out.splitlines() if line[:1].isdigit() and "clients" not in line]
    assert [line.split()[1] == "*" for line in rows] == random_clients(10, 2, 0).tolist()
    assert len({len(line) for line in rows}) == 1
    drawn = (tmp_path / "here" / "digits-flip-0.2.svg").read_text()
    assert "2 of 10 clients are irrelevant (flip:0.2)" in drawn
    assert drawn.count("<title>irrelevant client ") == 2
    (marks,) = [line for line in drawn.splitlines() if f'fill="{picture.FOREIGN}" d=' in line]
    assert marks.count("M") == 2 + 1  # one beside the words


def test_images_of_another_dataset(fedkin, tiny: Callable[..., Path]) -> None:
    labels = [i % 10 for i in range(60)]
    tiny("ylecun/mnist", train=pictures(labels, 10), test=pictures(labels[:20], 10, seed=1))
    tiny("zalando-datasets/fashion_mnist", train=pictures(labels, 10, seed=2), test=pictures(labels[:20], 10, seed=3))
    tiny(
        "uoft-cs/cifar10", train=pictures(labels, 10, (32, 32, 3), "img"), test=pictures(labels, 10, (32, 32, 3), "img")
    )
    made = load(Data("mnist", "iid", 4, irrelevant="ood:0.25,fashion_mnist"), progress=False)
    foreign = load(Data("fashion_mnist", "iid", 4), progress=False)
    ((x, _),) = train(made, relevant=False)
    assert all((foreign.x == image).flatten(1).all(1).any() for image in x)
    code, _, err = fedkin("data", "show", "mnist", "--clients", "4", "--irrelevant", "ood:0.25,cifar10")
    assert code == 2
    assert "cifar10 has samples of shape 3 x 32 x 32, not 1 x 28 x 28 as mnist has" in err


def test_tiny_odd_and_even_images_are_trained_on(fedkin, tmp_path: Path, tiny: Callable[..., Path]) -> None:
    labels = [i % 10 for i in range(200)]
    tiny("ylecun/mnist", train=pictures(labels, 10), test=pictures(labels[:100], 10, seed=1))
    code, _, err = fedkin(
        *("run", "sfedavg", "--data", "mnist", "--irrelevant", "odd-even", "--server-validation", "20"),
        *("--validation", "0.2", "--samples", "8", "--rounds", "2", "--out", "run"),
    )
    assert code == 0, err
    folder = tmp_path / "here" / "run" / "sfedavg" / "seed-0"
    clients = json.loads((folder / "clients.json").read_text())
    assert sum(clients["irrelevant"]) == 4
    assert clients["test"] == [5] * 10
    assert clients["train"] == [8] * 10
    assert json.loads((folder / "experiment.json").read_text())["resolved"]["classes"] == 5
