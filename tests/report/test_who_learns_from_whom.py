"""The page draws the weights that were stored, blank where nobody was selected, and says what they mean."""

from __future__ import annotations

import json
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import compared

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.messages import Kin
from fedkin.report.findings import kin_stored
from fedkin.report.findings.kin import Kinship, alike, kinship
from fedkin.report.findings.kin_meaning import facts, sentences
from fedkin.report.findings.kin_stored import NOTHING, PANELS, STEPS, StoredKin, stored_kin
from fedkin.report.sections.who_learns_from_whom import ramp
from fedkin.report.study import Study, studied
from fedkin.runs.run import Run

ODD = "<b>&\"ward' 7</b></script>"
N, CLASSES = 8, 3


def federation() -> fk.Federation:
    """Eight clients; those with even numbers have mostly class 0, the others mostly class 2."""
    gen = np.random.default_rng(0)
    clients = {}
    for i in range(N):
        y = gen.choice(CLASSES, 30, p=[0.8, 0.1, 0.1] if i % 2 == 0 else [0.1, 0.1, 0.8])
        clients[ODD if i == 0 else f"clinic {i}"] = ((gen.normal(size=(30, 4)) + y[:, None]).astype(np.float32), y)
    return fk.from_clients(clients, name="clinics")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FedMCSA of five clients a round with two layers, FedAvg and Local beside it; two seeds."""
    folder = tmp_path_factory.mktemp("runs") / "pair"
    methods = with_local([fk.methods.fedmcsa(count=5), fk.methods.fedavg(count=5)])
    experiment = fk.Experiment(methods[0], federation(), model="dnn:6", rounds=6, evaluate_every=2)
    assert compared(folder, experiment, methods, [3, 4])
    return folder


@pytest.fixture
def pair(made: Path) -> Study:
    return studied(made)


Weights = dict[int, dict[str, np.ndarray]]  # round -> component -> (m, s)


def mixtures(weights: Weights, ids: list[int], sources: list[int]) -> dict[int, Kin]:
    """As a run would have stored them."""
    return {
        r: Kin(torch.tensor(ids), torch.tensor(sources), {name: torch.tensor(value) for name, value in found.items()})
        for r, found in weights.items()
    }


def of(pair: Study, weights: Weights, ids: list[int] | None = None) -> Kinship:
    """The clients of FedMCSA's first seed, with these weights."""
    return Kinship(pair.entries["fedmcsa"].runs[0], mixtures(weights, ids or everyone, everyone))


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`stores(weights)`: what runs with mixtures have stored, from now on."""
    own = Run.kin

    def replaced(weights: Weights, ids: list[int] | None = None) -> None:
        found = mixtures(weights, ids or everyone, everyone)
        monkeypatch.setattr(Run, "kin", lambda self: found if own(self) else {})

    return replaced


def mixture(own: float) -> np.ndarray:
    """Everybody keeps `own` and spreads the rest evenly."""
    return np.full((N, N), (1 - own) / (N - 1)) + np.eye(N) * (own - (1 - own) / (N - 1))


everyone = list(range(N))


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


def test_the_page_orders_by_labels_and_says_so(pair: Study, shown: Any) -> None:
    page = shown(pair)
    assert list(page.kin) == ["kin-0"]
    groups = [client % 2 for client in page.kin["kin-0"]["order"]]
    assert sum(a != b for a, b in pairwise(groups)) == 1
    assert page.kin["kin-0"]["majority"] == [0, 2] * (N // 2)
    assert "like shares of classes are side by side" in page.words


def test_without_labels_the_order_is_by_number(pair: Study, shown: Any) -> None:
    for run in pair.runs:
        del run.about_clients["labels"]
    page = shown(pair)
    assert page.kin["kin-0"]["order"] == everyone
    assert page.kin["kin-0"]["majority"] is None
    assert "ordered by number, since their classes were not written down" in page.words
    assert "majority class" not in page.words


def test_values_are_those_of_the_first_seed(pair: Study, shown: Any) -> None:
    page = shown(pair)
    stored = fk.load_run(pair.folder / "fedmcsa" / "seed-3").kin()
    steps = page.kin["kin-0"]["steps"]
    assert [step["round"] for step in steps] == sorted(stored) == [2, 4, 6]
    for step in steps:
        expected = stored[step["round"]]
        assert step["ids"] == expected.ids.tolist()
        assert step["sources"] == expected.sources.tolist()
        for component, weights in zip(["1", "3"], step["weights"], strict=True):
            np.testing.assert_allclose(weights, expected.weights[component], rtol=5e-3, atol=NOTHING)
    assert "The map is of seed 3." in page.words
    assert "(Seed 3, round 6.)" in page.words
    assert 'max="2" value="2"' in page.html
    assert "<output>round 6</output>" in page.html


def test_a_panel_a_component(pair: Study, shown: Any) -> None:
    page = shown(pair)
    assert page.kin["kin-0"]["components"] == ["layer 1", "layer 3"]
    assert page.html.count('class="panel"') == 2
    assert "<h4>layer 1</h4>" in page.html
    assert "<h4>layer 3</h4>" in page.html


def test_many_components_are_chosen_from(pair: Study, shown: Any, stores: Any) -> None:
    stores({2: {f"conv{i}": mixture(0.3) for i in range(12)}})
    page = shown(pair)
    assert page.kin["kin-0"]["components"] == [f"layer conv{i}" for i in range(12)]  # 10 after 9, not after 1
    assert page.html.count('class="panel"') == PANELS
    assert page.html.count("<select") == PANELS
    assert page.html.count("<option") == 12 * PANELS
    assert [i for i in range(12) if f'<option value="{i}" selected' in page.html] == [0, 4, 7, 11]
    assert 'type="range"' not in page.html  # one round: nothing to slide over


@pytest.fixture
def cells(script: Any) -> Any:
    """What the page's script makes of a round."""
    return lambda *arguments: script("who_learns_from_whom_cells.js", "cells", *arguments)


