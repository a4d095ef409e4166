"""How relevant clients seemed, how often they were left out and how right that was: by hand, and as a run leaves it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep
from fedkin.report.charts.style import COUNTED, LOST
from fedkin.report.findings import filtering
from fedkin.report.study import studied

TITLE = "Whose updates counted"
NAN = float("nan")
TRUTH = [False, True, False, True]
IDS = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
KEPT = [
    [1, 0, 0, 1],
    [1, 0, NAN, NAN],
    [0, 1, NAN, 0],
    [1, 0, 1, 0],
]  # left out: 0 in 1 of 4, 1 in 3 of 4, 2 in 1 of 2, 3 in 2 of 3
DIVERGENCE = {2: np.array([1.0, 5.0, 9.0, 9.0]), 4: np.array([0.0, 10.0, 2.0, 8.0])}


@pytest.fixture
def filtered(recorded: Any, shown: Any, tmp_path: Path) -> Any:
    return shown(recorded(tmp_path, 4, IDS, kept=KEPT, irrelevant=TRUTH, divergence=DIVERGENCE))


def test_bars_are_the_scaled_divergence(filtered: Any) -> None:
    """Relevant clients 0 and 2 first, then 1 and 3. In round 2 only clients 0 and 1 replied."""
    relevant, irrelevant, dots = filtered.figures["divergence-0"]["data"]
    assert (relevant["x"], irrelevant["x"]) == ([0, 1], [2, 3])
    assert (relevant["marker"]["color"], irrelevant["marker"]["color"]) == (COUNTED, LOST)
    assert relevant["y"] == [0, 0.2]
    assert irrelevant["y"] == [1, 0.8]
    assert (dots["x"], dots["y"]) == ([0, 1, 2, 3], [0, 0.2, 1, 0.8])
    assert dots["name"] == "in round 4"
    assert filtered.figures["divergence-0"]["layout"]["xaxis"]["ticktext"] == ["0", "2", "1", "3"]
    hover = irrelevant["hovertext"][1]
    assert hover.startswith("<b>irrelevant client 3</b><br>divergence 0.80 on average, 0.80 in the last round")
    assert hover.endswith("left out in 2 of 3 rounds with a reply (67 %)")


def test_bars_are_means_over_the_recorded_rounds() -> None:
    divergence = {2: np.array([0.0, 1.0, 0.25, NAN]), 4: np.array([0.0, 1.0, 0.2, 0.8])}
    found = filtering.Filtering(None, divergence, {})  # type: ignore[arg-type]
    np.testing.assert_allclose(found.mean, [0, 1, 0.225, 0.8])  # of client 3 one round is known
    np.testing.assert_allclose(found.last, divergence[4])


def test_dots_are_the_share_of_rounds_left_out(filtered: Any) -> None:
    relevant, irrelevant = filtered.figures["out-0"]["data"]
    assert (relevant["x"], relevant["y"]) == ([0, 1], [25, 50])
    assert (irrelevant["x"], irrelevant["y"]) == ([2, 3], [75, 66.67])
    line = filtered.figures["out-0"]["layout"]["shapes"][0]
    assert (line["y0"], line["y1"]) == (50, 50)


def test_what_is_said_of_the_filter(filtered: Any) -> None:
    said = filtered.words
    assert "In the last round the filter found 2 of 2 irrelevant clients (recall 100 %), and 2 of the 2 it left" in said
    assert "out were irrelevant (precision 100 %); AUC 1.000." in said
    assert "2 of 4 clients were left out in more than half of the rounds with a reply: 2 of the 2 irrelevant" in said
    assert "irrelevant ones, and none of the others." in said  # half of the rounds is not more than half
    assert "The mean divergence of irrelevant clients is 0.90, of relevant ones 0.10." in said
    assert "bars: mean of 2 recorded rounds, dots: the last" in said


def test_the_filters_quality_over_the_rounds(filtered: Any) -> None:
    lines = {line["name"]: line for line in filtered.figures["filter-0"]["data"]}
    assert list(lines) == ["precision", "recall", "F1", "AUC"]
    assert all(line["x"] == [1, 2, 3, 4] for line in lines.values())
    assert lines["precision"]["y"] == [0.5, 1, 0.5, 1]
    assert lines["recall"]["y"] == [0.5, 1, 0.5, 1]
    assert lines["AUC"]["y"] == [None, 1, None, 1]  # only of rounds with a divergence


def test_long_runs_have_means_of_rounds(
    recorded: Any, shown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtering, "POINTS", 10)
    caught = [2, 2, 0, *[1] * 18]  # of the two irrelevant clients
    kept = [[1, 1, *[0] * number, *[1] * (2 - number)] for number in caught]
    truth = [False, False, True, True]
    page = shown(recorded(tmp_path, 4, [range(4)] * 21, kept=kept, irrelevant=truth, every=21))
    recall = {line["name"]: line for line in page.figures["filter-0"]["data"]}["recall"]
    assert recall["x"] == [3, 6, 9, 12, 15, 18, 21]
    assert recall["y"] == [round(2 / 3, 4), *[0.5] * 6]
    assert "The filter's lines are means of 3 rounds." in page.words


def test_without_the_truth_there_is_one_colour_and_no_verdict(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path, 4, IDS, kept=KEPT, divergence=DIVERGENCE))
    bars, dots = page.figures["divergence-0"]["data"]
    assert bars["marker"]["color"] == COUNTED
    assert bars["x"] == dots["x"] == [0, 1, 2, 3]
    assert bars["y"] == [0, 1, 0.2, 0.8]
    assert page.figures["out-0"]["data"][0]["y"] == [25, 75, 50, 66.67]
    assert "filter-0" not in page.figures
    assert "2 of 4 clients were left out in more than half of the rounds with a reply." in page.words
    section = page.words[page.words.index(TITLE) : page.words.index("Settings")]
    assert "precision" not in section
    assert "irrelevant ones" not in section


def test_a_client_that_never_replied_has_no_dot(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path, 3, [[0, 1]] * 2, kept=[[0, NAN], [1, NAN]]))
    assert page.figures["out-0"]["data"][0]["y"] == [50, None, None]
    assert page.figures["out-0"]["data"][0]["hovertext"][1].endswith("never replied")
    assert "divergence-0" not in page.figures


def test_where_every_update_counts_there_is_no_section(recorded: Any, shown: Any, tmp_path: Path) -> None:
    """Also if the truth is known, and if some clients did not reply, which is not the filter's doing."""
    page = shown(recorded(tmp_path, 3, [[0, 1]] * 2, kept=[[1, NAN], [1, 0.5]], irrelevant=[True, False, False]))
    assert TITLE not in page.words
    assert "out-0" not in page.figures


