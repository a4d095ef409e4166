"""What the selection thinks of the clients is drawn as it was recorded: a line a client, or bands of many."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedkin as fk
from fedkin.report.charts.style import COUNTED, LOST, decades, faint
from fedkin.report.findings.scores import scale_of
from fedkin.report.study import studied

TITLE = "What the selection thinks of the clients"
NAN = float("nan")


def test_attention_is_drawn_in_even_shares_with_its_entropy(federate: Any, shown: Any, tmp_path: Path) -> None:
    n = 6
    fed = replace(federate((9, 8, 7, 6, 5, 4)), irrelevant=None)
    experiment = fk.Experiment(fk.methods.adafl(start=0.4), fed, model="mlr", rounds=6, evaluate_every=2)
    lines = fk.run(experiment, tmp_path).lines
    page = shown(tmp_path)
    stored = fk.load_run(tmp_path).marks("select", "score")
    assert sorted(stored) == [2, 4, 6]
    traces = page.figures["scores-0"]["data"]
    assert len(traces) == n
    for k, trace in enumerate(traces):
        assert trace["x"] == [2, 4, 6]
        np.testing.assert_allclose(trace["y"], [n * stored[r][k] for r in (2, 4, 6)], rtol=1e-3)
        assert f"client {k}," in trace["hovertemplate"]
    last = n * stored[6]
    assert f"In round 6 client {last.argmax()} has the highest score, {last.max():.3g}, and" in page.words
    assert f"client {last.argmin()} the lowest, {last.min():.3g}." in page.words
    assert "1 is an even share" in page.words
    written = [line["select"] for line in lines if "select" in line]
    for word in ("entropy", "max_min"):
        assert page.figures[f"{word}-0"]["data"][-1]["y"] == [numbers[word] for numbers in written]


def test_selections_without_scores_have_no_section(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path, 4, [[0], [1]]))
    assert TITLE not in page.words
    assert not any(name.startswith("scores") for name in page.figures)


def many(n: int = 120, rounds: int = 40) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Scores of many clients that drift apart, in some order of the clients."""
    speed = np.random.default_rng(0).permutation(n) - n / 2
    return speed, {r: 1000 + r * speed for r in range(1, rounds + 1)}


def test_many_clients_are_bands_with_the_ends_by_name(recorded: Any, shown: Any, tmp_path: Path) -> None:
    speed, values = many()
    page = shown(recorded(tmp_path, len(speed), [[0]] * 40, score=values))
    low, high, least, most, median, *named = page.figures["scores-0"]["data"]
    stacked = np.stack([values[r] for r in sorted(values)])
    for trace, share in ((low, 0.1), (high, 0.9), (least, 0), (most, 1), (median, 0.5)):
        np.testing.assert_allclose(trace["y"], np.quantile(stacked, share, axis=1), rtol=1e-3)
    assert high["fill"] == "tonexty"
    order = np.argsort(speed)
    assert [trace["name"] for trace in named] == [f"client {k}" for k in [*order[::-1][:2], *order[:2][::-1]]]
    np.testing.assert_allclose(named[0]["y"], stacked[:, order[-1]], rtol=1e-3)
    assert "Thick: the median; band: the middle 80 % of the clients" in page.words
    assert "Seed 0; scores of 40 rounds were kept." in page.words
    assert "Larger scores are drawn more often." in page.words  # this selection gives them no name
    assert len(json.dumps(page.figures["scores-0"])) < 40_000


def test_relevant_and_irrelevant_clients_have_two_colours(recorded: Any, shown: Any, tmp_path: Path) -> None:
    speed, values = many()
    page = shown(recorded(tmp_path / "many", len(speed), [[0]] * 40, score=values, irrelevant=speed > 30))
    medians = {t["name"]: t for t in page.figures["scores-0"]["data"] if "name" in t and t["line"]["width"] == 2.5}
    assert set(medians) == {"relevant clients", "irrelevant clients"}
    for name, tone, mask in (
        ("relevant clients", COUNTED, speed <= 30),
        ("irrelevant clients", LOST, speed > 30),
    ):
        assert medians[name]["line"]["color"] == tone
        assert medians[name]["y"][-1] == pytest.approx(np.median(values[40][mask]), rel=1e-3)
    means = [f"{values[40][mask].mean():.3g}" for mask in (speed > 30, speed <= 30)]
    assert f"Irrelevant clients have {means[0]} on average, the others {means[1]}." in page.words
    few = {r: row[:4] for r, row in values.items()}
    one = [False, True, False, False]
    lines = shown(recorded(tmp_path / "few", 4, [[0]] * 40, score=few, irrelevant=one)).figures["scores-0"]["data"]
    assert [t["line"]["color"] == faint(LOST, 0.7) for t in lines] == [False, False, False, True]
    assert [t["showlegend"] for t in lines] == [True, False, False, True]
    assert "client 1," in lines[3]["hovertemplate"]


