"""The page draws the weights that were stored, blank where nobody was selected, and says what they mean."""

from __future__ import annotations

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
from fedkin.report.findings.kin import kinship
from fedkin.report.findings.kin_stored import NOTHING, PANELS
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


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`stores({round: components})`: runs with mixtures have stored even ones of these components, from now on."""
    own = Run.kin

    def replaced(components: dict[int, list[str]]) -> None:
        ids, even = torch.arange(N), torch.full((N, N), 1 / N)
        found = {r: Kin(ids, ids, dict.fromkeys(names, even)) for r, names in components.items()}
        monkeypatch.setattr(Run, "kin", lambda self: found if own(self) else {})

    return replaced


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
    assert page.kin["kin-0"]["order"] == list(range(N))
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
    stores({2: [f"conv{i}" for i in range(12)]})
    page = shown(pair)
    assert page.kin["kin-0"]["components"] == [f"layer conv{i}" for i in range(12)]  # 10 after 9, not after 1
    assert page.html.count('class="panel"') == PANELS
    assert page.html.count("<select") == PANELS
    assert page.html.count("<option") == 12 * PANELS
    assert [i for i in range(12) if f'<option value="{i}" selected' in page.html] == [0, 4, 7, 11]
    assert 'type="range"' not in page.html  # one round: nothing to slide over


def test_many_clients_are_not_drawn_and_the_page_says_so(pair: Study, shown: Any, monkeypatch: Any) -> None:
    own, ids = Run.kin, torch.arange(N)
    few = Kin(ids, ids, {"1": torch.full((N, 2), 0.5)}, nearest={"1": torch.stack([ids, ids.roll(1)], 1)})
    monkeypatch.setattr(Run, "kin", lambda self: {2: few} if own(self) else {})
    page = shown(pair)
    assert "kin" not in page.stores
    assert "Each of up to 8 clients in a round gets a mixture of its own." in page.words
    assert "So many clients are not drawn" in page.words
    assert "self_weight-0" in page.figures


def test_very_many_clients_are_ordered_by_number(pair: Study, shown: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("fedkin.report.findings.kin.ORDERED", N - 1)
    monkeypatch.setattr("fedkin.report.sections.who_learns_from_whom.ORDERED", N - 1)
    page = shown(pair)
    assert page.kin["kin-0"]["order"] == list(range(N))
    assert "ordered by number, since there are so many" in page.words


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


def test_what_was_left_out_is_said(pair: Study, shown: Any, stores: Any) -> None:
    stores({r: ["model"] for r in range(1, 101)})
    page = shown(pair)
    assert len(page.kin["kin-0"]["steps"]) == kin_stored.STEPS
    assert "30 of the 100 stored rounds are shown, to keep the page small." in page.words


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
    runs = [fk.load_run(pair.folder / "fedmcsa" / f"seed-{seed}").lines for seed in (3, 4)]
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
    stores({2: ["<i>layer", "other"]})
    page = shown(pair)
    assert "<i>layer" not in page.html
    assert page.kin["kin-0"]["components"] == ["layer &lt;i&gt;layer", "layer other"]
    assert "<h4>layer &lt;i&gt;layer</h4>" in page.html


def test_classes_are_called_by_their_names(script) -> None:
    about = {"order": [0], "names": ["a"], "majority": [1], "classes": ["no", "yes"], "components": ["x"], "low": 0.1}
    step = {"round": 1, "ids": [0], "sources": [0], "weights": [[[1.0]]]}
    found = script("who_learns_from_whom_cells.js", "cells", about, step, 0, True)
    assert "client a: mostly yes" in found["text"][0][0]
