"""Sizes that fit no memory are one sentence before anything is built; a run says what it will take and what it took."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedkin as fk
from fedkin import models
from fedkin.comparison import arms
from fedkin.core import machine
from fedkin.data import room
from fedkin.report import terminal
from fedkin.runs import files, memory, setup
from fedkin.runs.files import Damaged
from fedkin.runs.memory import Size

DATA = ("--data", "digits", "--clients", "4", "--rounds", "2")
SIZES = {
    "train.steps=2000000000": "fewer steps or epochs",
    "epochs=2000000000": "fewer steps or epochs",
    f"train.batch={10**18}": "below 2",
}
MB = 10**6


@pytest.mark.parametrize("setting", SIZES)
def test_work_that_fits_no_memory_is_refused_before_it_begins(fedkin: Any, setting: str) -> None:
    outcome = fedkin("run", "fedavg", *DATA, "--set", setting, "--out", "here")
    assert outcome.code == 2
    assert SIZES[setting] in outcome.err
    assert outcome.err.count("\n") == 1
    assert not Path("here").exists()


def test_a_model_that_does_not_fit_for_its_clients_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "build", lambda *_: pytest.fail("it was built"))
    monkeypatch.setattr(memory, "free", lambda: 100 * MB)
    data = fk.load_data(fk.Data("digits", clients=30))
    with pytest.raises(fk.BadInput, match=r"fedavg needs about .*MB at its peak, and 100MB are free; take a smaller"):
        setup.set_up(fk.Experiment(fk.methods.fedavg(), data, "dnn:50000"), data)


@pytest.mark.parametrize("words", [("--set", "train.batch=2147483647"), ("--chunk", "2147483647")])
def test_a_size_that_nothing_reaches_does_no_harm(fedkin: Any, words: tuple[str, str]) -> None:
    """A batch is never larger than what a client has, nor a chunk than the clients are."""
    assert fedkin("run", "fedavg", *DATA, *words, "--out", "here").code == 0


def test_a_model_of_very_many_layers_is_refused() -> None:
    with pytest.raises(fk.BadInput, match="at most 1000 layers, not 5,000"):
        models.size_of("mlp:" + ",".join(["9"] * 5000), (64,), 10)


def test_a_sweep_of_very_many_arms_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert arms.MANY == 1000
    monkeypatch.setattr(arms, "MANY", 5)
    with pytest.raises(fk.BadInput, match="'fedprox' has a sweep of 6 arms, and at most 5 are compared"):
        list(arms.arms_of("fedprox@lam=1,2,3@train.eta=1,2"))


def test_a_schedule_of_very_many_rounds_is_looked_at_quickly() -> None:
    data = fk.load_data(fk.Data("digits", clients=4))
    found = setup.set_up(fk.Experiment(fk.methods.adafl(), data, rounds=2**31 - 1), data)
    assert found.need


# own tables


def test_a_table_that_fits_no_memory_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(room, "free", lambda: 100 * MB)
    for name, start in (("large.csv", b"a,label,client\n1,0,x\n"), ("large.jsonl", b'{"a": 1, "label": 0}\n')):
        with Path(name).open("wb") as file:
            file.write(start)
            file.truncate(50 * MB)  # a file with a hole, which takes no room on the disk
        with pytest.raises(fk.BadInput, match=rf"{name} takes about 150MB of memory, and 100MB are free"):
            fk.load_data(fk.Data(f"./{name}"))


def test_an_archive_that_unfolds_to_more_than_memory_is_not_read(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(room, "free", lambda: 10 * MB)
    np.savez_compressed("bomb.npz", x=np.zeros((2_000_000, 1)), y=np.zeros(2_000_000))
    assert Path("bomb.npz").stat().st_size < MB
    pd.DataFrame({"a": np.zeros(2_000_000), "label": 0, "client": "x"}).to_parquet("bomb.parquet")
    assert Path("bomb.parquet").stat().st_size < MB
    for name in ("bomb.npz", "bomb.parquet"):
        with pytest.raises(fk.BadInput, match=rf"{name} takes about .*MB of memory, and 10MB are free"):
            fk.load_data(fk.Data(f"./{name}"))


def test_arrays_that_say_they_are_larger_than_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    head = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (10**13, 100)}
    np.lib.format.write_array_header_2_0(head, about)
    with zipfile.ZipFile("lies.npz", "w") as archive:
        archive.writestr("x.npy", head.getvalue() + bytes(1000))
    with pytest.raises(fk.BadInput, match=r"lies\.npz could not be read"):
        fk.load_data(fk.Data("./lies.npz"))


def test_many_files_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sites").mkdir()
    for name in "abc":
        Path(f"sites/{name}.csv").write_text("x,label\n" + "1,0\n2,1\n" * 100)
    monkeypatch.setattr(room, "free", lambda: 5000)
    with pytest.raises(fk.BadInput, match="The 3 files take about"):
        fk.load_data(fk.Data("./sites"))


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.toml"])
def test_a_pipe_is_not_waited_for(fedkin: Any, name: str) -> None:
    os.mkfifo(name)
    words = ("run", "fedavg", "--data", f"./{name}") if name.endswith("csv") else ("run", name)
    outcome = fedkin(*words)
    assert outcome.code == 2
    assert "file" in outcome.err


def test_a_file_of_a_run_that_fits_no_memory_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "free", lambda: 10 * MB)
    path = tmp_path / "summary.json"
    with path.open("wb") as file:
        file.truncate(50 * MB)
    with pytest.raises(Damaged, match="larger than the memory"):
        files.read_json(path)
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(Damaged, match="it is no file"):
        files.read_json(tmp_path / "plan.json")


# what a run takes


def test_the_memory_of_a_run_is_about_what_was_expected(tmp_path: Path) -> None:
    """By its own measure and by the system's, in a process of its own."""
    benchmark = Path(__file__).parents[2] / "benchmarks/peak.py"
    code = f"import sys; sys.argv[0] = {str(benchmark)!r}; sys.path.insert(0, {str(benchmark.parent)!r})\n"
    code += "import json, peak; print(json.dumps(peak.measured(('fedacs', 'dnn:10000', 20, 20, 1))))"
    env = os.environ | {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert 0.95 < found["measured"] / found["system"] <= 1.0
    assert 0.7 < found["ratio"] < 1.5
    assert found["measured"] > 4 * 20 * 4 * found["parameters"], "models of all clients are in it"


def test_a_run_that_would_hardly_fit_says_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    size = Size(model=37 * MB, slots=74 * MB, n=50, m=50, reached=50, trained=50, scored=50, chunk=10, held=500 * MB)
    need = memory.needed(fk.methods.fedmcsa(), size)
    total = sum(need.values())
    assert 7e9 < total < 14e9
    monkeypatch.setattr(memory, "free", lambda: total - 1)
    (sentence,) = memory.advice("fedmcsa", need)
    assert sentence.startswith(f"fedmcsa needs about {machine.readable(total)} at its peak")
    assert "fewer clients a round" in sentence
    monkeypatch.setattr(memory, "free", lambda: total)
    assert not memory.advice("fedmcsa", need)
    monkeypatch.setattr(memory, "free", lambda: total // 2)
    with pytest.raises(fk.BadInput, match="needs about"):
        memory.advice("fedmcsa", need)
    chunked = memory.needed(fk.methods.fedavg(), replace(size, chunk=50, m=1, reached=1, trained=50, scored=1))
    monkeypatch.setattr(memory, "free", lambda: sum(chunked.values()) - 1)
    assert "a smaller --chunk" in memory.advice("fedavg", chunked)[0]
    kin = memory.needed(fk.methods.kin(), replace(size, n=1000))
    assert kin["server"] == 4 * 1000 * 37 * MB, "what the server remembers of every client"
    scored = memory.needed(fk.methods.fedavg(), replace(size, chunk=1, m=1, reached=1, trained=1, scored=29))
    monkeypatch.setattr(memory, "free", lambda: sum(scored.values()) - 1)
    assert "--score-clients" in memory.advice("fedavg", scored)[0]


def test_runs_side_by_side_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free", lambda: 300 * MB)
    memory.check_together([{"a": 100 * MB}, {"a": 200 * MB}], 2)
    memory.check_together([{"a": 9000 * MB}], 1)  # of one run, its own sentence says it
    with pytest.raises(fk.BadInput, match="3 runs side by side need about 600MB, and 300MB are free; take fewer"):
        memory.check_together([{"a": 100 * MB}, {"a": 200 * MB}], 3)


def test_memory_is_shown_where_it_is_known() -> None:
    run = fk.run(fk.Experiment(fk.methods.fedavg(), fk.Data("synthetic", clients=3), rounds=2), warn=print)
    found = run.summary["memory"]
    assert found["estimated"] > 50 * MB < found["measured"]
    shown = str(terminal.accuracy_table(run.summary).caption)
    assert f"{machine.readable(found['measured'])} of memory, {machine.readable(found['estimated'])} expected" in shown
    older = {name: value for name, value in run.summary.items() if name != "memory"}
    assert "of memory" not in str(terminal.accuracy_table(older).caption)


def test_the_peak_begins_anew_with_each_run() -> None:
    machine.forget_peak()
    before = machine.peak()
    held = np.ones(200 * MB // 8)
    assert machine.peak() > before + 150 * MB
    del held
    machine.forget_peak()
    assert machine.peak() < before + 100 * MB
    assert abs(machine.peak() - machine.resident()) < 50 * MB
