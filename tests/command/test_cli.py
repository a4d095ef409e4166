"""The command line as a user meets it: what it prints and writes, and one clear sentence for each kind of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fedkin as fk
from fedkin.command import play
from fedkin.runs.run import Run
from fedkin.runs.settings import with_settings

QUICK = ["--data", "digits", "--clients", "6", "--rounds", "4", "--evaluate-every", "2"]


def settings(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


def test_run_writes_what_the_documentation_names(fedkin, tmp_path: Path) -> None:
    outcome = fedkin("run", "fedavg", *QUICK, "--seeds", "2", "--out", "here")
    assert outcome.code == 0, outcome.err
    seed = tmp_path / "here" / "fedavg" / "seed-1"
    written = {path.name for path in seed.iterdir()}
    assert written >= {"experiment.json", "rounds.jsonl", "selected.bin", "accuracy-post.bin", "summary.json"}
    assert "clients.json" in written
    assert len(list((seed / "checkpoints").glob("*.safetensors"))) >= 1
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert summary["seeds"] == [0, 1]
    assert 0.0 <= summary["accuracy"]["post"]["macro"]["last"] <= 1.0
    assert set(summary["accuracy"]["global"]["micro"]) == {"last", "last10", "best", "validated"}
    assert summary["spread"]["post"]["macro"]["last"] >= 0.0
    size = 24 * 650 * 4
    cost = {"uploads": 24, "downloads": 24, "bytes_up": size, "bytes_down": size, "client_rounds": 24}
    assert summary["cost"] == cost
    assert set(summary["time"]) == {"train_s", "mix_s", "evaluate_s", "total_s"}
    assert "clients/s" in outcome.err
    assert "here" in outcome.err


def test_json_prints_the_summary_and_nothing_else(fedkin, tmp_path: Path) -> None:
    outcome = fedkin("run", "local", *QUICK, "--json", "--out", "here")
    assert json.loads(outcome.out) == json.loads((tmp_path / "here" / "summary.json").read_text())


def test_compare_always_adds_local_and_prints_one_table(fedkin, tmp_path: Path) -> None:
    outcome = fedkin("compare", "fedavg", "fedprox", *QUICK, "--seeds", "2", "--out", "here")
    assert outcome.code == 0, outcome.err
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert list(summary["methods"]) == ["local", "fedavg", "fedprox"]
    against = summary["against_local"]["fedavg"]
    gains = [
        Run(tmp_path / "here" / "fedavg" / f"seed-{k}").accuracy("post")[-1]
        - Run(tmp_path / "here" / "local" / f"seed-{k}").accuracy("post")[-1]
        for k in (0, 1)
    ]
    assert against["better"] == pytest.approx((np.stack(gains) > 0).mean())
    assert against["worse"] == pytest.approx((np.stack(gains) < 0).mean())
    for word in ("local", "fedavg", "fedprox", "post macro", "post micro", "uploads", "seconds"):
        assert word in outcome.out
    shown = f"{100 * summary['methods']['fedavg']['accuracy']['post']['macro']['last']:.2f}"
    assert shown in outcome.out


def test_each_budget_has_a_local_and_the_tables_say_which(fedkin, tmp_path: Path) -> None:
    outcome = fedkin("compare", "fedacs", "fedavg", "fedprox", *QUICK, "--out", "here")
    other = "local@batch=10@epochs=5@eta=0.01"
    lines = [line.split() for line in outcome.out.splitlines()]
    assert [line[-3] for line in lines if line[:1] == ["fedacs"]] == [other]
    assert [line[-3] for line in lines if line[:1] == ["fedavg"]] == ["local"]
    assert f"<td>{other}</td>" in (tmp_path / "here" / "report.html").read_text()
    assert "before comparing the two" not in outcome.err
    assert outcome.err.index("p=0.9 and 6 clients") < outcome.err.index("local seed 0"), "said before the first run"


def test_the_answer_for_each_site_comes_first(fedkin, tmp_path: Path) -> None:
    outcome = fedkin("compare", "fedavg", *QUICK, "--splits", "2", "--out", "here")
    first, *rest = outcome.out.splitlines()
    assert " of 6 sites: join" in first
    assert sum(line.startswith("Client ") for line in rest) == 6
    assert "over 1 seed x 2 splits" in outcome.out
    page = (tmp_path / "here" / "report.html").read_text()
    assert page.index("Is it worth joining?") < page.index("Methods side by side")
    assert fedkin("compare", "fedavg", *QUICK, "--splits", "0").code == 2


def test_what_if_some_sites_were_not_there(fedkin, tmp_path: Path) -> None:
    assert fedkin("compare", "fedavg", *QUICK, "--out", "here").code == 0
    outcome = fedkin("what-if", "here", "--without", "2", "--without", "5")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("Without Clients 2 and 5: ")
    assert sum(line.strip().startswith("Client ") for line in outcome.out.splitlines()) == 4
    folder = tmp_path / "here" / "what-if" / "without-2+5"
    assert json.loads((folder / "effects.json").read_text())["sites"][0].keys() >= {"site", "method", "gain", "low"}
    before = (folder / "local" / "seed-0" / "models.safetensors").stat().st_mtime_ns
    assert fedkin("what-if", "here", "--without", "5", "--without", "2").out == outcome.out
    assert (folder / "local" / "seed-0" / "models.safetensors").stat().st_mtime_ns == before, "it is not run again"
    wrong = fedkin("what-if", "here", "--without", "Hospital 4")
    assert wrong.code == 2
    assert "site" in wrong.err


def test_what_if_each_site_in_turn_was_not_there(fedkin, tmp_path: Path) -> None:
    assert fedkin("compare", "fedavg", "--data", "heart", "--rounds", "2", "--out", "here").code == 0
    outcome = fedkin("what-if", "here")
    assert outcome.code == 0, outcome.err
    assert "4 comparisons, 8 runs to play" in outcome.err
    for site in ("cleveland", "hungarian", "switzerland", "va"):
        assert sum(line.strip().startswith(site) for line in outcome.out.splitlines()) == 1
        stored = json.loads((tmp_path / "here" / "what-if" / f"without-{site}" / "effects.json").read_text())
        assert site not in [effect["site"] for effect in stored["sites"]]


def test_no_name_or_number_of_a_comparison_is_cut(fedkin) -> None:
    words = ["--irrelevant", "flip:0.3", "--seeds", "2", "--out", "here"]
    outcome = fedkin("compare", "pfedre_aligned", "fedmcsa_without_mcsa", *QUICK, *words)
    assert outcome.code == 0, outcome.err
    assert "…" not in outcome.out
    assert "pfedre_aligned: filter of irrelevant clients, last round: precision" in " ".join(outcome.out.split())
    assert "known to be irrelevant" in " ".join(outcome.out.split())


def test_a_setting_can_put_another_part_in_place(fedkin, tmp_path: Path) -> None:
    words = settings("keep=UpdateDistance", "keep.metric=l2", "select=Dismiss", "select.after=2")
    outcome = fedkin("run", "fedavg", *QUICK, *words, "--out", "here")
    assert outcome.code == 0, outcome.err
    method = Run(tmp_path / "here" / "fedavg" / "seed-0").experiment["method"]
    assert method["keep"] == {"is": "UpdateDistance", "metric": "l2", "min_gap": None}
    assert method["select"]["is"] == "Dismiss"
    assert method["select"]["after"] == 2
    server = fk.methods.kin().collaborate
    assert with_settings(server, ["kin=null"]).kin is None
    assert with_settings(server, ["kin=ComponentAttention", "kin.sigma=3"]).kin == fk.collaborate.ComponentAttention(
        3.0
    )
    with pytest.raises(fk.BadInput, match="'base' is a part: one of Ahead"):
        with_settings(fk.methods.fedper(), ["collaborate.base=null"])
    for wrong, sentence in {"keep=Nobody": "one of Alignment, Everyone", "keep=SGD": "one of Alignment"}.items():
        refused = fedkin("run", "fedavg", *QUICK, "--set", wrong, "--out", "there")
        assert refused.code == 2
        assert sentence in refused.err


def test_settings_reach_the_parts_and_only_the_methods_that_have_them(fedkin, tmp_path: Path) -> None:
    words = settings("train.eta=0.5", "train.lam=2", "train.steps=null", "train.epochs=1")
    words += settings("select.fraction=0.5", "select.count=null")
    outcome = fedkin("compare", "fedavg", "fedprox", *QUICK, *words, "--out", "here")
    assert outcome.code == 0, outcome.err
    prox = Run(tmp_path / "here" / "fedprox" / "seed-0").experiment["method"]
    assert prox["train"]["lam"] == 2
    assert prox["train"]["steps"] is None
    assert prox["train"]["epochs"] == 1
    assert prox["select"] == {"is": "Uniform", "count": None, "fraction": 0.5}
    alone = Run(tmp_path / "here" / "local" / "seed-0").experiment["method"]
    assert alone["train"]["eta"] == 0.5, "Local trains with the rate of the methods it stands beside"


def test_a_saved_experiment_and_a_toml_file_run_again(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedprox", *QUICK, "--set", "train.lam=3", "--out", "one")
    saved = tmp_path / "one" / "fedprox" / "seed-0" / "experiment.json"
    assert fedkin("run", str(saved), "--out", "two").code == 0
    one, two = (Run(tmp_path / name / "fedprox" / "seed-0").summary for name in ("one", "two"))
    assert one["accuracy"] == two["accuracy"]
    toml = 'method = "fedprox"\nrounds = 4\nevaluate_every = 2\n[data]\nname = "digits"\nclients = 6\n'
    (tmp_path / "e.toml").write_text(toml)
    assert fedkin("run", "e.toml", "--set", "train.lam=3", "--out", "three").code == 0
    assert Run(tmp_path / "three" / "fedprox" / "seed-0").summary["accuracy"] == one["accuracy"]


def test_methods_and_data_list_and_show(fedkin, tmp_path: Path) -> None:
    methods = " ".join(fedkin("methods").out.split())
    assert "fedprox" in methods
    assert "experts=[alone,tuned,kin,common,shares]" in methods, "a list is no markup"
    assert "shakespeare" in fedkin("data", "list").out
    outcome = fedkin("data", "show", "digits", "--partition", "classes:2", "--clients", "5")
    assert outcome.code == 0, outcome.err
    picture = tmp_path / outcome.out.strip().splitlines()[-1].removeprefix("Picture: ")
    assert "<svg" in picture.read_text()


BAD = {
    "unknown method": (["run", "fedavgg"], "fedavg"),
    "unknown method in compare": (["compare", "fedavg", "fedprx"], "fedprox"),
    "unknown dataset": (["run", "fedavg", "--data", "mnits"], "mnist"),
    "unknown partition": (["run", "fedavg", "--data", "digits", "--partition", "dirichlt:1"], "dirichlet"),
    "unknown model": (["run", "fedavg", *QUICK, "--model", "lnet"], "lenet"),
    "unknown engine": (["run", "fedavg", *QUICK, "--engine", "stack"], "stacked"),
    "unknown option": (["run", "fedavg", "--round", "3"], "--round"),
    "unknown field": (["run", "fedavg", *QUICK, "--set", "train.etta=1"], "eta"),
    "unknown part": (["run", "fedavg", *QUICK, "--set", "trian.eta=1"], "train"),
    "setting that is no setting": (["run", "fedavg", *QUICK, "--set", "train.eta"], "train.eta=0.1"),
    "setting of another type": (["run", "fedavg", *QUICK, "--set", "train.eta=fast"], "eta"),
    "setting of no method": (["compare", "fedavg", "fedprox", *QUICK, "--set", "keep.much=1"], "keep.much"),
    "negative rate": (["run", "fedavg", *QUICK, "--set", "train.eta=-1"], "positive"),
    "fraction above one": (["run", "fedavg", *QUICK, "--set", "select.fraction=1.5"], "at most 1"),
    "momentum of one": (["run", "fedavg", *QUICK, "--set", "train.momentum=1"], "momentum"),
    "a preset of no rounds": (["preset", "adafl/table1", "--rounds", "0"], "rounds must be"),
    "rounds 0": (["run", "fedavg", "--data", "digits", "--rounds", "0"], "rounds"),
    "seeds 0": (["run", "fedavg", *QUICK, "--seeds", "0"], "at least 1"),
    "seeds that are words": (["run", "fedavg", *QUICK, "--seeds", "many"], "0,5,7"),
    "evaluate-every 0": (["run", "fedavg", "--data", "digits", "--evaluate-every", "0"], "evaluate_every"),
    "more clients than samples": (["run", "fedavg", "--data", "digits", "--clients", "5000"], "5000"),
    "missing own data": (["run", "fedavg", "--data", "./nowhere.csv"], "nowhere.csv"),
    "model too deep for the data": (["run", "fedavg", *QUICK, "--model", "lenet"], "16x16"),
    "resume nothing": (["run", "fedavg", *QUICK, "--out", "nowhere", "--resume"], "nowhere"),
    "resume without a folder": (["run", "fedavg", *QUICK, "--resume"], "--out"),
    "a missing experiment file": (["run", "gone.json"], "gone.json"),
    "report on nothing": (["report", "nowhere"], "nowhere"),
    "an infinite rate": (["run", "fedavg", *QUICK, "--set", "train.eta=Infinity"], "finite"),
    "half a client": (["run", "fedavg", *QUICK, "--set", "select.count=2.5"], "count"),
    "a name that is a path": (["run", "fedavg", *QUICK, "--set", "name=../up"], "name"),
    "another device": (["run", "fedavg", *QUICK, "--device", "meta"], "cpu or cuda"),
    "a comparison without tests": (["compare", "fedavg", "--data", "digits", "--test", "0"], "test samples"),
    "S-FedAvg without samples": (["run", "sfedavg", *QUICK], "--server-validation"),
    "no such device": (["run", "fedavg", *QUICK, "--device", "abacus"], "abacus"),
}


BAD |= {
    "two parts with one name of a field": (["run", "apfl@select=Attention", *QUICK, "--set", "alpha=1"], "write which"),
    "a sweep in run": (["run", "fedprox@lam=1,2", *QUICK], "use fedkin compare"),
    "an arm under two names": (["compare", "fedprox@lam=1", "fedprox@train.lam=1.0", *QUICK], "is the same as"),
    "a module that is not there": (["compare", "nowhere:method", *QUICK], "no module 'nowhere'"),
    "a folder of the system": (["run", "fedavg", *QUICK, "--out", "/proc/here"], "cannot be made"),
    "a folder in a file": (["run", "fedavg", *QUICK, "--out", "/dev/null/here"], "cannot be made"),
    "an unknown command": (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
    "a table of another kind": (["compare", "fedavg", *QUICK, "--export", "t.docx"], ".csv, .tex or .md"),
    "an experiment of another kind": (["run", "fedavg", *QUICK, "--save", "e.yaml"], ".toml or .json"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_exit_code_two_and_writes_nothing(fedkin, tmp_path: Path, name: str) -> None:
    words, expected = BAD[name]
    outcome = fedkin(*words)
    assert outcome.code == 2, outcome.out + outcome.err
    assert expected in outcome.err
    assert "Traceback" not in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1, outcome.err
    assert list(tmp_path.iterdir()) == [], "nothing may be written"


def test_an_existing_folder_is_not_written_into(fedkin, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "precious.txt").write_text("mine")
    outcome = fedkin("run", "fedavg", *QUICK, "--out", "here")
    assert outcome.code == 2
    assert "exists already" in outcome.err
    assert [p.name for p in (tmp_path / "here").iterdir()] == ["precious.txt"]
    outcome = fedkin("run", "--resume", "here")
    assert outcome.code == 2
    assert "not a run" in outcome.err


def test_default_folders_are_never_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    experiment = fk.Experiment(fk.methods.fedavg())
    assert play.fresh_folder("fedavg", experiment)() != play.fresh_folder("fedavg", experiment)()


FILES = {
    "e.json": ["{", "[]", '{"method": "fedavg", "roundz": 3}', '{"rounds": 3}'],
    "e.toml": [
        f'method = "fedavg"\n{line}\n[data]\nname = "digits"\n'
        for line in ('seeds = "a"', "seeds = -1", "seeds = 2.5", 'seed = "x"', "seeds = [0, 0]", "engine = 3")
    ]
    + ['method = "fedavg"\nslot_memory = "a"\n'],
}


@pytest.mark.parametrize(("name", "content"), [(name, content) for name in FILES for content in FILES[name]])
def test_a_broken_experiment_file_is_one_sentence(fedkin, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    outcome = fedkin("run", name)
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
