"""The arms of a comparison: names, files, import paths, settings of their own and sweeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import fedkin as fk
from fedkin.comparison.arms import LONGEST, NAME, read_arms
from fedkin.comparison.experiment_files import said_by_files
from fedkin.comparison.targets import target_parts
from fedkin.runs import part_json

OWN = '''
from dataclasses import dataclass, replace
import fedkin as fk

@dataclass(frozen=True)
class Half(fk.collaborate.Mean):
    """Half of the mean."""
    extra: fk.fields.Share = 0.5

ready = replace(fk.methods.fedavg(), name="ready", collaborate=Half())

def made(count=3):
    return replace(fk.methods.fedavg(count=count), name="made", collaborate=Half(extra=0.25))

def asks(what):
    return ready

def wrong():
    return fk.methods.fedavg(eta=-1.0)

def nested():
    @dataclass(frozen=True)
    class Inside(fk.collaborate.Mean):
        pass
    return replace(ready, collaborate=Inside())

number = 3
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the user's in the folder one stands in."""
    (tmp_path / "own_arms.py").write_text(OWN)
    (tmp_path / "broken_arms.py").write_text("import fedkin\n\ndef f(:\n    pass\n")
    (tmp_path / "raising_arms.py").write_text("\nraise RuntimeError('no luck\\ntoday')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("own_arms", "broken_arms", "raising_arms"):
        sys.modules.pop(name, None)


def names(*targets: str, settings: tuple[str, ...] = ()) -> list[str]:
    return [method.name for method in read_arms(targets, settings)]


def test_a_sweep_is_an_arm_a_value_named_by_what_differs() -> None:
    arms = read_arms(["fedavg", "fedprox@train.lam=0.1,1,10"])
    assert [arm.name for arm in arms] == [
        "fedavg",
        "fedprox@train.lam=0.1",
        "fedprox@train.lam=1",
        "fedprox@train.lam=10",
    ]
    assert [arm.train.values()["lam"] for arm in arms[1:]] == [0.1, 1.0, 10.0]
    assert replace(arms[1], name="fedprox") == fk.methods.fedprox(lam=0.1)


def test_several_sweeps_are_all_pairs() -> None:
    assert names("fedprox@lam=0.1,1@eta=0.3,0.4") == [
        f"fedprox@train.lam={lam}@train.eta={eta}" for lam in ("0.1", "1") for eta in ("0.3", "0.4")
    ]


def test_a_list_in_brackets_is_one_value() -> None:
    (arm,) = read_arms(["attn@select.fraction=Listed@select.fraction.fractions=[0.1,0.2]"])
    assert arm.select == fk.select.Attention(0.9, fk.select.Listed((0.1, 0.2)))
    assert arm.name == "attn@select.fraction=Listed@select.fraction.fractions=0.1+0.2"
    assert read_arms(["attn@fraction=0.3"])[0].select == fk.select.Attention(0.9, 0.3)
    assert read_arms(["active@select=Attention@fraction=Steps@levels=3"])[0].select.values()["fraction"].levels == 3
    assert len(read_arms(["attn@select.fraction=Listed@select.fraction.fractions=[0.1,0.2],[0.3]"])) == 2


def test_settings_that_exclude_each_other_go_together() -> None:
    (arm,) = read_arms(["fedavg@steps=null@epochs=2@fraction=0.5"])
    assert (arm.train.values()["steps"], arm.train.values()["epochs"]) == (None, 2)
    assert arm.select == fk.select.Uniform(fraction=0.5)


def test_every_name_is_a_good_folder_on_every_system() -> None:
    targets = ["fedprox@start=sent", "fedavg@keep=Relevance@rate=1e-3", "fedavg@epochs=3", "fedmcsa@size_weighted=true"]
    for name in names(*targets):
        assert NAME.fullmatch(name)
        assert not set(name) & set('/\\:*?"<>| ')
    for bad in ("con", "a.", "x" * (LONGEST + 1), "%C3"):
        with pytest.raises(fk.BadInput, match="is a folder too"):
            read_arms([f"fedavg@name={bad}"])


def test_a_short_name_finds_the_only_field_and_refuses_two() -> None:
    (arm,) = read_arms(["fedavg"], ["eta=0.5"])
    assert arm.train.values()["eta"] == 0.5
    with pytest.raises(fk.BadInput, match=r"'alpha' may be select\.alpha or train\.alpha; write which"):
        read_arms(["apfl@select=Attention"], ["alpha=0.5"])
    with pytest.raises(fk.BadInput, match=r"did you mean .*eta"):
        read_arms(["fedavg"], ["etta=0.5"])


def test_common_settings_reach_the_arms_that_have_them_but_not_what_an_arm_says_itself() -> None:
    arms = read_arms(["fedavg", "fedprox", "fedprox@lam=1"], ["train.lam=3", "eta=0.5"])
    assert [arm.train.values().get("lam") for arm in arms] == [None, 3.0, 1.0]
    assert {arm.train.values()["eta"] for arm in arms} == {0.5}
    with pytest.raises(fk.BadInput, match=r"None of fedavg, fedprox has a field 'keep.much'"):
        read_arms(["fedavg", "fedprox"], ["keep.much=1"])


def test_common_settings_reach_fields_of_a_part_that_is_put_in_place() -> None:
    """Such a setting used to be left out without a word."""
    arms = read_arms(["fedavg", "fedprox@keep=UpdateDistance"], ["keep=Relevance", "keep.samples=2", "metric=l2"])
    assert arms[0].keep == fk.keep.Relevance(samples=2)
    assert arms[1].keep == fk.keep.UpdateDistance(metric="l2")


def test_what_an_arm_sets_inside_a_part_keeps_that_part() -> None:
    arms = read_arms(["fedavg", "pfedre@keep.samples=4"], ["keep=Everyone"])
    assert arms[0].keep == fk.keep.Everyone()
    assert arms[1].keep == fk.keep.Relevance(samples=4)


REFUSED = {
    ("fedprox@lam=1", "fedprox@train.lam=1.0"): "is the same as",
    ("fedprox", "fedprox@lam=0.01,1"): "fedprox@train.lam=0.01 is the same as fedprox",
    ("fedavg", "fedprox@name=fedavg"): "have the same name, fedavg",
    ("fedavg", "fedprox@name=FedAvg"): "same name",
    ("fedprox@lam=1,select.count=5",): "an @ before each setting",
    ("fedprox@lam=1,,2",): "a value is missing",
    ("fedprox@lam=",): "a value is missing",
    ("fedprox@lam",): "followed by a setting",
    ("fedprox@",): "followed by a setting",
    ("fedproxx@lam=1",): "did you mean fedprox",
    ("fedprox@lamb=1",): "no field",
    ("nowhere_at_all:thing",): "no module 'nowhere_at_all'",
    ("gone.toml",): "gone.toml cannot be read",
}


@pytest.mark.parametrize(("targets", "sentence"), REFUSED.items(), ids=" ".join)
def test_what_cannot_be_meant_is_a_sentence(targets: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(fk.BadInput, match=sentence):
        read_arms(targets)


def test_an_import_path_is_a_method_or_a_function_that_returns_one(own: Path) -> None:
    ready, made, swept = read_arms(["own_arms:ready", "own_arms:made", "own_arms:made@extra=0.75"])
    assert [ready.name, made.name, swept.name] == ["ready", "made", "made@collaborate.extra=0.75"]
    assert [arm.collaborate.values()["extra"] for arm in (ready, made, swept)] == [0.5, 0.25, 0.75]
    stored = json.loads(json.dumps(part_json.to_json(made)))
    assert stored["collaborate"]["is"] == "own_arms:Half"
    assert part_json.from_json(stored) == made


WRONG = {
    "own_arms:redy": "own_arms.py has no 'redy'; did you mean ready",
    "own_arms:number": "gives a int, not a Method",
    "own_arms:asks": r"own_arms.py, line 15\) needs what",
    "own_arms:wrong": r"fails in .*own_arms.py, line 19: train.eta must be positive, not -1.0\.",
    "own_arms:nested": "uses a class inside a function",
    "broken_arms:f": r"fails in .*broken_arms.py, line 3: SyntaxError",
    "raising_arms:f": r"fails in .*raising_arms.py, line 2: RuntimeError: no luck today",
}


@pytest.mark.parametrize(("target", "sentence"), WRONG.items())
def test_a_mistake_in_a_users_module_is_one_sentence_with_its_line(own: Path, target: str, sentence: str) -> None:
    with pytest.raises(fk.BadInput, match=sentence) as caught:
        read_arms([target])
    assert "\n" not in str(caught.value)


def test_a_file_never_takes_the_place_of_a_library(own: Path) -> None:
    """`colorsys` is of Python, and nobody has imported it yet."""
    (own / "colorsys.py").write_text("import fedkin\nmethod = fedkin.methods.fedavg()")
    sys.modules.pop("colorsys", None)
    with pytest.raises(fk.BadInput, match=r"rename .*colorsys\.py"):
        read_arms(["colorsys:method"])


def test_a_file_of_an_experiment_or_of_a_method_only(own: Path) -> None:
    (own / "a.toml").write_text('method = "fedprox@lam=2,3"\nrounds = 7\n[data]\nname = "digits"\n')
    (own / "b.json").write_text(json.dumps(part_json.to_json(fk.methods.fedmcsa(sigma=7))))
    arms = read_arms(["a.toml", "b.json@name=seven", "b.json@sigma=8"])
    assert [arm.name for arm in arms] == [
        "fedprox@train.lam=2",
        "fedprox@train.lam=3",
        "seven",
        "fedmcsa@collaborate.sigma=8",
    ]
    (own / "c.toml").write_text('methods = ["fedavg", "own_arms:made"]\n')
    assert names("c.toml") == ["fedavg", "made"]
    for text in ('method = "a.toml"', "methods = []", 'method = "fedavg"\nmethods = ["fedprox"]', "method = 3"):
        (own / "d.toml").write_text(text)
        with pytest.raises(fk.BadInput, match=r"d\.toml"):
            read_arms(["d.toml"])


def test_the_folder_of_an_arm_is_no_setting() -> None:
    path = "runs/c/fedprox@train.lam=1/seed-0/experiment.json"
    assert target_parts(path) == (path, [])
    assert target_parts(f"{path}@eta=0.1,0.2") == (path, [("eta", ["0.1", "0.2"])])


def test_the_first_file_that_says_a_thing_is_believed_and_two_that_differ_are_refused(own: Path) -> None:
    (own / "a.toml").write_text('method = "fedavg"\nrounds = 7\n[data]\nname = "digits"\nclients = 5\n')
    (own / "b.toml").write_text('method = "fedprox"\nmodel = "dnn:8"\n')
    (own / "c.toml").write_text('method = "ditto"\nrounds = 8\n[data]\nname = "digits"\nclients = 6\n')
    found = said_by_files(["b.toml", "a.toml", "fedmcsa"], {}, {})
    assert (found["rounds"], found["model"], found["data"]["clients"]) == (7, "dnn:8", 5)
    with pytest.raises(fk.BadInput, match=r"a.toml and c.toml disagree \(rounds is 7 in one and 8"):
        said_by_files(["a.toml", "c.toml"], {}, {})
    with pytest.raises(fk.BadInput, match=r"data.clients is 5 in one and 6"):
        said_by_files(["a.toml", "c.toml"], {"rounds": 3}, {})
    assert said_by_files(["a.toml", "c.toml"], {"rounds": 3}, {"clients": 9})["data"]["clients"] == 9


def test_compare_in_python_takes_the_same_words(own: Path) -> None:
    (own / "a.toml").write_text('method = "fedprox"\nrounds = 2\nseeds = 2\n[data]\nname = "digits"\nclients = 4\n')
    found = fk.compare(["a.toml", fk.methods.fedavg(count=2), "own_arms:made@extra=0.5,1"], evaluate_every=1)
    arms = ["local", "fedprox", "fedavg", "made@collaborate.extra=0.5", "made@collaborate.extra=1"]
    assert list(found.table().index) == arms
    run = found.runs["made@collaborate.extra=1"][1]
    assert (run.experiment["rounds"], run.experiment["data"]["clients"]) == (2, 4)
    assert run.experiment["method"]["collaborate"] == {
        "is": "own_arms:Half",
        "weights": "size",
        "beta": 1.0,
        "extra": 1.0,
    }


def test_an_arm_that_is_written_twice_runs_once() -> None:
    arms = read_arms(["fedavg", "fedprox@train.lam=1", "fedprox@train.lam=0.1,1,10", "fedavg"])
    names = ["fedavg", "fedprox@train.lam=1", "fedprox@train.lam=0.1", "fedprox@train.lam=10"]
    assert [method.name for method in arms] == names
