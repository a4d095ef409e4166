"""What is chosen by validation samples never sees a test sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import fedkin as fk
from fedkin.data.federation import Federation
from fedkin.runs.validation import Aim, aim_of, best, validating


def candidates(data: fk.Data | Federation, *rates: float) -> list[fk.Experiment]:
    return [fk.Experiment(fk.methods.fedavg(count=3, eta=eta), data, rounds=3, evaluate_every=3) for eta in rates]


def test_validation_samples_stand_where_the_test_samples_were(federate) -> None:
    whole = federate((4, 6), test=3, common=5, validation=2)
    seen = validating(whole)
    assert whole.validation is not None
    assert torch.equal(seen.test.rows, whole.validation.rows)
    assert seen.validation is None
    assert seen.common is None
    assert torch.equal(seen.train.rows, whole.train.rows)
    known = torch.cat([whole.train.rows, whole.validation.rows])
    assert torch.equal(seen.y[known], whole.y[known])
    assert whole.common is not None
    assert not seen.y[torch.cat([whole.test.rows, whole.common])].any(), "the targets of test samples are blank"


def test_without_validation_samples_nothing_can_be_chosen(federate) -> None:
    with pytest.raises(fk.BadInput, match="no client has any; raise --validation"):
        validating(federate((4, 6)))


def test_the_best_candidate_is_that_of_the_best_validation_value() -> None:
    data = fk.Data("digits", clients=4, validation=0.2)
    found = best(candidates(data, 1e-6, 0.1, 1e-5))
    assert found.number == 1
    assert found.experiment.method.train.eta == 0.1
    assert found.values[1] == max(value for value in found.values if value is not None)
    whole = fk.load_data(data)
    again = fk.run(candidates(validating(whole), 0.1)[0], warn=lambda _: None)
    assert found.values[1] == again.summary["accuracy"]["post"]["macro"]["last"]


def test_of_equal_candidates_the_first_is_best_and_validation_samples_are_held_out() -> None:
    found = best(candidates(fk.Data("digits", clients=4), 0.1, 0.1))
    assert found.number == 0
    assert isinstance(found.experiment.data, fk.Data)
    assert found.experiment.data.validation == 0.2


def test_wrong_test_labels_change_no_choice() -> None:
    whole = fk.load_data(fk.Data("digits", clients=4, validation=0.2))
    y = whole.y.clone()
    y[whole.test.rows] = (y[whole.test.rows] + 1) % 10
    values = [best(candidates(data, 0.01, 0.1)).values for data in (whole, replace(whole, y=y))]
    assert values[0] == values[1]


def test_a_search_in_a_folder_plays_no_run_twice(tmp_path: Path) -> None:
    class Counting(fk.Callback):
        rounds = 0

        def recorded(self, record: fk.Record) -> None:
            self.rounds += 1

    counting = Counting()
    several = candidates(fk.Data("digits", clients=4), 0.01, 0.1)
    first = best(several, seeds=[0, 1], folder=tmp_path, callbacks=[counting])
    assert counting.rounds == 12
    assert best(several, seeds=[0, 1], folder=tmp_path, callbacks=[counting]) == first
    assert counting.rounds == 12


def test_values_are_compared_as_their_metric_is_read() -> None:
    loss, accuracy = Aim("log_loss", "post"), Aim("accuracy", "post")
    assert loss.better(0.1, 0.2)
    assert accuracy.better(0.2, 0.1)
    assert accuracy.better(0.1, None)
    assert not accuracy.better(None, None)
    assert not accuracy.better(0.1, 0.1)


def test_a_method_is_chosen_by_the_model_it_is_judged_by(federate) -> None:
    federation = federate((4, 6), validation=2)
    kinds = {name: aim_of(fk.Experiment(fk.methods.METHODS[name]()), federation).kind for name in ("fedavg", "pfedre")}
    assert kinds == {name: fk.methods.METHODS[name]().judged for name in kinds}
