"""Irrelevant clients on the command line: what is refused, recorded, resumed and drawn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fedkin.data import Data, load, picture
from fedkin.data.scenarios import random_clients

from .conftest import pictures

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
    "scale:0.1,inf": "factor of their updates must be a number",
    "sign:0.3,2": "at most 1 argument, not 2",
    "alie:0.2,0": "number of deviations must be above 0",
    "target:0.2,-1": "class must be a whole number of at least 0",
    "target:0.2,10": "digits has the classes 0 to 9, and no class 10",
    "odd_even": "10 classes and an official test split, such as mnist, not digits",
    "odd_even:6": "both numbers of clients",
    "odd_even:0,4": "number of relevant clients must be a whole number of at least 1",
    "odd_even:6,0": "number of irrelevant clients must be a whole number of at least 1",
}


SHOW, RUN, COMPARE = ("data", "show"), ("run", "fedavg", "--data"), ("compare", "fedavg", "--data")


@pytest.mark.parametrize(
    ("command", "spec"), [*((SHOW, spec) for spec in BAD), *((other, "ood:0.1,synthetic") for other in (RUN, COMPARE))]
)
def test_bad_input_is_one_sentence(fedkin, tmp_path: Path, command: tuple[str, ...], spec: str) -> None:
    code, _, err = fedkin(*command, "digits", "--irrelevant", spec)
    assert code == 2, err
    assert BAD[spec] in err
    said = [line for line in err.splitlines() if not line.endswith(" s ...")]  # on a loaded machine loading takes long
    assert len(said) == 1, err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", [("--clients", "10"), ("--partition", "iid")])
def test_odd_even_makes_its_own_clients(fedkin, option: tuple[str, str]) -> None:
    code, _, err = fedkin("data", "show", "mnist", "--irrelevant", "odd_even", *option)
    assert code == 2
    assert "'odd_even' makes its own clients; leave 'partition' and 'clients' out" in err


def test_a_run_records_who_is_irrelevant_and_resumes_only_that(fedkin, tmp_path: Path) -> None:
    words = ["run", "fedavg", "--data", "digits", "--clients", "10", "--rounds", "2", "--out", "run"]
    code, _, err = fedkin(*words, "--irrelevant", "flip:0.2")
    assert code == 0, err
    folder = tmp_path / "run" / "fedavg" / "seed-0"
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
    clients = json.loads((tmp_path / "run" / "fedavg" / "seed-0" / "clients.json").read_text())
    assert "irrelevant" not in clients


def test_irrelevant_clients_are_marked_in_the_table_and_the_picture(fedkin, tmp_path: Path) -> None:
    code, out, err = fedkin("data", "show", "digits", "--clients", "10", "--irrelevant", "flip:0.2")
    assert code == 0, err
    assert "2 of 10 clients are irrelevant (flip:0.2), marked *" in out
    rows = [line for line in out.splitlines() if line[:1].isdigit() and "clients" not in line]
    assert [line.split()[1] == "*" for line in rows] == random_clients(10, 2, 0).tolist()
    assert len({len(line) for line in rows}) == 1
    drawn = (tmp_path / "digits-flip-0.2.svg").read_text()
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
    assert made.irrelevant is not None
    x = made.x[made.train[int(made.irrelevant.nonzero())]]
    assert all((foreign.x == image).flatten(1).all(1).any() for image in x)
    code, _, err = fedkin("data", "show", "mnist", "--clients", "4", "--irrelevant", "ood:0.25,cifar10")
    assert code == 2
    assert "cifar10 has samples of shape 3 x 32 x 32, not 1 x 28 x 28 as mnist has" in err
