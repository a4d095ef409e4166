"""The page draws the weights that were stored, blank where nobody was selected, and says what they mean."""

from __future__ import annotations

import json
import shutil
import subprocess
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fedkin.results.study import studied

import fedkin as fk
from fedkin import compare
from fedkin.messages import Kin
from fedkin.results import charts, kin, look, report
from fedkin.runs import files
from fedkin.runs.recorder import Recorder
from fedkin.runs.run import Run

go = pytest.importorskip("plotly.graph_objects")

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
    methods = compare.with_local([fk.methods.fedmcsa(count=5), fk.methods.fedavg(count=5)])
    fed = federation()
    plan = compare.arms(
        fk.Experiment(methods[0], fed, model="dnn:6", rounds=6, evaluate_every=2), methods, [3, 4], folder
    )
    compare.write_plan(folder, plan)
    assert compare.play(plan, fed)
    compare.summarised(folder, plan)
    return folder


@pytest.fixture
def pair(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(made, tmp_path / "pair"))


def script(text: str, name: str) -> Any:
    """The JSON in a page's script."""
    start = f'id="{name}">'
    return json.loads(text[text.index(start) + len(start) :].split("</script>")[0])


def shown(folder: Path) -> tuple[str, dict[str, Any]]:
    text = report.write(folder).read_text()
    return text, script(text, "kin")


def pictures(folder: Path, made: dict[int, dict[str, np.ndarray]], ids: list[int], sources: list[int]) -> None:
    """Replace the stored rounds."""
    shutil.rmtree(folder / "kin", ignore_errors=True)
    for r, weights in made.items():
        tensors = {name: torch.tensor(value) for name, value in weights.items()}
        Recorder(folder).draw(r, Kin(torch.tensor(ids), torch.tensor(sources), tensors))


def kinship(folder: Path) -> kin.Kinship:
    found = kin.kinship(studied(folder).entries["fedmcsa"])
    assert found is not None
    return found


def mixture(own: float) -> np.ndarray:
    """Everybody keeps `own` and spreads the rest evenly."""
    return np.full((N, N), (1 - own) / (N - 1)) + np.eye(N) * (own - (1 - own) / (N - 1))


everyone = list(range(N))


def test_clients_with_the_same_labels_are_side_by_side() -> None:
    labels = np.array([[90, 10, 0], [0, 0, 50], [8, 1, 0], [0, 1, 99], [0, 7, 0], [0, 0, 0], [0, 70, 1]])
    order = kin.alike(labels)
    assert sorted(order) == list(range(7))
    assert order[-1] == 5  # no samples
    places = {client: place for place, client in enumerate(order)}
    for a, b in [(0, 2), (1, 3), (4, 6)]:
        assert abs(places[a] - places[b]) == 1, (a, b, order)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_clients_have_an_order(n: int) -> None:
    assert sorted(kin.alike(np.eye(3)[:n])) == list(range(n))


