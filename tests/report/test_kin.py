"""The mixtures of a run: the order of its clients, what the weights mean, and what of them fits into a page."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fedkin.messages import Kin
from fedkin.report.findings import kin_stored
from fedkin.report.findings.kin import Kinship, alike
from fedkin.report.findings.kin_meaning import facts, sentences
from fedkin.report.findings.kin_stored import STEPS, StoredKin, stored_kin
from fedkin.report.sections.who_learns_from_whom import ramp

N = 8
everyone = list(range(N))


def of(weights: dict[int, dict[str, np.ndarray]], ids: list[int] | None = None) -> Kinship:
    """Weights by round and component of eight clients; the even ones have mostly class 0, the others class 2."""
    clients = {"names": [str(i) for i in everyone], "labels": [[9, 1, 0], [0, 1, 9]] * (N // 2)}
    experiment = {"method": {"collaborate": {"granularity": "layer"}}}
    run: Any = SimpleNamespace(about_clients=clients, experiment=experiment, labels=())
    rows, sources = torch.tensor(ids or everyone), torch.tensor(everyone)
    made = {r: {name: torch.tensor(value) for name, value in found.items()} for r, found in weights.items()}
    return Kinship(run, {r: Kin(rows, sources, found) for r, found in made.items()})


def mixture(own: float) -> np.ndarray:
    """Everybody keeps `own` and spreads the rest evenly."""
    return np.full((N, N), (1 - own) / (N - 1)) + np.eye(N) * (own - (1 - own) / (N - 1))


def test_clients_with_the_same_labels_are_side_by_side() -> None:
    labels = np.array([[90, 10, 0], [0, 0, 50], [8, 1, 0], [0, 1, 99], [0, 7, 0], [0, 0, 0], [0, 70, 1]])
    order = alike(labels)
    assert sorted(order) == list(range(7))
    assert order[-1] == 5  # no samples
    places = {client: place for place, client in enumerate(order)}
    for a, b in [(0, 2), (1, 3), (4, 6)]:
        assert abs(places[a] - places[b]) == 1, (a, b, order)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_clients_have_an_order(n: int) -> None:
    assert sorted(alike(np.eye(3)[:n])) == list(range(n))


def test_training_alone_is_called_so() -> None:
    said = sentences(of({2: {"model": mixture(0.998)}}))
    assert said == ["Clients keep almost only their own model (self-weight 99.8\u00a0%): this is training alone."]
    alone = {2: {"model": np.eye(N)}}
    assert sentences(of(alone))[0].startswith("Clients keep only their own model (self-weight 100\u00a0%)")
    low, high = stored_kin(of(alone)).low, stored_kin(of(alone)).high
    assert 0 < low < high  # a scale although nobody takes anything


def test_one_mean_for_all_is_called_so() -> None:
    sizes = np.arange(1, N + 1) / np.arange(1, N + 1).sum()
    for rows in (mixture(1 / N), np.tile(sizes, (N, 1))):  # flat, and weighted by size
        assert sentences(of({2: {"model": rows}}))[0].startswith(
            "Everybody gets almost the same mean (self-weight 12.5"
        )


def grouped(to_same: float) -> np.ndarray:
    """Half of the weight is the client's own; of the rest `to_same` goes to its three kin, the rest to four others."""
    same = np.equal.outer(np.arange(N) % 2, np.arange(N) % 2)
    weights = np.where(same, to_same / 6, (1 - to_same) / 8)
    weights[np.diag_indices(N)] = 0.5
    return weights


@pytest.mark.parametrize(("share", "word"), [(0.9, "more than"), (3 / 7, "about"), (0.1, "less than")])
def test_kin_are_counted_against_an_even_spread(share: float, word: str) -> None:
    one = of({2: {"model": grouped(share)}})
    found = facts(one, "model")
    assert (found.own, found.same, found.chance) == pytest.approx((0.5, share, 3 / 7))
    assert found.neighbours == 7
    said = sentences(one)[0].replace("\u00a0", " ")
    assert said.startswith("A client keeps 50 % of its own model and takes the rest from 7 others on average.")
    assert f"{100 * share:.3g} % comes from clients with the same majority class, {word} the 42.9 %" in said


def test_sources_that_are_not_selected_count() -> None:
    """FedACS may mix models of clients that took part in earlier rounds."""
    weights = {2: {"model": grouped(0.9)[[1, 4]]}}
    found = facts(of(weights, [1, 4]), "model")
    assert (found.own, found.same, found.chance) == pytest.approx((0.5, 0.9, 3 / 7))
    (step,) = steps(stored_kin(of(weights, [1, 4])))
    assert (step["ids"], step["sources"]) == ([1, 4], everyone)


def test_components_speak_for_themselves() -> None:
    weights = {"10": mixture(0.999), "2": mixture(1 / N), "3": mixture(1 / N)}
    first, second = sentences(of({2: weights}))
    assert first.startswith("Layer 2, 3: everybody gets almost the same mean")
    assert second.startswith("Layer 10: clients keep almost only their own model")


def test_many_components_of_different_meaning_have_one_sentence() -> None:
    owns = (0.2, 0.3, 0.4, 0.5, 0.6)
    assert sentences(of({2: {str(own): mixture(own) for own in owns}}))[0].startswith(
        "A client keeps 40\u00a0% of its own model"
    )


def test_sentences_are_of_the_last_quarter() -> None:
    one = of({r: {"model": mixture(0.2 if r < 7 else 0.995)} for r in range(1, 9)})
    assert one.late == [7, 8]
    assert "(self-weight 99.5\u00a0%)" in sentences(one)[0]


def test_rounds_are_thinned_and_the_ends_stay() -> None:
    weights = {r: {"model": mixture(0.3)} for r in range(1, 101)}
    stored = stored_kin(of(weights))
    assert len(stored.rounds) == STEPS
    assert (stored.rounds[0], stored.rounds[-1]) == (1, 100)
    assert stored.note == "30 of the 100 stored rounds are shown, to keep the page small."


def test_the_weights_stay_within_the_budget() -> None:
    gen = np.random.default_rng(0)
    layers = [f"l{i}" for i in range(8)]
    one = of({r: {name: gen.dirichlet(np.ones(N), N) for name in layers} for r in range(1, 21)})
    for budget in (20_000, 40_000):
        stored = stored_kin(one, budget)
        assert 5 <= len(stored.rounds) < 20
        assert stored.rounds[-1] == 20
        assert 0.7 * budget < sum(len(json.dumps(s, separators=(",", ":"))) for s in steps(stored)) <= budget
        assert f"{len(stored.rounds)} of the 20 stored rounds" in stored.note
    stored = stored_kin(one, 8_000)
    assert stored.components == ["l0", "l2", "l5", "l7"]
    assert "4 of 8 layers are shown" in stored.note
    assert stored.text
    assert stored_kin(one, 500).text == ""


def steps(stored: StoredKin) -> list[Any]:
    return list(json.loads(stored.text)["steps"])


def test_the_scale_shows_small_weights_but_not_noise() -> None:
    stored = stored_kin(of({2: {"model": mixture(1 / N)}}))
    assert (stored.low, stored.high) == pytest.approx((0.0125, 0.125), rel=0.05)  # equal weights look equal
    spread = np.where(np.tri(N, dtype=bool), 0.1, 1e-6)
    stored = stored_kin(of({2: {"model": spread}}))
    assert stored.high / stored.low == pytest.approx(10**kin_stored.DECADES, rel=0.05)
    scale = ramp(stored.low, stored.high)
    assert "10 %" in scale
    assert "≤ 0.001 %" in scale
