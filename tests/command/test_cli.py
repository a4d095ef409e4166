"""The command line as a user meets it: what it prints and writes, and one clear sentence for each kind of bad input."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small import Until

import fedkin as fk
from fedkin.command import cli
from fedkin.runs.recorder import Recorder
from fedkin.runs.run import Run

QUICK = ["--data", "digits", "--clients", "6", "--rounds", "4", "--evaluate-every", "2"]


class Outcome:
    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def fedkin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Calls the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fedkin", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return call


def test_run_writes_what_the_documentation_names(fedkin, tmp_path: Path) -> None:
    outcome = fedkin("run", "fedavg", *QUICK, "--seeds", "2", "--out", "here")
    assert outcome.code == 0, outcome.err
    seed = tmp_path / "here" / "fedavg" / "seed-1"
    for name in (
        "experiment.json",
        "rounds.jsonl",
        "selected.bin",
        "accuracy-post.bin",
        "summary.json",
        "clients.json",
    ):
        assert (seed / name).exists(), name
    assert len(list((seed / "checkpoints").glob("*.safetensors"))) >= 1
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert summary["seeds"] == [0, 1]
    assert 0.0 <= summary["accuracy"]["post"]["macro"]["last"] <= 1.0
    assert set(summary["accuracy"]["global"]["micro"]) == {"last", "last10", "best", "validated"}
    assert summary["spread"]["post"]["macro"]["last"] >= 0.0
    assert summary["cost"] == {
        "uploads": 24,
        "downloads": 24,
        "bytes_up": 24 * 650 * 4,
        "bytes_down": 24 * 650 * 4,
        "client_rounds": 24,
    }
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


def test_unequal_training_is_said_in_the_terminal_and_the_report(fedkin, tmp_path: Path) -> None:
    outcome = fedkin("compare", "fedavg", "fedacs", *QUICK, "--out", "here")
    sentence = "fedacs trains 5 epoch(s) of batch 10 at rate 0.01 a round, Local 20 steps of batch 20 at rate 0.02"
    assert sentence in outcome.err
    assert sentence in (tmp_path / "here" / "report.html").read_text()
    assert "fedavg trains" not in outcome.err


def test_no_name_or_number_of_a_comparison_is_cut(fedkin) -> None:
    words = ["--irrelevant", "flip:0.3", "--seeds", "2", "--out", "here"]
    outcome = fedkin("compare", "pfedre_aligned", "fedmcsa_without_mcsa", *QUICK, *words)
    assert outcome.code == 0, outcome.err
    assert "…" not in outcome.out
    assert "pfedre_aligned: filter of irrelevant clients, last round: precision" in " ".join(outcome.out.split())
    assert "known to be irrelevant" in " ".join(outcome.out.split())


def test_a_setting_can_put_another_part_in_place(fedkin, tmp_path: Path) -> None:
    words = [
        "--set",
        "keep=UpdateDistance",
        "--set",
        "keep.metric=l2",
        "--set",
        "select=Dismiss",
        "--set",
        "select.after=2",
    ]
    outcome = fedkin("run", "fedavg", *QUICK, *words, "--out", "here")
    assert outcome.code == 0, outcome.err
    method = Run(tmp_path / "here" / "fedavg" / "seed-0").experiment["method"]
    assert method["keep"] == {"is": "UpdateDistance", "metric": "l2", "min_gap": None}
    assert method["select"]["is"] == "Dismiss"
    assert method["select"]["after"] == 2
    for wrong, sentence in {"keep=Nobody": "one of Alignment, Everyone", "keep=SGD": "one of Alignment"}.items():
        refused = fedkin("run", "fedavg", *QUICK, "--set", wrong, "--out", "there")
        assert refused.code == 2
        assert sentence in refused.err


def test_settings_reach_the_parts_and_only_the_methods_that_have_them(fedkin, tmp_path: Path) -> None:
    words = [
        "--set",
        "train.eta=0.5",
        "--set",
        "train.lam=2",
        "--set",
        "select.fraction=0.5",
        "--set",
        "train.steps=null",
        "--set",
        "train.epochs=1",
        "--set",
        "select.count=null",
    ]
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
    assert "fedprox" in fedkin("methods").out
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
    "a preset of no rounds": (["preset", "adafl-mnist-reduced", "--rounds", "0"], "rounds must be"),
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


def test_resuming_another_experiment_is_refused_and_loses_nothing(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    seed = tmp_path / "here" / "fedavg" / "seed-0"
    (seed / "summary.json").unlink()
    before = {p: p.read_bytes() for p in seed.rglob("*") if p.is_file()}
    outcome = fedkin("run", "fedavg", *QUICK, "--set", "train.eta=0.5", "--out", "here", "--resume")
    assert outcome.code == 2
    assert "another experiment" in outcome.err
    assert {p: p.read_bytes() for p in seed.rglob("*") if p.is_file()} == before


def test_resume_with_more_rounds_goes_on_and_with_fewer_is_refused(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    assert fedkin("run", "here", "--resume", "--rounds", "8").code == 0
    assert Run(tmp_path / "here" / "fedavg" / "seed-0").summary["rounds"] == 8
    fedkin("run", "fedavg", *QUICK[:-4], "--rounds", "8", "--evaluate-every", "2", "--out", "whole")
    one, two = (Run(tmp_path / name / "fedavg" / "seed-0").summary for name in ("here", "whole"))
    assert one["accuracy"] == two["accuracy"]


def test_resume_with_other_versions_warns(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    path = tmp_path / "here" / "fedavg" / "seed-0" / "experiment.json"
    stored = json.loads(path.read_text())
    stored["resolved"]["versions"]["torch"] = "1.0"
    path.write_text(json.dumps(stored))
    outcome = fedkin("run", "here", "--resume", "--rounds", "6")
    assert outcome.code == 0
    assert "torch 1.0" in outcome.err


@pytest.mark.parametrize("content", ["{", "[]", '{"method": "fedavg", "roundz": 3}', '{"rounds": 3}'])
def test_a_broken_experiment_file_is_one_sentence(fedkin, tmp_path: Path, content: str) -> None:
    (tmp_path / "e.json").write_text(content)
    outcome = fedkin("run", "e.json")
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1


def test_a_full_disk_is_one_sentence_and_the_run_can_go_on(
    fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Recorder.append
    count = 0

    def full(self: Recorder, name: str, content: bytes) -> None:
        nonlocal count
        count += 1
        if count > 7:
            raise OSError(28, "No space left on device", str(self.folder.path / name))
        whole(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "append", full)
        outcome = fedkin("run", "fedavg", *QUICK, "--out", "here")
    assert outcome.code == 2
    assert "No space" in outcome.err
    assert fedkin("run", "here", "--resume").code == 0
    assert fedkin("run", "fedavg", *QUICK, "--out", "whole").code == 0
    one, two = (Run(tmp_path / name / "fedavg" / "seed-0").summary for name in ("here", "whole"))
    assert one["accuracy"] == two["accuracy"]


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = ["run", "local", "--data", "digits", "--rounds", "100000", "--out", "here"]
    command = [shutil.which("fedkin") or str(Path(sys.executable).parent / "fedkin"), *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    began = time.monotonic()
    while not (tmp_path / "here" / "local" / "seed-0" / "rounds.jsonl").exists():
        assert process.poll() is None
        assert time.monotonic() - began < 60
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Go on with: fedkin run --resume here" in error
    assert list((tmp_path / "here" / "local" / "seed-0" / "checkpoints").glob("*.json"))


def test_resume_says_what_differs_and_changes_nothing(fedkin, tmp_path: Path) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    before = {p: p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()}
    for words, sentence in [
        (["run", "fedavg", *QUICK, "--out", "here", "--resume", "--set", "train.eta=0.5"], "method.train.eta is 0.02"),
        (["run", "fedavg", *QUICK, "--out", "here", "--resume", "--seeds", "5,6"], "holds fedavg seed 0, not"),
        (["run", "local", *QUICK, "--out", "here", "--resume"], "holds fedavg seed 0, not local"),
        (["run", "here", "--resume", "--model", "dnn:3", "--set", "train.eta=9"], "leave --model, --set out"),
        (["run", "here", "--resume", "--rounds", "2"], "ask for more"),
        (["run", "nowhere", "--resume"], "no folder nowhere"),
    ]:
        outcome = fedkin(*words)
        assert outcome.code == 2, outcome.out
        assert sentence in outcome.err
    assert {p: p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()} == before


def test_a_stopped_extension_is_not_forgotten(fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fedkin("compare", "fedavg", *QUICK, "--out", "here")
    watching = cli.Progress.watching

    def stops(self, one, number, of):  # the second run is stopped two rounds after it went on
        return Until(6) if number == 2 else watching(self, one, number, of)

    with monkeypatch.context() as patch:
        patch.setattr(cli.Progress, "watching", stops)
        assert fedkin("run", "here", "--resume", "--rounds", "10").code == 130
    assert fedkin("run", "here", "--resume").code == 0
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert [method["rounds"] for method in summary["methods"].values()] == [10, 10]
    assert Run(tmp_path / "here" / "fedavg" / "seed-0").experiment["rounds"] == 10


def test_resume_notices_other_data(fedkin, tmp_path: Path) -> None:
    rows = [f"{i % 3},{i % 2},{i * 0.1}" for i in range(60)]
    (tmp_path / "own.csv").write_text("client,label,x\n" + "\n".join(rows) + "\n")
    assert fedkin("run", "local", "--data", "own.csv", "--rounds", "2", "--out", "here").code == 0
    (tmp_path / "own.csv").write_text("client,label,x\n" + "\n".join(rows[:-1]) + "\n2,1,7.7\n")
    outcome = fedkin("run", "here", "--resume", "--rounds", "4")
    assert outcome.code == 2
    assert "data are not those" in outcome.err


def test_default_folders_are_never_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    experiment = fk.Experiment(fk.methods.fedavg())
    assert cli.fresh_folder("fedavg", experiment)() != cli.fresh_folder("fedavg", experiment)()


@pytest.mark.parametrize(
    "line",
    ['seeds = "a"', "seeds = -1", "seeds = 2.5", 'seed = "x"', "seeds = [0, 0]", 'slot_memory = "a"', "engine = 3"],
)
def test_a_toml_file_with_a_bad_value_is_one_sentence(fedkin, tmp_path: Path, line: str) -> None:
    (tmp_path / "e.toml").write_text(f'method = "fedavg"\n{line}\n[data]\nname = "digits"\n')
    outcome = fedkin("run", "e.toml")
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1


@pytest.mark.parametrize("content", ['{"arms": 5}', "[]", '{"arms": []}', "{"])
def test_a_damaged_plan_is_one_sentence(fedkin, tmp_path: Path, content: str) -> None:
    fedkin("run", "fedavg", *QUICK, "--out", "here")
    (tmp_path / "here" / "plan.json").write_text(content)
    outcome = fedkin("run", "here", "--resume")
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
