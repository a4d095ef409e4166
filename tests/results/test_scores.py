"""What the selection thinks of the clients is drawn as it was recorded: a line a client, or bands of many."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedkin as fk
from fedkin.results import charts, report, scores
from fedkin.runs.run import Run

go = pytest.importorskip("plotly.graph_objects")

TITLE = "What the selection thinks of the clients"
NAN = float("nan")


def figures(folder: Path) -> tuple[str, dict[str, Any]]:
    """What a reader sees, and the page's figures, which plotly can draw."""
    text = report.write(folder).read_text()
    start = 'id="figures">'
    found = json.loads(text[text.index(start) + len(start) :].split("</script>")[0])
    for figure in found.values():
        go.Figure(figure)  # raises on an unknown property
    body = text.split("<script")[0].split("</style>")[1]
    return unescape(re.sub("<[^>]*>", " ", body)).replace("\u00a0", " "), found


def test_attention_is_drawn_in_even_shares_with_its_entropy(tmp_path: Path) -> None:
    n = 6
    experiment = fk.Experiment(fk.methods.adafl(start=0.4), fk.Data("digits", clients=n), rounds=6, evaluate_every=2)
    fk.run(experiment, tmp_path)
    text, found = figures(tmp_path)
    stored = Run(tmp_path).marks("select", "score")
    assert sorted(stored) == [2, 4, 6]
    lines = found["scores-0"]["data"]
    assert len(lines) == n
    for k, line in enumerate(lines):
        assert line["x"] == [2, 4, 6]
        np.testing.assert_allclose(line["y"], [n * stored[r][k] for r in (2, 4, 6)], rtol=1e-3)
        assert f"client {k}," in line["hovertemplate"]
    last = n * stored[6]
    assert f"In round 6 client {last.argmax()} has the highest score, {last.max():.3g}, and" in text
    assert f"client {last.argmin()} the lowest, {last.min():.3g}." in text
    assert "1 is an even share" in text
    written = [line["select"] for line in Run(tmp_path).rounds() if "select" in line]
    for word in ("entropy", "max_min"):
        assert found[f"{word}-0"]["data"][-1]["y"] == [numbers[word] for numbers in written]


def test_selections_without_scores_have_no_section(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 4, [[0], [1]])
    text, found = figures(tmp_path)
    assert TITLE not in text
    assert not any(name.startswith("scores") for name in found)


