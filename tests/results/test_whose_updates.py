"""How relevant clients seemed, how often they were left out and how right that was: by hand, and as a run leaves it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fedkin.results.attendance import attended
from fedkin.results.study import studied
from torch import Tensor

import fedkin as fk
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep
from fedkin.results import charts, relevance, report

go = pytest.importorskip("plotly.graph_objects")

TITLE = "Whose updates counted"
NAN = float("nan")
TRUTH = [False, True, False, True]
IDS = [[0, 1, 2, 3], [0, 1, 3], [0, 1, 2, 3], [0, 1, 3]]
KEPT = [
    [1, 0, 0, 1],
    [1, 0, NAN],
    [0, 1, 1, 0],
    [1, 0, 0],
]  # left out: 0 in 1 of 4, 1 in 3 of 4, 2 in 1 of 2, 3 in 2 of 3
DIVERGENCE = {2: np.array([1.0, 5.0, 2.0, NAN]), 4: np.array([0.0, 10.0, 2.0, 8.0])}
GOOD = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "auc": 0.875}
POOR: dict[str, float | None] = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "auc": None}
FILTERS = [POOR, None, POOR, GOOD]


def figures(folder: Path) -> tuple[str, dict[str, Any]]:
    """What a reader sees, and the page's figures, which plotly can draw."""
    text = report.write(folder).read_text()
    start = 'id="figures">'
    found = json.loads(text[text.index(start) + len(start) :].split("</script>")[0])
    for figure in found.values():
        go.Figure(figure)  # raises on an unknown property
    body = text.split("<script")[0].split("</style>")[1]
    return unescape(re.sub("<[^>]*>", " ", body)).replace("\u00a0", " "), found


@pytest.fixture
def filtered(made_up: Any, tmp_path: Path) -> Path:
    marks = {"keep/divergence": DIVERGENCE}
    found: Path = made_up(tmp_path / "run", 4, IDS, kept=KEPT, irrelevant=TRUTH, marks=marks, filters=FILTERS)
    return found


def test_bars_are_the_scaled_divergence(filtered: Path) -> None:
    """Relevant clients 0 and 2 first, then 1 and 3."""
    _, found = figures(filtered)
    relevant, irrelevant, dots = found["divergence-0"]["data"]
    assert (relevant["x"], irrelevant["x"]) == ([0, 1], [2, 3])
    assert (relevant["marker"]["color"], irrelevant["marker"]["color"]) == (charts.COUNTED, charts.LOST)
    assert relevant["y"] == [0, round((0.25 + 0.2) / 2, 4)]
    assert irrelevant["y"] == [1, 0.8]  # of client 3 one round is known
    assert (dots["x"], dots["y"]) == ([0, 1, 2, 3], [0, 0.2, 1, 0.8])
    assert dots["name"] == "in round 4"
    assert found["divergence-0"]["layout"]["xaxis"]["ticktext"] == ["0", "2", "1", "3"]
    hover = irrelevant["hovertext"][1]
    assert hover.startswith("<b>irrelevant client 3</b><br>divergence 0.80 on average, 0.80 in the last round")
    assert hover.endswith("left out in 2 of 3 rounds with a reply (67 %)")


def test_dots_are_the_share_of_rounds_left_out(filtered: Path) -> None:
    _, found = figures(filtered)
    relevant, irrelevant = found["out-0"]["data"]
    assert (relevant["x"], relevant["y"]) == ([0, 1], [25, 50])
    assert (irrelevant["x"], irrelevant["y"]) == ([2, 3], [75, 66.67])
    line = found["out-0"]["layout"]["shapes"][0]
    assert (line["y0"], line["y1"]) == (50, 50)


