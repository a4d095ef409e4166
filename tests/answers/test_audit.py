"""Who looks mislabelled: those that are, and nobody else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import fedkin as fk
from fedkin.answers import crossed
from fedkin.answers.audit import CROSSED, LOSS, Opinions, outlying
from fedkin.answers.panel import Panel
from fedkin.keep import Alignment, Everyone
from fedkin.messages import Reply, Sent, Task
from tests.hospitals import MISLABELLED, hospitals


def named(data: fk.Data, rounds: int = 15) -> tuple[list[str], fk.Comparison]:
    found = fk.compare(["fedavg"], data, rounds=rounds, evaluate_every=rounds, warn=lambda _: None)
    sites = found.sites()
    return list(sites.index[sites["looks"] == "mislabelled"]), found


def table(folder: Path, seed: int, wrong: tuple[str, ...] = MISLABELLED) -> fk.Data:
    hospitals(seed, wrong=wrong).to_csv(folder / "table.csv", index=False)
    return fk.Data(str(folder / "table.csv"), client="hospital", target="outcome")


@pytest.mark.parametrize("seed", [0, 1])
def test_of_twelve_hospitals_the_two_with_wrong_labels_are_named(seed: int, tmp_path: Path) -> None:
    wrong, found = named(table(tmp_path, seed))
    assert wrong == list(MISLABELLED)
    assert "Hospitals 4 and 9 look mislabelled: 6 filters of 6 left them out." in str(found)


def test_with_right_labels_nobody_is_named(tmp_path: Path) -> None:
    assert named(table(tmp_path, 2, wrong=()))[0] == []


def test_hospitals_with_other_rates_of_the_disease_are_not_mislabelled() -> None:
    assert named(fk.Data("heart"))[0] == []


def test_clients_with_other_classes_are_not_mislabelled() -> None:
    assert named(fk.Data("digits", partition="dirichlet:0.5", clients=12))[0] == []


def test_the_answer_is_compared_with_the_truth_where_that_is_known() -> None:
    data = fk.Data("digits", partition="dirichlet:0.5", clients=12, irrelevant="flip:0.2")
    wrong, found = named(data)
    truth = next(iter(found.runs["local"].values())).about_clients["irrelevant"]
    assert wrong == [str(i) for i, bad in enumerate(truth) if bad]
    assert "of 2 irrelevant sites 2 look mislabelled, and of the 10 others 0" in found.summary["sites"]["notes"][-1]


def test_three_sites_have_no_majority_to_differ_from() -> None:
    found = named(fk.Data("digits", clients=3), rounds=2)[1]
    assert "filters" not in found.summary["sites"]
    assert set(found.sites()["opinions"]) == {0}


def test_filters_of_compared_methods_are_asked_too_but_not_the_truth() -> None:
    data = fk.Data("digits", clients=6, irrelevant="flip:0.2")
    found = fk.compare(["pfedre", "krum", "oracle"], data, rounds=2, warn=lambda _: None)
    filters = found.summary["sites"]["filters"]
    assert "PFedRe" in filters
    assert not {"oracle", "Krum", "Local"} & set(filters), "Krum leaves nearly everybody out"


def test_an_agreement_does_not_depend_on_how_common_a_class_is() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(4000)
    y = (rng.random(4000) < score).astype(np.int64)
    even = crossed.ranking(y, np.stack([1 - score, score], 1))[0]
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:500]])
    skewed = crossed.ranking(y[rare], np.stack([1 - score, score], 1)[rare])[0]
    assert skewed == pytest.approx(even, abs=0.1)
    assert crossed.ranking(1 - y, np.stack([1 - score, score], 1))[0] == pytest.approx(-even)


def test_a_site_of_one_class_cannot_be_contradicted() -> None:
    said = [(np.zeros(50, dtype=np.int64), np.full((50, 2), 0.5))] * 4
    assert not crossed.contradicted(crossed.agreement(said)).any()


def test_where_most_sites_disagree_nobody_is_wrong() -> None:
    error = np.full(5, 0.05)
    agree = crossed.Agreement(np.array([0.7, 0.8, 0.75, -0.6, np.nan]), error)
    assert crossed.contradicted(agree).tolist() == [False, False, False, True, False]
    torn = crossed.Agreement(np.array([0.7, -0.6, 0.1, -0.6, 0.0]), error)
    assert not crossed.contradicted(torn).any()
    unsure = crossed.Agreement(agree.value, np.full(5, 0.6))
    assert not crossed.contradicted(unsure).any(), "too few rows to contradict anybody"


def test_a_regression_is_judged_by_correlation() -> None:
    y = np.linspace(0, 1, 40)
    good, bad = (y, (2 * y + 1)[:, None]), (y, -y[:, None])
    found = crossed.agreement([good, good, good, bad], regress=True)
    assert crossed.contradicted(found).tolist() == [False, False, False, True]


def test_looking_mislabelled_needs_the_others_models_and_another_filter() -> None:
    def looks(*out: str) -> str | None:
        names = ("a", "b", CROSSED, LOSS)
        return Opinions({name: np.array([name in out]) for name in names}, np.zeros(1)).looks(0)

    assert looks("a", "b", LOSS) == "different"
    assert looks("a", "b") is None
    assert looks(CROSSED) is None
    assert looks(CROSSED, "a") == "mislabelled"


def test_an_outlier_is_far_above_the_median_only() -> None:
    assert outlying(np.array([1.0, 1.1, 0.9, 1.05, 5.0, -4.0])).tolist() == [False] * 4 + [True, False]


def test_a_panel_lets_every_update_count_and_counts_who_would_be_left_out() -> None:
    panel = Panel((Everyone(), Alignment()))
    model = {"w": torch.zeros(3)}
    task = Task(4, torch.ones(4), 2, model, lambda *_: torch.zeros(()))
    ids = torch.arange(4)
    sent = Sent(ids, shared={"model": model})
    updates = torch.tensor([[1.0, 0, 0], [1.0, 0.1, 0], [1.0, -0.1, 0], [-1.0, 0, 0]])
    reply = Reply(ids, {"model": {"w": updates}}, {})
    gen = torch.Generator()
    kept, slot = panel(panel.init(task, gen), task, sent, reply, 1, gen)
    assert kept.tolist() == [1, 1, 1, 1]
    assert [share.tolist() for share in panel.left_out(slot)] == [[0, 0, 0, 0], [0, 0, 0, 1]]
