"""What follows from the runs of a comparison: verdicts against Local, pairs of methods, who leads, and cautions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fedkin as fk
from fedkin.comparison.conclusions import leader
from fedkin.runs.difference import difference, holm
from fedkin.runs.verdict import mixed, unequal_participation


@pytest.fixture(scope="module")
def found() -> fk.Comparison:
    methods = [fk.methods.fedavg(count=2), "local_matched", fk.methods.fedmcsa()]
    data = fk.Data("digits", "dirichlet:0.5", clients=8)
    return fk.compare(methods, data, rounds=10, seeds=3, evaluate_every=10, warn=lambda _: None)


def test_all_methods_are_compared_with_each_other(found: fk.Comparison) -> None:
    pairs = found.pairs()
    assert len(pairs) == 4 * 3 / 2
    assert (pairs["gain"] >= 0).all(), "the better one of a pair is in front"
    assert pairs["p_holm"].tolist() == pytest.approx(holm(pairs["p"].tolist()))
    for (method, over), row in pairs.iterrows():
        scores = [np.stack([run.accuracies[run.judged] for run in found.runs[one].values()]) for one in (method, over)]
        expected = difference(*scores)
        assert [row["gain"], row["low"], row["high"]] == pytest.approx([expected.mean, expected.low, expected.high])
        assert row["p"] == pytest.approx(expected.p)
        assert (row["verdict"] == "better") == (row["p_holm"] < 0.05)


def test_a_verdict_is_given_against_a_local_that_trains_as_rarely(found: fk.Comparison) -> None:
    fedavg = found.verdicts["fedavg"]
    assert fedavg["trained"] == pytest.approx(2 / 8)
    assert fedavg["local_trained"] == 1
    scores = [np.stack([r.accuracies["post"] for r in found.runs[one].values()]) for one in ("fedavg", "local_matched")]
    assert fedavg["matched"]["against"] == "local_matched"
    assert fedavg["matched"]["gain"] == pytest.approx(difference(*scores).mean)
    everyone = found.verdicts["local_matched"]
    assert "matched" not in everyone
    both = [one["p"] for one in found.verdicts.values()]
    both += [one["matched"]["p"] for one in found.verdicts.values() if "matched" in one]
    corrected = [one["p_holm"] for one in found.verdicts.values()]
    corrected += [one["matched"]["p_holm"] for one in found.verdicts.values() if "matched" in one]
    assert corrected == pytest.approx(holm(both)), "all verdicts of a table are corrected together"
    answers = found.summary["sites"]
    assert not {site.get("method") for site in answers["sites"]} & {"local_matched"}, "no site is told to join it"


def test_a_matched_local_is_not_that_of_a_method_that_trains_more_often() -> None:
    methods = [fk.methods.fedavg(count=1), "local_matched", fk.methods.fedprox(count=4)]
    found = fk.compare(methods, fk.Data("digits", clients=8), rounds=2, warn=lambda _: None)
    assert "matched" in found.verdicts["fedavg"]
    assert "matched" not in found.verdicts["fedprox"]
    assert any("2.0 times as often as those of fedprox" in text for text in found.summary["cautions"])


def test_where_no_matched_local_is_there_a_caution_says_how_much_more_often_local_trains() -> None:
    data = fk.Data("digits", clients=8)
    found = fk.compare([fk.methods.fedavg(count=2)], data, rounds=2, warn=lambda _: None)
    [said] = [text for text in found.summary["cautions"] if "as often" in text]
    assert said.startswith("Local's clients trained 4.0 times as often as those of fedavg")
    assert "Add local_matched" in said


def test_a_method_that_trains_everyone_needs_no_matched_local() -> None:
    always = {"trained": 1.0, "local_trained": 1.0}
    assert unequal_participation({"fedacs": always}) == []
    assert unequal_participation({"fedavg": always | {"trained": 0.2, "matched": {}}}) == []


def pair(method: str, over: str, verdict: str) -> dict[str, Any]:
    return {"method": method, "over": over, "verdict": verdict, "seeds": 3}


def test_the_leader_is_best_only_where_it_is_clearly_better_than_every_other_method() -> None:
    clear = [pair("a", "b", "better"), pair("a", "c", "better"), pair("b", "c", "no clear difference")]
    assert leader(clear) == {"method": "a", "over": ["b", "c"], "level": [], "best": True, "seeds": 3}
    unclear = [pair("a", "b", "no clear difference"), *clear[1:]]
    assert leader(unclear) == {"method": "a", "over": ["c"], "level": ["b"], "best": False, "seeds": 3}
    one_seed = [pair("a", "b", "better in this seed"), *clear[1:]]
    assert leader(one_seed)["best"] is False
    assert leader([]) == {}


def test_a_clear_mean_that_most_clients_contradict_is_told() -> None:
    found = {"a": {"verdict": "better in this seed", "better": 0.2, "worse": 0.8}}
    assert mixed(found) == ["a is better in the mean, though 80 % of its clients are worse off."]
    assert mixed({"a": found["a"] | {"verdict": "no clear difference"}}) == []
    assert mixed({"a": found["a"] | {"better": 0.8, "worse": 0.2}}) == []