@pytest.mark.parametrize("all", [True, False])
def test_cells_of_unselected_clients_are_blank(pair: Study, shown: Any, cells: Any, all: bool) -> None:
    about = shown(pair).kin["kin-0"]
    step = about["steps"][1]
    found = cells(about, step, 1, all)
    stored = fk.load_run(pair.folder / "fedmcsa" / "seed-3").kin()[4]
    weights, ids = stored.weights["3"].numpy(), stored.ids.tolist()
    assert found["down"] == found["across"] == (about["order"] if all else [i for i in about["order"] if i in ids])
    assert len(found["down"]) == (N if all else 5)
    seen = 0
    for i, a in enumerate(found["down"]):
        for j, b in enumerate(found["across"]):
            three = [found[word][i][j] for word in ("others", "own", "none")]
            if a not in ids or b not in ids:
                assert three == [None, None, None]
                assert found["text"][i][j] is None
                continue
            seen += 1
            weight = weights[ids.index(a), ids.index(b)]
            assert sum(value is not None for value in three) == 1
            if a == b:
                assert three[1] == pytest.approx(weight, rel=5e-3)
            elif weight >= about["low"]:
                assert 10 ** three[0] == pytest.approx(weight, rel=5e-3)
    assert seen == 25
    assert found["kept"] == pytest.approx(np.diag(weights).mean(), rel=5e-3)


def test_what_pointing_at_a_cell_says(cells: Any) -> None:
    about = {"order": [1, 0, 2], "names": ["a", "b", "c"], "majority": [3, 4, -1], "components": ["layer x"]}
    about |= {"low": 0.01, "high": 0.5}
    step = {"round": 7, "ids": [0, 1], "sources": [0, 1, 2], "weights": [[[0.9998, 0.0002, 0], [0.25, 0.005, 0.745]]]}
    found = cells(about, step, 0, False)
    assert (found["down"], found["across"]) == ([1, 0], [1, 0, 2])
    place = "(round 7, layer x)"
    mostly = "client b: mostly class 4"
    assert found["text"][0] == [
        f"client b keeps 0.5 % of its own {place}<br>{mostly}",
        f"client b takes 25 % from client a {place}<br>{mostly}<br>client a: mostly class 3",
        f"client b takes 74.5 % from client c {place}<br>{mostly}",
    ]
    assert found["text"][1][1].startswith("client a keeps 99.98 % of its own")
    assert found["text"][1][2].startswith("client a takes nothing from client c")
    assert found["none"] == [[None, None, None], [None, None, 0]]
    assert found["others"][1] == [-2, None, None]  # not below the scale