def test_a_round_in_which_nobody_is_left_out(recorded: Any, shown: Any, tmp_path: Path) -> None:
    kept = [[0, 1], [1, 1], [1, 1]]
    recorded(tmp_path, 2, [[0, 1]] * 3, kept=kept, irrelevant=[False, True], every=3)
    study = studied(tmp_path)
    del study.runs[0].lines[-1]["filter"]  # the last round of which the quality is known is the second
    said = "In round 2 the filter found 0 of 1 irrelevant clients (recall 0 %); it left nobody out."
    assert said in shown(study).words
    study = studied(tmp_path)
    study.runs[0].about_clients.pop("irrelevant")  # a run of before: the truth is not known client by client
    assert "In the last round the filter had a recall of 0 %." in shown(study).words


def test_where_nobody_is_irrelevant_nobody_is_rightly_left_out(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path, 2, [[0, 1]], kept=[[1, 0]], irrelevant=[False, False]))
    said = "No client is irrelevant here: whoever is left out is left out wrongly. 1 of 2 clients was left out"
    assert said in page.words
    assert [trace["name"] for trace in page.figures["out-0"]["data"]] == ["clients"]


def test_an_update_that_counts_a_little_is_not_left_out(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path, 2, [[0, 1]], kept=[[0.1, 0]], irrelevant=[True, True]))
    said = "the filter found 1 of 2 irrelevant clients (recall 50 %), and 1 of the 1 it left out were"
    assert said in page.words
    assert page.figures["out-0"]["data"][0]["y"] == [0, 100]


def test_very_many_clients_are_drawn_in_groups_of_one_kind(recorded: Any, shown: Any, tmp_path: Path) -> None:
    n, gen = 2600, np.random.default_rng(0)
    truth = gen.random(n) < 0.25
    divergence = {1: np.where(truth, 3.0, 1.0), 2: np.where(truth, 4.0, 0.0)}
    page = shown(recorded(tmp_path, n, [range(n)] * 2, kept=[1.0 - truth] * 2, irrelevant=truth, divergence=divergence))
    relevant, irrelevant, dots = page.figures["divergence-0"]["data"]
    assert len(dots["x"]) <= filtering.BARS
    assert len(dots["x"]) == len(relevant["x"]) + len(irrelevant["x"])
    assert set(relevant["y"]) == {0}
    assert set(irrelevant["y"]) == {1}
    assert {*page.figures["out-0"]["data"][1]["y"]} == {100}
    assert "A bar or dot is the mean of up to 6 clients, so that the page stays small." in page.words
    assert len(json.dumps(page.figures)) < 350_000


def test_scaling_leaves_gaps_and_equal_values_alone() -> None:
    np.testing.assert_array_equal(filtering.scaled(np.array([2.0, NAN, 4.0, 3.0])), [0, NAN, 1, 0.5])
    np.testing.assert_array_equal(filtering.scaled(np.array([2.0, np.inf, 2.0])), [0, NAN, 0])
    np.testing.assert_array_equal(filtering.scaled(np.array([NAN, NAN])), [NAN, NAN])


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


def test_a_filter_that_was_really_run(federate: Any, shown: Any, tmp_path: Path) -> None:
    method = replace(fk.methods.fedavg(count=5), keep=Odd())
    fed = replace(federate((4,) * 5), irrelevant=None)
    fk.run(fk.Experiment(method, fed, model="mlr", rounds=3, evaluate_every=1), tmp_path)
    study = studied(tmp_path)
    page = shown(study)
    assert page.figures["divergence-0"]["data"][0]["y"] == [0, 0.25, 0.5, 0.75, 1]
    assert page.figures["out-0"]["data"][0]["y"] == [0, 100, 0, 100, 0]
    assert "2 of 5 clients were left out in more than half of the rounds" in page.words
    np.testing.assert_array_equal(study.drawn["fedavg"][1].left_out, [0, 3, 0, 3, 0])
