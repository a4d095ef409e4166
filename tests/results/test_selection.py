"""The picture of clients against rounds shows who was selected and whose update counted, however many there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fedkin.results.study import studied

import fedkin as fk
from fedkin.results import attendance, charts, look, report, selection
from fedkin.runs.run import Run

go = pytest.importorskip("plotly.graph_objects")

NAN = float("nan")
ODD = "<b>&\"ward' 7</b></script>"


def script(text: str, name: str) -> Any:
    """The JSON in a page's script."""
    start = f'id="{name}">'
    return json.loads(text[text.index(start) + len(start) :].split("</script>")[0])


def words(text: str) -> str:
    """What a reader sees, without the sentences that the script fills in."""
    body = text[: text.index('<script type="application/json"')].split("</style>")[1]
    return unescape(re.sub("<[^>]*>", " ", body)).replace("\u00a0", " ")


def shown(folder: Path) -> tuple[str, dict[str, Any]]:
    text = report.write(folder).read_text()
    return text, script(text, "rounds")


def attended(folder: Path, name: str = "fedavg") -> attendance.Attendance:
    found = attendance.attended(studied(folder).entries[name])
    assert found is not None
    return found


def said(about: dict[str, Any]) -> dict[str, Any]:
    """What the page's own script makes of a stored picture."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    code = f"{look.ATTENDED}\nconsole.log(JSON.stringify(attended({json.dumps(about)})))"
    done = subprocess.run([node, "-"], input=code, capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout))


IDS = [[0, 1], [1, 2], [0, 3], [1]]
KEPT = [[1, 0], [1, NAN], [0.25, 1], [0]]


def test_a_cell_a_client_and_round(made_up: Any, tmp_path: Path) -> None:
    _, pictures = shown(made_up(tmp_path, 4, IDS, kept=KEPT))
    about = pictures["0"]
    assert about["taken"] == [[1, 0, 1, 0], [1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert about["lost"] == [[0, 0, 0.75, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert about["columns"] == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert about["most"] == 1
    found = said(about)
    assert found["counted"] == [[1, 0, 0.25, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert found["lost"] == about["lost"]
    assert found["text"][0] == [
        "client 0<br>round 1: selected, its update counted",
        "client 0<br>round 2: not selected",
        "client 0<br>round 3: selected, its update counted 25 %",
        "client 0<br>round 4: not selected",
    ]
    assert found["text"][2][1] == "client 2<br>round 2: selected, but its update did not count"


def test_what_is_said_of_it(made_up: Any, tmp_path: Path) -> None:
    text, pictures = shown(made_up(tmp_path, 4, IDS, kept=KEPT))
    assert pictures["0"]["said"].replace("\u00a0", " ") == (
        "fedavg selected 1.8 of 4 clients a round on average, 2 in the first round and 1 in the last. "
        "Most often client 1, in 75 % of the rounds, least often client 2, in 25 %. "
        "Of 6 updates, 2 did not count (33.3 %), some only in part; 1 selected client did not reply."
    )
    assert pictures["0"]["note"] == "Seed 0. Clients are in the order of their numbers."
    assert "selected, but its update did not count" in words(text)
    assert pictures["0"]["said"].replace("\u00a0", " ") in words(text), "also without the script"
    assert 'aria-label="Clients against rounds' in text
    _, pictures = shown(made_up(tmp_path / "other", 4, [[0], [1], [0]]))
    assert pictures["0"]["said"].endswith("; 2 clients were never selected. Every update counted.")
    assert pictures["0"]["lost"] is None


def test_irrelevant_clients_are_at_the_bottom_and_called_so(made_up: Any, tmp_path: Path) -> None:
    truth = [True, False, True, False]
    _, pictures = shown(made_up(tmp_path, 4, IDS, kept=KEPT, irrelevant=truth))
    about = pictures["0"]
    assert about["rows"] == ["relevant client 1", "relevant client 3", "irrelevant client 0", "irrelevant client 2"]
    assert about["relevant"] == 2
    assert about["taken"][2] == [1, 0, 1, 0]
    assert "Irrelevant clients were selected in 37.5 % of the rounds, the others in 50 %." in about["said"].replace(
        "\u00a0", " "
    )
    assert "the irrelevant ones at the bottom" in about["note"]


@pytest.mark.parametrize(("n", "share"), [(200, 0.3), (201, 0.5), (1000, 0.001), (1001, 0.999), (99_999, 0.2)])
def test_groups_are_few_even_and_of_one_kind(n: int, share: float) -> None:
    truth = np.zeros(n, dtype=bool)
    truth[np.random.default_rng(0).permutation(n)[: max(1, int(share * n))]] = True

    class Known(attendance.Attendance):
        irrelevant, n = truth, len(truth)  # type: ignore[assignment]

    groups = attendance.grouped(Known(None, [], None), 200)  # type: ignore[arg-type]
    assert len(groups) <= 200
    np.testing.assert_array_equal(np.concatenate(groups), Known(None, [], None).order)  # type: ignore[arg-type]
    for ids in groups:
        assert len(set(truth[ids])) == 1
    for kind in (False, True):
        sizes = {len(ids) for ids in groups if truth[ids[0]] == kind}
        assert max(sizes) - min(sizes) <= 1
    assert n > 200 or {len(ids) for ids in groups} == {1}


def test_many_clients_and_rounds_are_drawn_together(made_up: Any, tmp_path: Path) -> None:
    n, rounds, gen = 450, 430, np.random.default_rng(0)
    ids = [np.sort(gen.choice(n, 45, replace=False)) for _ in range(rounds)]
    kept = [(gen.random(45) < 0.9).astype(float) for _ in range(rounds)]
    truth = gen.random(n) < 0.2
    text, pictures = shown(made_up(tmp_path, n, ids, kept=kept, irrelevant=truth))
    about = pictures["0"]
    taken, lost = np.array(about["taken"]), np.array(about["lost"])
    assert taken.shape == (len(about["rows"]), len(about["columns"]))
    assert max(taken.shape) <= attendance.SIDE
    assert taken.sum() == 45 * rounds
    assert lost.sum() == sum(int((row == 0).sum()) for row in kept)
    assert sum(about["sizes"]) == n
    assert about["columns"][0] == [1, 3]
    assert about["columns"][-1] == [430, 430]
    assert "A cell stands for up to 3 clients and 3 rounds, so that the page stays small." in about["note"]
    first = np.flatnonzero(~truth)[: about["sizes"][0]]
    assert taken[0, 0] == sum(np.isin(first, row).sum() for row in ids[:3])
    assert about["most"] == pytest.approx(np.quantile(shares(about)[shares(about) > 0], 0.99), rel=0.05)
    cell = said(about)["text"][0][0]
    assert cell.startswith(f"{len(first)} relevant clients, {first[0]} to {first[-1]}<br>rounds 1 to 3: selected in ")
    assert f"of {3 * len(first)} cases" in cell
    assert len(text) < len(look.STYLE) + 5_400_000  # plotly.js alone has 4.8 million


def shares(about: dict[str, Any]) -> np.ndarray:
    rounds = [last - first + 1 for first, last in about["columns"]]
    return np.array(about["taken"]) / np.outer(about["sizes"], rounds)


def test_pictures_of_many_methods_share_the_page(made_up: Any, tmp_path: Path) -> None:
    ids = [np.arange(r % 7, 300, 7) for r in range(250)]
    for i in range(24):
        made_up(tmp_path / f"m{i:02}" / "seed-0", 300, ids, name=f"m{i:02}", every=50)
    text, pictures = shown(tmp_path)
    assert len(pictures) == 24
    cells = sum(np.size(about["taken"]) for about in pictures.values())
    assert cells <= attendance.BUDGET
    assert text.split("<script")[0].count('name="attended"') == 24
    assert text.count('value="0" checked') == 1


def test_where_everybody_always_counts_a_sentence_is_enough(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path / "full" / "seed-0", 4, [range(4)] * 3, name="full")
    text = report.write(tmp_path).read_text()
    assert "full: every client in every round, and every update counted." in words(text)
    assert 'id="rounds"' not in text
    assert "function attended" not in text
    made_up(tmp_path / "filtered" / "seed-0", 4, [range(4)] * 3, kept=[[1, 1, 1, 0]] * 3, name="filtered")
    text, pictures = shown(tmp_path)
    assert "full: every client in every round, and every update counted." in words(text)
    assert pictures["0"]["said"].startswith("filtered selected every client in every round. Of 12 updates, 3 did not")
    assert "selected" not in script(text, "figures"), "no line of shares, for all are selected always"
    assert 'name="attended"' not in text.split("<script")[0]  # one method: nothing to choose


@pytest.mark.parametrize(
    ("last", "became"),
    [
        (0.5, "All 4 updates counted, some only in part."),
        (NAN, "All 3 updates counted; 1 selected client did not reply."),
    ],
)
def test_one_update_that_counts_half_or_never_comes_is_drawn(
    made_up: Any, tmp_path: Path, last: float, became: str
) -> None:
    _, pictures = shown(made_up(tmp_path, 2, [[0, 1]] * 2, kept=[[1, 1], [1, last]]))
    assert pictures["0"]["lost"] == [[0, 0], [0, 0.5 if last == 0.5 else 1]]
    assert pictures["0"]["said"].replace("\u00a0", " ").endswith(became)


def test_local_sends_nothing_so_nothing_is_lost(made_up: Any, tmp_path: Path) -> None:
    """Its updates never come, which is no loss."""
    fed = fk.Data("digits", clients=3)
    fk.run(fk.Experiment(fk.methods.local(), fed, rounds=2), tmp_path)
    text = report.write(tmp_path).read_text()
    assert "local: every client in every round." in words(text)
    assert 'id="rounds"' not in text


def test_runs_of_before_have_no_kept(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 4, IDS, kept=KEPT)
    whole = (tmp_path / "kept.bin").read_bytes()
    (tmp_path / "kept.bin").unlink()
    text, pictures = shown(tmp_path)
    assert (pictures["0"]["lost"], pictures["0"]["sent"]) == (None, False)
    assert "update" not in pictures["0"]["said"]
    assert said(pictures["0"])["text"][0][0] == "client 0<br>round 1: selected"
    assert "but its update did not count" not in words(text)
    (tmp_path / "kept.bin").write_bytes(whole[8:])  # begun by an older version, and resumed
    assert not shown(tmp_path)[1]["0"]["sent"]


def test_a_killed_run_is_drawn_as_far_as_its_lines_go(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 4, IDS, kept=KEPT, finished=False)
    with open(tmp_path / "selected.bin", "ab") as file:
        file.write(np.array([2, 3], "<i4").tobytes())  # the next round's, of which there is no line yet
    assert [ids.tolist() for ids in Run(tmp_path).selected()] == IDS
    text, pictures = shown(tmp_path)
    assert pictures["0"]["taken"][3] == [0, 0, 1, 0]
    assert "That seed is unfinished (round 4 of 4)." in pictures["0"]["note"]
    assert "selected" in script(text, "figures")
    (tmp_path / "rounds.jsonl").write_text("")
    assert Run(tmp_path).selected() == []
    assert 'id="rounds"' not in report.write(tmp_path).read_text()


def test_names_are_escaped(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path, 4, IDS, names=[ODD, "b", "c", "d"])
    text, pictures = shown(tmp_path)
    assert ODD not in text
    assert "<" not in pictures["0"]["rows"][0] + pictures["0"]["firsts"][0]
    assert unescape(pictures["0"]["rows"][0]) == f"client {ODD}"
    made_up(tmp_path / "other", 4, [[0]] * 3, names=[ODD, "b", "c", "d"])
    _, pictures = shown(tmp_path / "other")
    assert f"Most often client {ODD}, in 100" in pictures["0"]["said"]  # the script sets it as text


def test_the_first_seed_is_drawn_and_shares_are_of_all(made_up: Any, tmp_path: Path) -> None:
    made_up(tmp_path / "fedavg" / "seed-3", 4, [[0], [0]], seed=3)
    made_up(tmp_path / "fedavg" / "seed-4", 4, [[1], [2]], seed=4)
    text, pictures = shown(tmp_path)
    assert pictures["0"]["taken"][0] == [1, 1]
    assert pictures["0"]["note"].startswith("Seed 3.")
    assert script(text, "figures")["selected"]["data"][0]["y"] == [50, 25, 25, 0]


def test_shares_of_very_many_clients_are_thinned(made_up: Any, tmp_path: Path) -> None:
    n = 5000
    made_up(tmp_path, n, [range(0, n - 100 * r) for r in range(10)])
    line = script(report.write(tmp_path).read_text(), "figures")["selected"]["data"][0]
    assert len(line["x"]) == len(line["y"]) == charts.DOTS
    assert (line["x"][0], line["x"][-1]) == (1, n)
    assert (line["y"][0], line["y"][-1]) == (100, 10)
    assert selection.selection(studied(tmp_path).entries["fedavg"], n)[4150] == 0.9


def test_the_scripts_can_be_read() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    code = look.SCRIPT + look.rounds() + look.maps()
    checked = f"new Function({json.dumps(code)})"
    subprocess.run([node, "-"], input=checked, capture_output=True, text=True, check=True, timeout=60)