def test_training_alone_is_called_so(pair: Study, shown: Any, stores: Any) -> None:
    said = sentences(of(pair, {2: {"model": mixture(0.998)}}))
    assert said == ["Clients keep almost only their own model (self-weight 99.8\u00a0%): this is training alone."]
    alone = {2: {"model": np.eye(N)}}
    assert sentences(of(pair, alone))[0].startswith("Clients keep only their own model (self-weight 100\u00a0%)")
    stores(alone)
    shown(pair)  # a scale although nobody takes anything


def test_one_mean_for_all_is_called_so(pair: Study) -> None:
    sizes = np.arange(1, N + 1) / np.arange(1, N + 1).sum()
    for rows in (mixture(1 / N), np.tile(sizes, (N, 1))):  # flat, and weighted by size
        assert sentences(of(pair, {2: {"model": rows}}))[0].startswith(
            "Everybody gets almost the same mean (self-weight 12.5"
        )


def grouped(to_same: float) -> np.ndarray:
    """Half of the weight is the client's own; of the rest `to_same` goes to its three kin, the rest to four others."""
    same = np.equal.outer(np.arange(N) % 2, np.arange(N) % 2)
    weights = np.where(same, to_same / 6, (1 - to_same) / 8)
    weights[np.diag_indices(N)] = 0.5
    return weights


@pytest.mark.parametrize(("share", "word"), [(0.9, "more than"), (3 / 7, "about"), (0.1, "less than")])
def test_kin_are_counted_against_an_even_spread(pair: Study, share: float, word: str) -> None:
    one = of(pair, {2: {"model": grouped(share)}})
    found = facts(one, "model")
    assert (found.own, found.same, found.chance) == pytest.approx((0.5, share, 3 / 7))
    assert found.neighbours == 7
    said = sentences(one)[0].replace("\u00a0", " ")
    assert said.startswith("A client keeps 50 % of its own model and takes the rest from 7 others on average.")
    assert f"{100 * share:.3g} % comes from clients with the same majority class, {word} the 42.9 %" in said


def test_sources_that_are_not_selected_count(pair: Study, shown: Any, stores: Any) -> None:
    """FedACS may mix models of clients that took part in earlier rounds."""
    weights = {2: {"model": grouped(0.9)[[1, 4]]}}
    found = facts(of(pair, weights, [1, 4]), "model")
    assert (found.own, found.same, found.chance) == pytest.approx((0.5, 0.9, 3 / 7))
    stores(weights, [1, 4])
    step = shown(pair).kin["kin-0"]["steps"][0]
    assert (step["ids"], step["sources"]) == ([1, 4], everyone)


def test_components_speak_for_themselves(pair: Study) -> None:
    weights = {"10": mixture(0.999), "2": mixture(1 / N), "3": mixture(1 / N)}
    first, second = sentences(of(pair, {2: weights}))
    assert first.startswith("Layer 2, 3: everybody gets almost the same mean")
    assert second.startswith("Layer 10: clients keep almost only their own model")


def test_many_components_of_different_meaning_have_one_sentence(pair: Study) -> None:
    owns = (0.2, 0.3, 0.4, 0.5, 0.6)
    assert sentences(of(pair, {2: {str(own): mixture(own) for own in owns}}))[0].startswith(
        "A client keeps 40\u00a0% of its own model"
    )


def test_sentences_are_of_the_last_quarter(pair: Study) -> None:
    one = of(pair, {r: {"model": mixture(0.2 if r < 7 else 0.995)} for r in range(1, 9)})
    assert one.late == [7, 8]
    assert "(self-weight 99.5\u00a0%)" in sentences(one)[0]