def test_the_page_orders_by_labels_and_says_so(pair: Path) -> None:
    text, maps = shown(pair)
    assert list(maps) == ["kin-0"]
    groups = [client % 2 for client in maps["kin-0"]["order"]]
    assert sum(a != b for a, b in pairwise(groups)) == 1
    assert maps["kin-0"]["majority"] == [0, 2] * (N // 2)
    assert "like shares of classes are side by side" in text


def test_without_labels_the_order_is_by_number(pair: Path) -> None:
    for path in pair.glob("*/seed-*/clients.json"):
        about = files.read_json(path)
        del about["labels"]
        files.write_json(path, about)
    text, maps = shown(pair)
    assert maps["kin-0"]["order"] == everyone
    assert maps["kin-0"]["majority"] is None
    assert "ordered by number, since their classes were not written down" in text
    assert "majority class" not in text.split("<script")[0]


def test_values_are_those_of_the_first_seed(pair: Path) -> None:
    text, maps = shown(pair)
    stored = Run(pair / "fedmcsa" / "seed-3").kin()
    steps = maps["kin-0"]["steps"]
    assert [step["round"] for step in steps] == sorted(stored) == [2, 4, 6]
    for step in steps:
        expected = stored[step["round"]]
        assert step["ids"] == expected.ids.tolist()
        assert step["sources"] == expected.sources.tolist()
        for component, weights in zip(["1", "3"], step["weights"], strict=True):
            np.testing.assert_allclose(weights, expected.weights[component], rtol=5e-3, atol=kin.NOTHING)
    assert "The map is of seed 3." in text
    assert "(Seed 3, round 6.)" in text
    assert 'max="2" value="2"' in text
    assert "<output>round 6</output>" in text


def test_a_panel_a_component(pair: Path) -> None:
    text, maps = shown(pair)
    assert maps["kin-0"]["components"] == ["layer 1", "layer 3"]
    assert text.count('class="panel"') == 2
    assert "<h4>layer 1</h4>" in text
    assert "<h4>layer 3</h4>" in text


def test_many_components_are_chosen_from(pair: Path) -> None:
    folder = pair / "fedmcsa" / "seed-3"
    pictures(folder, {2: {f"conv{i}": mixture(0.3) for i in range(12)}}, everyone, everyone)
    text, maps = shown(pair)
    assert maps["kin-0"]["components"] == [f"layer conv{i}" for i in range(12)]  # 10 after 9, not after 1
    assert text.count('class="panel"') == kin.PANELS
    assert text.count("<select") == kin.PANELS
    assert text.count("<option") == 12 * kin.PANELS
    assert [i for i in range(12) if f'<option value="{i}" selected' in text] == [0, 4, 7, 11]
    assert 'type="range"' not in text.split("<script")[0]  # one round: nothing to slide over


def cells(about: dict[str, Any], step: dict[str, Any], component: int, all: bool) -> dict[str, Any]:
    """What the page's own script makes of a round."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    code = f"{look.CELLS}\nconsole.log(JSON.stringify(cells(...{json.dumps([about, step, component, all])})))"
    done = subprocess.run([node, "-"], input=code, capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("all", [True, False])
def test_cells_of_unselected_clients_are_blank(pair: Path, all: bool) -> None:
    about = shown(pair)[1]["kin-0"]
    step = about["steps"][1]
    found = cells(about, step, 1, all)
    stored = Run(pair / "fedmcsa" / "seed-3").kin()[4]
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


def test_what_pointing_at_a_cell_says() -> None:
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


def test_training_alone_is_called_so(pair: Path) -> None:
    folder = pair / "fedmcsa" / "seed-3"
    pictures(folder, {2: {"model": mixture(0.998)}}, everyone, everyone)
    said = kin.sentences(kinship(pair))
    assert said == ["Clients keep almost only their own model (self-weight 99.8\u00a0%): this is training alone."]
    pictures(folder, {2: {"model": np.eye(N)}}, everyone, everyone)
    assert kin.sentences(kinship(pair))[0].startswith("Clients keep only their own model (self-weight 100\u00a0%)")
    shown(pair)  # a scale although nobody takes anything


def test_one_mean_for_all_is_called_so(pair: Path) -> None:
    folder = pair / "fedmcsa" / "seed-3"
    sizes = np.arange(1, N + 1) / np.arange(1, N + 1).sum()
    for rows in (mixture(1 / N), np.tile(sizes, (N, 1))):  # flat, and weighted by size
        pictures(folder, {2: {"model": rows}}, everyone, everyone)
        assert kin.sentences(kinship(pair))[0].startswith("Everybody gets almost the same mean (self-weight 12.5")


def grouped(to_same: float) -> np.ndarray:
    """Half of the weight is the client's own; of the rest `to_same` goes to its three kin, the rest to four others."""
    same = np.equal.outer(np.arange(N) % 2, np.arange(N) % 2)
    weights = np.where(same, to_same / 6, (1 - to_same) / 8)
    weights[np.diag_indices(N)] = 0.5
    return weights


@pytest.mark.parametrize(("share", "word"), [(0.9, "more than"), (3 / 7, "about"), (0.1, "less than")])
def test_kin_are_counted_against_an_even_spread(pair: Path, share: float, word: str) -> None:
    pictures(pair / "fedmcsa" / "seed-3", {2: {"model": grouped(share)}}, everyone, everyone)
    facts = kin.facts(kinship(pair), "model")
    assert (facts.own, facts.same, facts.chance) == pytest.approx((0.5, share, 3 / 7))
    assert facts.neighbours == 7
    said = kin.sentences(kinship(pair))[0].replace("\u00a0", " ")
    assert said.startswith("A client keeps 50 % of its own model and takes the rest from 7 others on average.")
    assert f"{100 * share:.3g} % comes from clients with the same majority class, {word} the 42.9 %" in said


def test_sources_that_are_not_selected_count(pair: Path) -> None:
    """FedACS may mix models of clients that took part in earlier rounds."""
    rows = grouped(0.9)[[1, 4]]
    pictures(pair / "fedmcsa" / "seed-3", {2: {"model": rows}}, [1, 4], everyone)
    facts = kin.facts(kinship(pair), "model")
    assert (facts.own, facts.same, facts.chance) == pytest.approx((0.5, 0.9, 3 / 7))
    step = shown(pair)[1]["kin-0"]["steps"][0]
    assert (step["ids"], step["sources"]) == ([1, 4], everyone)


def test_components_speak_for_themselves(pair: Path) -> None:
    weights = {"10": mixture(0.999), "2": mixture(1 / N), "3": mixture(1 / N)}
    pictures(pair / "fedmcsa" / "seed-3", {2: weights}, everyone, everyone)
    first, second = kin.sentences(kinship(pair))
    assert first.startswith("Layer 2, 3: everybody gets almost the same mean")
    assert second.startswith("Layer 10: clients keep almost only their own model")


def test_sentences_are_of_the_last_quarter(pair: Path) -> None:
    rounds = {r: {"model": mixture(0.2 if r < 7 else 0.995)} for r in range(1, 9)}
    pictures(pair / "fedmcsa" / "seed-3", rounds, everyone, everyone)
    one = kinship(pair)
    assert one.late == [7, 8]
    assert "(self-weight 99.5\u00a0%)" in kin.sentences(one)[0]


def test_rounds_are_thinned_and_the_ends_stay(pair: Path) -> None:
    pictures(pair / "fedmcsa" / "seed-3", {r: {"model": mixture(0.3)} for r in range(1, 101)}, everyone, everyone)
    packed = kin.packed(kinship(pair))
    assert len(packed.rounds) == kin.STEPS
    assert (packed.rounds[0], packed.rounds[-1]) == (1, 100)
    assert packed.note == "30 of the 100 stored rounds are shown, to keep the page small."
    assert packed.note in report.write(pair).read_text()


def test_the_weights_stay_within_the_budget(pair: Path) -> None:
    gen = np.random.default_rng(0)
    layers = [f"l{i}" for i in range(8)]
    rounds = {r: {name: gen.dirichlet(np.ones(N), N) for name in layers} for r in range(1, 21)}
    pictures(pair / "fedmcsa" / "seed-3", rounds, everyone, everyone)
    one = kinship(pair)
    for budget in (20_000, 40_000):
        packed = kin.packed(one, budget)
        assert 5 <= len(packed.rounds) < 20
        assert packed.rounds[-1] == 20
        assert 0.7 * budget < sum(len(json.dumps(s, separators=(",", ":"))) for s in steps(packed)) <= budget
        assert f"{len(packed.rounds)} of the 20 stored rounds" in packed.note
    packed = kin.packed(one, 8_000)
    assert packed.components == ["l0", "l2", "l5", "l7"]
    assert "4 of 8 layers are shown" in packed.note
    assert packed.text
    assert kin.packed(one, 500).text == ""


def steps(packed: kin.Packed) -> list[Any]:
    return list(json.loads(packed.text)["steps"])


def test_too_big_a_picture_is_left_out_and_that_is_said(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kin, "BUDGET", 100)
    text = report.write(pair).read_text()
    assert "The weights are left out of this page" in text
    assert 'id="kin"' not in text
    assert 'class="panel"' not in text
    assert "self_weight-0" in script(text, "figures")  # the lines are small


def test_trends_are_means_over_seeds(pair: Path) -> None:
    figures = script(report.write(pair).read_text(), "figures")
    found = {name: figure for name, figure in figures.items() if name.endswith("-0") and "weight" in name}
    assert list(found) == ["self_weight-0"]
    assert "neighbours-0" in figures
    assert "threshold-0" not in figures
    runs = [Run(pair / "fedmcsa" / f"seed-{seed}").rounds() for seed in (3, 4)]
    for word in ("self_weight", "neighbours"):
        values = np.array([[x["collaborate"][word] for x in run if "collaborate" in x] for run in runs])
        *seeds, line = figures[f"{word}-0"]["data"]
        assert line["x"] == [2, 4, 6]
        np.testing.assert_allclose(line["y"], values.mean(0))
        np.testing.assert_allclose([seed["y"] for seed in seeds], values)
        go.Figure(figures[f"{word}-0"])


def test_methods_without_mixtures_have_no_section(tmp_path: Path) -> None:
    fk.run(fk.Experiment(fk.methods.fedavg(count=3), federation(), rounds=2), tmp_path)
    text = report.write(tmp_path).read_text()
    assert "Who learns from whom" not in text
    assert 'id="kin"' not in text
    assert "function cells" not in text


def test_only_methods_with_mixtures_are_drawn(pair: Path) -> None:
    text, maps = shown(pair)
    section = text[text.index("Who learns from whom") : text.index("<h2>Settings")]
    assert section.count("<article>") == len(maps) == 1
    assert "fedavg" not in section


def test_an_unfinished_seed_is_drawn_and_called_so(pair: Path) -> None:
    (pair / "fedmcsa" / "seed-3" / "summary.json").unlink()
    assert "That seed is unfinished (round 6 of 6)." in shown(pair)[0]


def test_names_are_escaped(pair: Path) -> None:
    text, maps = shown(pair)
    assert ODD not in text
    name = maps["kin-0"]["names"][0]
    assert "<" not in name
    assert unescape(name) == ODD
    odd = {"<i>layer": mixture(0.3), "other": mixture(0.3)}
    pictures(pair / "fedmcsa" / "seed-3", {2: odd}, everyone, everyone)
    text, maps = shown(pair)
    assert "<i>layer" not in text
    assert maps["kin-0"]["components"] == ["layer &lt;i&gt;layer", "layer other"]
    assert "<h4>layer &lt;i&gt;layer</h4>" in text


def test_the_scale_shows_small_weights_but_not_noise(pair: Path) -> None:
    folder = pair / "fedmcsa" / "seed-3"
    pictures(folder, {2: {"model": mixture(1 / N)}}, everyone, everyone)
    packed = kin.packed(kinship(pair))
    assert (packed.low, packed.high) == pytest.approx((0.0125, 0.125), rel=0.05)  # equal weights look equal
    spread = np.where(np.tri(N, dtype=bool), 0.1, 1e-6)
    pictures(folder, {2: {"model": spread}}, everyone, everyone)
    packed = kin.packed(kinship(pair))
    assert packed.high / packed.low == pytest.approx(10**kin.DECADES, rel=0.05)
    ramp = charts.ramp(packed.low, packed.high)
    assert "10 %" in ramp
    assert "≤ 0.001 %" in ramp