def many(n: int = 120, rounds: int = 40) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Scores of many clients that drift apart, in some order of the clients."""
    speed = np.random.default_rng(0).permutation(n) - n / 2
    return speed, {r: 1000 + r * speed for r in range(1, rounds + 1)}


def test_many_clients_are_bands_with_the_ends_by_name(made_up: Any, tmp_path: Path) -> None:
    speed, values = many()
    n = len(speed)
    made_up(tmp_path, n, [[0]] * 40, marks={"select/score": values})
    text, found = figures(tmp_path)
    low, high, least, most, median, *named = found["scores-0"]["data"]
    stacked = np.stack([values[r] for r in sorted(values)])
    for trace, share in ((low, 0.1), (high, 0.9), (least, 0), (most, 1), (median, 0.5)):
        np.testing.assert_allclose(trace["y"], np.quantile(stacked, share, axis=1), rtol=1e-3)
    assert high["fill"] == "tonexty"
    order = np.argsort(speed)
    assert [trace["name"] for trace in named] == [f"client {k}" for k in [*order[::-1][:2], *order[:2][::-1]]]
    np.testing.assert_allclose(named[0]["y"], stacked[:, order[-1]], rtol=1e-3)
    assert "Thick: the median; band: the middle 80 % of the clients" in text
    assert "Seed 0; scores of 40 rounds were kept." in text
    assert "Larger scores are drawn more often." in text  # FedAvg's selection gives them no name
    assert len(json.dumps(found["scores-0"])) < 40_000


def test_relevant_and_irrelevant_clients_have_two_colours(made_up: Any, tmp_path: Path) -> None:
    speed, values = many()
    made_up(tmp_path / "many", len(speed), [[0]] * 40, marks={"select/score": values}, irrelevant=speed > 30)
    text, found = figures(tmp_path / "many")
    medians = {t["name"]: t for t in found["scores-0"]["data"] if "name" in t and t["line"]["width"] == 2.5}
    assert set(medians) == {"relevant clients", "irrelevant clients"}
    for name, tone, mask in (
        ("relevant clients", charts.COUNTED, speed <= 30),
        ("irrelevant clients", charts.LOST, speed > 30),
    ):
        assert medians[name]["line"]["color"] == tone
        assert medians[name]["y"][-1] == pytest.approx(np.median(values[40][mask]), rel=1e-3)
    means = [f"{values[40][mask].mean():.3g}" for mask in (speed > 30, speed <= 30)]
    assert f"Irrelevant clients have {means[0]} on average, the others {means[1]}." in text
    few = {r: row[:4] for r, row in values.items()}
    made_up(tmp_path / "few", 4, [[0]] * 40, marks={"select/score": few}, irrelevant=[False, True, False, False])
    _, found = figures(tmp_path / "few")
    lines = found["scores-0"]["data"]
    assert [t["line"]["color"] == charts.faint(charts.LOST, 0.7) for t in lines] == [False, False, False, True]
    assert [t["showlegend"] for t in lines] == [True, False, False, True]
    assert "client 1," in lines[3]["hovertemplate"]


@pytest.mark.parametrize("n", [4, 60])
def test_what_is_not_known_is_left_open(made_up: Any, tmp_path: Path, n: int) -> None:
    """A client that never reported; a round in which nobody had; a kind of which nobody has."""
    values = {r: np.arange(n) + 1.0 for r in (1, 2, 3)}
    values[1][:] = -np.inf
    values[2][0], values[3][1] = -np.inf, NAN
    truth = np.arange(n) < 2
    values[2][truth] = NAN
    made_up(tmp_path, n, [[0]] * 3, marks={"select/score": values}, irrelevant=truth)
    text, found = figures(tmp_path)
    assert all(trace["x"] == [2, 3] for trace in found["scores-0"]["data"])
    medians = [t["y"] for t in found["scores-0"]["data"] if t.get("name") == "irrelevant clients"]
    assert medians[0] == [None, 1.0]
    assert "client 0 the lowest, 1." in text


def test_a_wide_range_is_drawn_on_a_logarithmic_scale(made_up: Any, tmp_path: Path) -> None:
    for name, last, kind in (("wide", 30.0, "log"), ("narrow", 5.0, None), ("negative", -30.0, None)):
        made_up(tmp_path / name, 3, [[0]], marks={"select/score": {1: np.array([1.0, 2.0, last])}})
        text, found = figures(tmp_path / name)
        assert found["scores-0"]["layout"]["yaxis"].get("type") == kind
        assert ("The scale is logarithmic." in text) == (kind == "log")
    assert charts.decades(0.03, 4) == [0.05, 0.1, 0.2, 0.5, 1, 2, 5]


def test_scores_of_different_kinds_are_each_explained(made_up: Any, tmp_path: Path) -> None:
    marks = {"select/score": {1: np.array([1.0, 2.0])}}
    made_up(tmp_path / "adafl" / "seed-0", 2, [[0]], marks=marks, method=fk.methods.adafl(), name="adafl")
    text, _ = figures(tmp_path)
    assert text.count("1 is an even share") == 1
    made_up(tmp_path / "active" / "seed-0", 2, [[0]], marks=marks, method=fk.methods.active(), name="active")
    made_up(tmp_path / "sfedavg" / "seed-0", 2, [[0]], marks=marks, method=fk.methods.sfedavg(), name="sfedavg")
    text, found = figures(tmp_path)
    order = [text.index(what) for what in ("its loss times the root", "1 is an even share", "the validation accuracy")]
    assert order == sorted(order)
    assert found["scores-1"]["data"][1]["y"] == [4.0]  # attention, in shares of 1 / 2
    assert found["scores-0"]["data"][1]["y"] == [2.0]


def test_an_unfinished_run_is_drawn_and_called_so(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 2, [[0]], marks={"select/score": {1: np.array([1.0, 2.0])}}, finished=False)
    text, found = figures(tmp_path)
    assert "scores-0" in found
    assert "Seed 0; scores of 1 round were kept. That seed is unfinished (round 1 of 1)." in text


def test_names_are_escaped(made_up: Any, tmp_path: Path) -> None:
    odd = "<b>&\"ward' 7</b></script>"
    made_up(tmp_path, 2, [[0]], marks={"select/score": {1: np.array([1.0, 2.0])}}, names=["a", odd])
    text, found = figures(tmp_path)
    assert f"client {odd} has the highest" in text.replace("  ", " ")
    line = found["scores-0"]["data"][1]["hovertemplate"]
    assert "<b>" not in line
    assert odd in unescape(line)
    assert scores.TRENDS.keys() == {"entropy", "max_min"}
