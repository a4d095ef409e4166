import dataclasses
import json

import pytest

from fedkin.data import Data, parsed
from fedkin.data.notation import partition_argument, scenario_arguments, synthetic_arguments
from fedkin.errors import BadInput


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("iid", ("iid", [])),
        ("dirichlet:0.5", ("dirichlet", ["0.5"])),
        ("synthetic:0.5,1", ("synthetic", ["0.5", "1"])),
        ("synthetic(0.5, 1)", ("synthetic", ["0.5", "1"])),
        (" synthetic ( 0.5 ,1 ) ", ("synthetic", ["0.5", "1"])),
        ("synthetic()", ("synthetic", [])),
        ("natural:", ("natural", [])),
    ],
)
def test_both_ways_to_write_arguments_are_read(text: str, expected: tuple[str, list[str]]) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    "data",
    [
        Data(),
        Data("synthetic(0, 1)", clients=30, samples=50, seed=7),
        Data("mnist", "dirichlet:0.1", 500, test=0.2, validation=0.1, minimum=2, holdout="official"),
        Data("some/folder/patients.csv", "natural:hospital", target="diagnosis"),
        Data("mnist", irrelevant="ood:0.1,fashion_mnist"),
        Data("a.csv", features=("age", "ward"), drop=("ward",), standardise="all", task="regress"),
    ],
)
def test_a_record_survives_json(data: Data) -> None:
    assert Data(**json.loads(json.dumps(dataclasses.asdict(data)))) == data


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": ""}, "name or a path"),
        ({"name": "mnits"}, "did you mean mnist"),
        ({"name": "mnist:3"}, "takes no arguments"),
        ({"name": "synthetic:1"}, "two numbers"),
        ({"name": "synthetic(a, b)"}, "two numbers"),
        ({"name": "synthetic(-1, 0)"}, "at least 0"),
        ({"name": "synthetic(nan, 0)"}, "finite"),
        ({"partition": "dirchlet:0.5"}, "did you mean dirichlet"),
        ({"partition": "dirichlet:0"}, "a number above 0, not '0'"),
        ({"partition": "dirichlet:inf"}, "a number above 0"),
        ({"partition": "dirichlet:much"}, "a number above 0"),
        ({"partition": "dirichlet:1,2"}, "one argument, not 2"),
        ({"partition": "classes:0"}, "at least 1"),
        ({"partition": "shards:1.5"}, "whole number"),
        ({"partition": "iid:3"}, "no argument"),
        ({"partition": "fedmcsa:mnits"}, "did you mean mnist"),
        ({"partition": 3}, "must be text"),
        ({"clients": 0}, "'clients' must be a whole number of at least 1"),
        ({"clients": True}, "'clients'"),
        ({"clients": 2.0}, "'clients'"),
        ({"samples": -1}, "'samples'"),
        ({"minimum": -1}, "'minimum' must be a whole number of at least 0"),
        ({"seed": None}, "'seed'"),
        ({"seed": -1}, "'seed'"),
        ({"seed": 2**32}, "below 2**32 - 1"),
        ({"test": 1.0}, "'test' must be a fraction"),
        ({"test": "a"}, "'test' must be a fraction"),
        ({"validation": -0.1}, "'validation' must be a fraction"),
        ({"test": 0.5, "validation": 0.5}, "leave nothing to train on"),
        ({"holdout": "offical"}, "did you mean official"),
        ({"client": "hospital"}, "own data"),
        ({"task": "regress"}, "own data"),
        ({"drop": ("age",)}, "are for tables"),
        ({"standardise": "all"}, "are for tables"),
        ({"name": "a.csv", "standardise": "sites"}, "did you mean site"),
        ({"name": "a.csv", "task": "regression"}, "did you mean regress"),
        ({"name": "a.csv", "features": "age"}, "'features' must be a list of columns, not 'age'"),
        ({"name": "a.csv", "drop": ()}, "'drop' must be a list of columns"),
        ({"name": "a/b.csv", "client": ""}, "name of a column"),
        ({"irrelevant": 0.2}, "'irrelevant' must be text, not 0.2"),
        ({"irrelevant": ""}, "There is no kind of irrelevant clients called ''"),
        ({"irrelevant": "flop:0.2"}, "did you mean flip"),
        ({"irrelevant": "flip"}, "needs the share of irrelevant clients"),
        ({"irrelevant": "flip:0.1,"}, "share of their samples must be a number above 0 and up to 1"),
        ({"irrelevant": "ood:1.0"}, "share of the clients must be a number above 0 and below 1"),
        ({"irrelevant": "ood:0.1,permute"}, "did you mean permuted"),
        ({"irrelevant": "odd_even:6,4,2"}, "at most 2 arguments, not 3"),
        ({"irrelevant": "odd-even", "clients": 10}, "makes its own clients"),
        ({"irrelevant": "odd_even", "partition": "iid"}, "makes its own clients"),
        ({"name": "a/b.csv", "client": "ward", "partition": "natural:hospital"}, "two different columns"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refusal:
        Data(**arguments)  # type: ignore[arg-type]
    assert sentence in str(refusal.value)
    assert str(refusal.value)[-1] in ".?"


@pytest.mark.parametrize("name", ["a/b", "./mnist", "table.csv", "table.PARQUET", "x.npz", "."])
def test_paths_are_own_data(name: str) -> None:
    assert Data(name).own
    assert not Data("mnist").own


def test_partition_arguments_have_defaults() -> None:
    assert partition_argument("dirichlet") == ("dirichlet", 0.5)
    assert partition_argument("classes") == ("classes", 2)
    assert partition_argument("shards(3)") == ("shards", 3)
    assert partition_argument("natural:hospital") == ("natural", "hospital")
    assert synthetic_arguments("synthetic") == (0.5, 0.5)
    assert synthetic_arguments("synthetic:0,1") == (0.0, 1.0)


def test_the_dataset_is_named_without_arguments() -> None:
    assert Data("synthetic(0, 1)").dataset == "synthetic"
    assert Data("folder/patients.csv").dataset == "patients"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flip:0.2", ("flip", [0.2, 1.0])),
        ("flip(0.1, 0.2)", ("flip", [0.1, 0.2])),
        ("flip:0.1,1", ("flip", [0.1, 1.0])),
        ("ood:0.1", ("ood", [0.1, "permuted"])),
        ("ood:0.1,noise", ("ood", [0.1, "noise"])),
        ("ood:0.1, fashion_mnist", ("ood", [0.1, "fashion_mnist"])),
        ("odd_even", ("odd_even", [6, 4])),
        ("odd-even:5,5", ("odd_even", [5, 5])),
    ],
)
def test_kinds_of_irrelevant_clients_are_read(text: str, expected: tuple[str, list[object]]) -> None:
    assert scenario_arguments(text) == expected