def test_what_is_said_of_the_filter(filtered: Path) -> None:
    text, _ = figures(filtered)
    assert (
        "In the last round the filter found 2 of 2 irrelevant clients (recall 100 %), and 2 of the 2 it left out"
        in text
    )
    assert "were irrelevant (precision 100 %); AUC 0.875." in text
    assert "2 of 4 clients were left out in more than half of the rounds with a reply: 2 of the 2 irrelevant" in text
    assert "irrelevant ones, and none of the others." in text  # half of the rounds is not more than half
    assert "The mean divergence of irrelevant clients is 0.90, of relevant ones 0.11." in text
    assert "bars: mean of 2 recorded rounds, dots: the last" in text


def test_the_filters_quality_over_the_rounds(filtered: Path) -> None:
    _, found = figures(filtered)
    lines = {line["name"]: line for line in found["filter-0"]["data"]}
    assert list(lines) == ["precision", "recall", "F1", "AUC"]
    assert all(line["x"] == [1, 3, 4] for line in lines.values())
    assert lines["recall"]["y"] == [0.25, 0.25, 1]
    assert lines["AUC"]["y"] == [None, None, 0.875]


def test_long_runs_have_means_of_rounds(made_up: Any, tmp_path: Path) -> None:
    rounds = 2 * relevance.POINTS + 1
    filters = [{"precision": 0.5, "recall": r / rounds, "f1": None, "auc": None} for r in range(rounds)]
    made_up(tmp_path, 2, [[0, 1]] * rounds, kept=[[1, 0]] * rounds, irrelevant=[False, True], filters=filters, every=99)
    text, found = figures(tmp_path)
    precision, recall = found["filter-0"]["data"]
    assert len(recall["x"]) == len(precision["y"]) == 267
    assert recall["y"][0] == pytest.approx(1 / rounds, abs=1e-4)  # of 0, 1 and 2
    assert (recall["x"][0], recall["x"][-1]) == (3, rounds)
    assert "The filter's lines are means of 3 rounds." in text


def test_without_the_truth_there_is_one_colour_and_no_verdict(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 4, IDS, kept=KEPT, marks={"keep/divergence": DIVERGENCE})
    text, found = figures(tmp_path)
    bars, dots = found["divergence-0"]["data"]
    assert bars["marker"]["color"] == charts.COUNTED
    assert bars["x"] == dots["x"] == [0, 1, 2, 3]
    assert bars["y"] == [0, 1, 0.225, 0.8]
    assert found["out-0"]["data"][0]["y"] == [25, 75, 50, 66.67]
    assert "filter-0" not in found
    assert "2 of 4 clients were left out in more than half of the rounds with a reply." in text
    section = text[text.index(TITLE) : text.index("Settings")]
    assert "precision" not in section
    assert "irrelevant ones" not in section


def test_a_client_that_never_replied_has_no_dot(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 3, [[0, 1]] * 2, kept=[[0, NAN], [1, NAN]])
    _, found = figures(tmp_path)
    assert found["out-0"]["data"][0]["y"] == [50, None, None]
    assert found["out-0"]["data"][0]["hovertext"][1].endswith("never replied")
    assert "divergence-0" not in found


def test_where_every_update_counts_there_is_no_section(made_up: Any, tmp_path: Path) -> None:
    """Also if the truth is known, and if some clients did not reply, which is not the filter's doing."""
    none = {"precision": None, "recall": 0.0, "f1": None, "auc": None}
    made_up(tmp_path, 3, [[0, 1]] * 2, kept=[[1, NAN], [1, 0.5]], irrelevant=[True, False, False], filters=[none, none])
    text, found = figures(tmp_path)
    assert TITLE not in text
    assert "out-0" not in found


def test_a_round_in_which_nobody_is_left_out(made_up: Any, tmp_path: Path) -> None:
    last = {"precision": None, "recall": 0.0, "f1": None, "auc": None}
    made_up(
        tmp_path, 2, [[0, 1]] * 3, kept=[[0, 1], [1, 1], [1, 1]], irrelevant=[False, True], filters=[POOR, last, None]
    )
    text, _ = figures(tmp_path)
    assert "In round 2 the filter found 0 of 1 irrelevant clients (recall 0 %); it left nobody out." in text
    (tmp_path / "clients.json").unlink()  # without it the truth is not known client by client
    text, _ = figures(tmp_path)
    assert "In round 2 the filter had a recall of 0 %." in text


