"""Tuning: what is tried, what is chosen, and that a kill, a process more or a test label changes nothing of it."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest

import fedkin as fk
from fedkin.runs.validation import validating
from fedkin.tuning import search
from fedkin.tuning.tune import TOGETHER

DATA = fk.Data("digits", clients=4, samples=30)
RATE = {"train.eta": "0.0001..1:log"}
METHOD = fk.methods.fedavg(count=2, steps=5)
GRID: dict[str, Any] = {"space": {"collaborate.sigma": [10, 30]}, "grid": True, "prune": False, "rounds": 2}


def tuned(folder: Path | None = None, data: fk.Data | fk.Federation = DATA, **options) -> fk.Tuned:
    chosen = {"space": RATE, "trials": 8, "rounds": 8, "evaluate_every": 1, "warn": lambda _: None} | options
    return fk.tune(chosen.pop("method", METHOD), data, folder=folder, **chosen)


class Stopping(fk.Callback):
    """Stops, or breaks off, in the so-many-th round of all trials."""

    def __init__(self, after: int, how: type[BaseException] | None = None):
        self.left, self.how = after, how

    def recorded(self, record: fk.Record) -> bool:
        self.left -= 1
        if self.left == 0 and self.how is not None:
            raise self.how
        return self.left != 0


@pytest.fixture(scope="module")
def whole() -> fk.Tuned:
    """A tuning that was never disturbed."""
    return tuned()


def test_the_best_trial_is_that_of_the_best_validation_value(whole: fk.Tuned) -> None:
    trials = whole.trials()
    assert len(trials) == 8
    done = trials[trials.state == "done"]
    assert whole.value == done.value.max() == trials.value.iloc[0]
    assert float(trials["train.eta"].iloc[0]) == whole.method.train.eta
    assert sorted(trials.index) == list(range(1, 9))
    assert trials.loc[1, "train.eta"] == "0.02", "the method as it is comes first"
    assert isinstance(whole.experiment.data, fk.Data)
    assert whole.experiment.data.validation == 0.2, "a run with the best settings trains on the same samples"
    federation = validating(fk.load_data(whole.experiment.data))
    again = fk.run(replace(whole.experiment, data=federation), warn=lambda _: None)
    assert again.summary["accuracy"]["post"]["macro"]["last"] == whole.value


def test_trials_that_fall_behind_are_given_up_and_say_so(whole: fk.Tuned) -> None:
    trials = whole.trials()
    behind = trials[trials.state == "given up"]
    assert len(behind)
    assert whole.note["given_up"] == len(behind)
    assert (behind["round"] < 8).all()
    assert (behind["round"] >= 2).all(), "not in the first quarter"
    assert (trials[trials.state == "done"]["round"] == 8).all()
    assert (behind.index > 5).all(), "not before five trials are done"
    assert (tuned(prune=False).trials().state == "done").all()


def test_wrong_test_labels_change_neither_trials_nor_the_best_settings() -> None:
    right = fk.load_data(replace(DATA, validation=0.2))
    y = right.y.clone()
    y[right.test.rows] = (y[right.test.rows] + 1) % 10
    first, second = (tuned(data=data, trials=6) for data in (right, replace(right, y=y)))
    pd.testing.assert_frame_equal(first.trials(), second.trials())
    assert first.method == second.method


def test_no_trial_scores_a_test_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    data = replace(DATA, validation=0.2)
    hidden, seen = set(fk.load_data(data).test.rows.tolist()), []
    plays = search.play

    def watched(experiment, federation, *rest):
        owned = [federation.train.rows, federation.test.rows]
        seen.append(hidden & {row for rows in owned for row in rows.tolist()})
        assert federation.validation is None
        return plays(experiment, federation, *rest)

    monkeypatch.setattr(search, "play", watched)
    tuned(data=data, trials=2)
    assert seen == [set(), set()]


@pytest.mark.parametrize("how", [None, KeyboardInterrupt])
@pytest.mark.parametrize("after", [1, 20, 44])
def test_a_study_that_was_stopped_or_killed_goes_on_as_if_it_had_not_been(
    whole: fk.Tuned, tmp_path: Path, after: int, how: type[BaseException] | None
) -> None:
    with pytest.raises(how or fk.BadInput):
        tuned(tmp_path, callbacks=[Stopping(after, how)])
    again = tuned(tmp_path, resume=True)
    pd.testing.assert_frame_equal(again.trials(), whole.trials())
    assert again.note == whole.note
    assert not list(tmp_path.glob("*/trial-*")), "the runs of trials are gone when they are over"


def test_more_trials_go_on_from_those_that_are_there(whole: fk.Tuned, tmp_path: Path) -> None:
    tuned(tmp_path, trials=5)
    assert tomllib.loads((tmp_path / "fedavg.toml").read_text())["tuned"]["fedavg"]["trials"] == 5
    pd.testing.assert_frame_equal(tuned(tmp_path, resume=True).trials(), whole.trials())
    assert tomllib.loads((tmp_path / "fedavg.toml").read_text())["tuned"]["fedavg"]["trials"] == 8


def test_a_folder_goes_on_only_with_what_it_tunes(tmp_path: Path) -> None:
    tuned(tmp_path, trials=1)
    with pytest.raises(fk.BadInput, match="exists already"):
        tuned(tmp_path)
    for other in ({"rounds": 9}, {"space": {"train.eta": "0.1,0.2"}}, {"seed": 1}, {"average": "micro"}, {"seeds": 2}):
        with pytest.raises(fk.BadInput, match="tunes something else"):
            tuned(tmp_path, resume=True, **other)


def test_a_grid_tries_every_combination_once() -> None:
    lists = {"train.eta": [0.01, 0.1, 1], "train.momentum": [0, 0.5]}
    trials = tuned(space=lists, grid=True, prune=False).trials()
    assert sorted(zip(trials["train.eta"], trials["train.momentum"], strict=True)) == [
        (eta, momentum) for eta in ("0.01", "0.1", "1") for momentum in ("0", "0.5")
    ]


def test_settings_that_were_tried_are_not_played_again() -> None:
    class Begun(fk.Callback):
        runs = 0

        def begun(self, experiment: dict[str, object]) -> None:
            self.runs += 1

    begun = Begun()
    found = tuned(space={"train.eta": [0.02, 0.1]}, trials=6, callbacks=[begun])
    assert len(found.tried) == 6
    assert begun.runs == 2
    assert found.trials().groupby("train.eta").value.nunique().max() == 1


def test_settings_that_a_method_refuses_are_drawn_again() -> None:
    found = tuned(method=fk.methods.pfedme(count=2), space={"train.lam": "1..2000:log"}, trials=6)
    assert len(found.tried) == 6
    assert found.note["failed"] == 0
    assert all(float(one.settings["train.lam"]) * 0.01 < 2 for one in found.tried)
    with pytest.raises(fk.BadInput, match="refuses nearly all settings of its space: train"):
        tuned(method=fk.methods.pfedme(count=2), space={"train.lam": "300..400"}, trials=2)


def test_several_seeds_are_averaged(tmp_path: Path) -> None:
    both = tuned(trials=1, seeds=[0, 1])
    each = [tuned(trials=1, seeds=[seed]).value for seed in (0, 1)]
    assert both.value == pytest.approx(sum(each) / 2)


def test_a_metric_that_is_better_when_lower_is_minimised(tmp_path: Path) -> None:
    found = tuned(tmp_path, metric="log_loss", average="micro", prune=False, trials=6)
    values = found.trials().value
    assert found.value == values.min()
    assert values.is_monotonic_increasing
    assert found.note["metric"] == "log_loss"
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'fedavg' / 'study.db'}")
    assert optuna.load_study(study_name="fedavg", storage=storage).best_value == found.value, "Optuna reads it too"
    storage.engine.dispose()


def test_two_jobs_try_as_much_and_find_the_same_values(tmp_path: Path) -> None:
    one, two = tuned(trials=4), tuned(tmp_path, trials=4, jobs=2)
    pd.testing.assert_frame_equal(one.trials(), two.trials())  # the first trials are drawn at random, by number
    assert (tmp_path / "fedavg.toml").exists()


def test_a_stop_with_two_jobs_loses_nothing(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match="A callback stopped the tuning"):
        tuned(tmp_path, trials=4, jobs=2, callbacks=[Stopping(5)])
    pd.testing.assert_frame_equal(tuned(tmp_path, trials=4, jobs=2, resume=True).trials(), tuned(trials=4).trials())


def test_the_file_of_the_best_settings_is_an_experiment(tmp_path: Path) -> None:
    found = tuned(tmp_path, trials=2)
    run = fk.compare([str(tmp_path / "fedavg.toml")], warn=lambda _: None)
    assert run.summary["tuned"]["methods"]["fedavg"]["trials"] == 2
    assert run.runs["fedavg"][0].experiment["method"]["train"]["eta"] == found.method.train.eta
    assert run.runs["fedavg"][0].experiment["data"]["validation"] == 0.2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"trials": 0}, "trials must be a whole number of at least 1"),
        ({"average": "mean"}, "no average called 'mean'|'mean'"),
        ({"space": {"train.nothing": "1,2"}}, "None of fedavg has a field 'train.nothing'"),
        ({"space": {"train.eta": "0.1..1"}, "grid": True}, "A grid needs lists"),
        ({"resume": True}, "Resuming needs the folder"),
    ],
)
def test_bad_input_is_one_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(fk.BadInput, match=sentence):
        tuned(**options)


def test_trials_are_played_with_noise(tmp_path: Path) -> None:
    """The fields of a method stand where they stood without --dp, also where it changes the method."""
    said: list[str] = []
    method = replace(fk.methods.fedmcsa(count=2, steps=2), name="fedmcsa")
    loud, still = (
        tuned(tmp_path / dp, method=method, dp=dp, **GRID) for dp in ("clip=1.0,noise=50", "clip=1.0,noise=0.001")
    )
    assert loud.experiment.dp == "clip=1.0,noise=50.0,delta=1e-05"
    assert type(loud.method.collaborate).__name__ == "LastUploads"
    assert loud.value < still.value
    again = tuned(tmp_path / "clip=1.0,noise=50", method=method, dp="clip=1.0,noise=50", resume=True, **GRID)
    assert again.value == loud.value
    tuned(method=METHOD, trials=1, rounds=1, dp="clip=1.0,noise=0.5", warn=said.append)
    assert [sentence for sentence in said if "epsilon" in sentence] == [TOGETHER]