@pytest.mark.parametrize("n", [4, 60])
def test_what_is_not_known_is_left_open(recorded: Any, shown: Any, tmp_path: Path, n: int) -> None:
    """A client that never reported; a round in which nobody had; a kind of which nobody has."""
    values = {r: np.arange(n) + 1.0 for r in (1, 2, 3)}
    values[1][:] = -np.inf
    values[2][0], values[3][1] = -np.inf, NAN
    truth = np.arange(n) < 2
    values[2][truth] = NAN
    page = shown(recorded(tmp_path, n, [[0]] * 3, score=values, irrelevant=truth))
    traces = page.figures["scores-0"]["data"]
    assert all(trace["x"] == [2, 3] for trace in traces)
    medians = [trace["y"] for trace in traces if trace.get("name") == "irrelevant clients"]
    assert medians[0] == [None, 1.0]
    assert "client 0 the lowest, 1." in page.words


def test_a_wide_range_is_drawn_on_a_logarithmic_scale(recorded: Any, shown: Any, tmp_path: Path) -> None:
    for name, last, kind in (("wide", 30.0, "log"), ("narrow", 5.0, None), ("negative", -30.0, None)):
        page = shown(recorded(tmp_path / name, 3, [[0]], score={1: np.array([1.0, 2.0, last])}))
        assert page.figures["scores-0"]["layout"]["yaxis"].get("type") == kind
        assert ("The scale is logarithmic." in page.words) == (kind == "log")
    assert decades(0.03, 4) == [0.05, 0.1, 0.2, 0.5, 1, 2, 5]


def test_scores_of_different_kinds_are_each_explained(recorded: Any, shown: Any, tmp_path: Path) -> None:
    kinds = {"active": "Active", "adafl": "Attention", "sfedavg": "Shapley"}
    for name in kinds:
        recorded(tmp_path / name / "seed-0", 2, [[0]], score={1: np.array([1.0, 2.0])}, name=name)
    study = studied(tmp_path)
    for run in study.runs:
        run.experiment["method"]["select"]["is"] = "Attention"
    assert shown(study).words.count("1 is an even share") == 1
    study = studied(tmp_path)
    for name, kind in kinds.items():
        study.entries[name].runs[0].experiment["method"]["select"]["is"] = kind
    page = shown(study)
    meanings = [scale_of(kind, 2).meaning for kind in kinds.values()]
    assert len(set(meanings)) == 3
    order = [page.words.index(meaning) for meaning in meanings]
    assert order == sorted(order)
    assert page.figures["scores-1"]["data"][1]["y"] == [4.0]  # attention, in shares of 1 / 2
    assert page.figures["scores-0"]["data"][1]["y"] == [2.0]


@pytest.mark.parametrize(
    ("method", "kind"),
    [(fk.methods.adafl(), "Attention"), (fk.methods.active(), "Active"), (fk.methods.sfedavg(), "Shapley")],
)
def test_selections_have_the_names_that_are_explained(method: fk.Method, kind: str) -> None:
    about = fk.Experiment(method, fk.Data("digits", clients=3), rounds=1).described()
    assert about["method"]["select"]["is"] == kind
    assert scale_of(kind, 2) != scale_of("another", 2)


def test_an_unfinished_run_is_drawn_and_called_so(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path, 2, [[0]], score={1: np.array([1.0, 2.0])}, asked=3))
    assert "scores-0" in page.figures
    assert "Seed 0; scores of 1 round were kept. That seed is unfinished (round 1 of 3)." in page.words


def test_names_are_escaped(recorded: Any, shown: Any, tmp_path: Path) -> None:
    odd = "<b>&\"ward' 7</b></script>"
    page = shown(recorded(tmp_path, 2, [[0]], score={1: np.array([1.0, 2.0])}, names=["a", odd]))
    assert odd not in page.html
    assert f"client {odd} has the highest" in unescape(page.html)
    line = page.figures["scores-0"]["data"][1]["hovertemplate"]
    assert "<b>" not in line
    assert odd in unescape(line)