def test_rounds_are_thinned_and_the_ends_stay(pair: Study, shown: Any, stores: Any) -> None:
    weights = {r: {"model": mixture(0.3)} for r in range(1, 101)}
    stored = stored_kin(of(pair, weights))
    assert len(stored.rounds) == STEPS
    assert (stored.rounds[0], stored.rounds[-1]) == (1, 100)
    assert stored.note == "30 of the 100 stored rounds are shown, to keep the page small."
    stores(weights)
    assert stored.note in shown(pair).words


def test_the_weights_stay_within_the_budget(pair: Study) -> None:
    gen = np.random.default_rng(0)
    layers = [f"l{i}" for i in range(8)]
    one = of(pair, {r: {name: gen.dirichlet(np.ones(N), N) for name in layers} for r in range(1, 21)})
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


def test_too_big_a_picture_is_left_out_and_that_is_said(
    pair: Study, shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kin_stored, "BUDGET", 100)
    page = shown(pair)
    assert "The weights are left out of this page" in page.words
    assert "kin" not in page.stores
    assert 'class="panel"' not in page.html
    assert "self_weight-0" in page.figures  # the lines are small


def test_trends_are_means_over_seeds(pair: Study, shown: Any) -> None:
    figures = shown(pair).figures
    assert {"self_weight-0", "neighbours-0"} <= figures.keys()
    assert not {"threshold-0", "self_weight-1"} & figures.keys()
    runs = [fk.load_run(pair.folder / "fedmcsa" / f"seed-{seed}").rounds for seed in (3, 4)]
    for word in ("self_weight", "neighbours"):
        values = np.array([[x["collaborate"][word] for x in run if "collaborate" in x] for run in runs])
        *seeds, line = figures[f"{word}-0"]["data"]
        assert line["x"] == [2, 4, 6]
        np.testing.assert_allclose(line["y"], values.mean(0))
        np.testing.assert_allclose([seed["y"] for seed in seeds], values)


def test_methods_without_mixtures_have_no_section(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path, 3, [[0, 1]] * 2))
    assert "Who learns from whom" not in page.words
    assert "kin" not in page.stores


def test_only_methods_with_mixtures_are_drawn(pair: Study, shown: Any) -> None:
    page = shown(pair)
    section = page.html[page.html.index("Who learns from whom") : page.html.index("<h2>Settings")]
    assert section.count("<article>") == len(page.kin) == 1
    assert "fedavg" not in section
    assert kinship(pair.entries["fedavg"]) is None


def test_an_unfinished_seed_is_drawn_and_called_so(made: Path, shown: Any) -> None:
    study = studied(made)
    study.entries["fedmcsa"].runs[0].__dict__["finished"] = False  # as if it had none
    assert "That seed is unfinished (round 6 of 6)." in shown(study).words


def test_names_are_escaped(pair: Study, shown: Any, stores: Any) -> None:
    page = shown(pair)
    assert ODD not in page.html
    name = page.kin["kin-0"]["names"][0]
    assert "<" not in name
    assert unescape(name) == ODD
    stores({2: {"<i>layer": mixture(0.3), "other": mixture(0.3)}})
    page = shown(pair)
    assert "<i>layer" not in page.html
    assert page.kin["kin-0"]["components"] == ["layer &lt;i&gt;layer", "layer other"]
    assert "<h4>layer &lt;i&gt;layer</h4>" in page.html


def test_the_scale_shows_small_weights_but_not_noise(pair: Study) -> None:
    stored = stored_kin(of(pair, {2: {"model": mixture(1 / N)}}))
    assert (stored.low, stored.high) == pytest.approx((0.0125, 0.125), rel=0.05)  # equal weights look equal
    spread = np.where(np.tri(N, dtype=bool), 0.1, 1e-6)
    stored = stored_kin(of(pair, {2: {"model": spread}}))
    assert stored.high / stored.low == pytest.approx(10**kin_stored.DECADES, rel=0.05)
    scale = ramp(stored.low, stored.high)
    assert "10 %" in scale
    assert "≤ 0.001 %" in scale