def test_where_nobody_is_irrelevant_nobody_is_rightly_left_out(made_up: Any, tmp_path: Path) -> None:
    clean: dict[str, float | None] = {"precision": 0.0, "recall": None, "f1": None, "auc": None}
    made_up(tmp_path, 2, [[0, 1]], kept=[[1, 0]], irrelevant=[False, False], filters=[clean])
    text, found = figures(tmp_path)
    assert "No client is irrelevant here: whoever is left out is left out wrongly. 1 of 2 clients was left out" in text
    assert [trace["name"] for trace in found["out-0"]["data"]] == ["clients"]


def test_an_update_that_counts_a_little_is_not_left_out(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 2, [[0, 1]], kept=[[0.1, 0]], irrelevant=[True, True], filters=[POOR])
    text, found = figures(tmp_path)
    assert "the filter found 1 of 2 irrelevant clients (recall 25 %), and 1 of the 1 it left out were" in text
    assert found["out-0"]["data"][0]["y"] == [0, 100]


def test_very_many_clients_are_drawn_in_groups_of_one_kind(made_up: Any, tmp_path: Path) -> None:
    n, gen = 2600, np.random.default_rng(0)
    truth = gen.random(n) < 0.25
    marks = {"keep/divergence": {1: np.where(truth, 3.0, 1.0), 2: np.where(truth, 4.0, 0.0)}}
    made_up(tmp_path, n, [range(n)] * 2, kept=[1.0 - truth] * 2, irrelevant=truth, marks=marks)
    text, found = figures(tmp_path)
    relevant, irrelevant, dots = found["divergence-0"]["data"]
    assert len(dots["x"]) <= relevance.BARS
    assert len(dots["x"]) == len(relevant["x"]) + len(irrelevant["x"])
    assert set(relevant["y"]) == {0}
    assert set(irrelevant["y"]) == {1}
    assert {*found["out-0"]["data"][1]["y"]} == {100}
    assert "A bar or dot is the mean of up to 6 clients, so that the page stays small." in text
    assert len(json.dumps(found)) < 350_000


def test_scaling_leaves_gaps_and_equal_values_alone() -> None:
    np.testing.assert_array_equal(relevance.scaled(np.array([2.0, NAN, 4.0, 3.0])), [0, NAN, 1, 0.5])
    np.testing.assert_array_equal(relevance.scaled(np.array([2.0, np.inf, 2.0])), [0, NAN, 0])
    np.testing.assert_array_equal(relevance.scaled(np.array([NAN, NAN])), [NAN, NAN])


@dataclass(frozen=True)
class Odd(Keep):
    """Leaves clients with odd numbers out; its divergence is a client's number."""

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        return {"divergence": torch.full((task.n,), torch.nan, dtype=torch.float64)}

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        kept = (reply.ids % 2 == 0).double()
        return kept, {"divergence": slot["divergence"].index_copy(0, reply.ids, reply.ids.double())}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"divergence": slot["divergence"]}


def test_a_filter_that_was_really_run(tmp_path: Path) -> None:
    method = replace(fk.methods.fedavg(count=5), keep=Odd())
    fk.run(fk.Experiment(method, fk.Data("digits", clients=5), rounds=3, evaluate_every=1), tmp_path)
    text, found = figures(tmp_path)
    assert found["divergence-0"]["data"][0]["y"] == [0, 0.25, 0.5, 0.75, 1]
    assert found["out-0"]["data"][0]["y"] == [0, 100, 0, 100, 0]
    assert "2 of 5 clients were left out in more than half of the rounds" in text
    one = attended(studied(tmp_path).entries["fedavg"])
    assert one is not None
    np.testing.assert_array_equal(one.left_out, [0, 3, 0, 3, 0])
