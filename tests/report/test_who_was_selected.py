"""The map of clients against rounds shows who was selected and whose update counted, however many there are."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import forget_checksums

import fedkin as fk
from fedkin.report.charts.style import DOTS
from fedkin.report.findings import rounds_map
from fedkin.report.findings.participation import Participation
from fedkin.report.study import studied

NAN = float("nan")
ODD = "<b>&\"ward' 7</b></script>"
IDS = [[0, 1], [1, 2], [0, 3], [1]]
KEPT = [[1, 0], [1, NAN], [0.25, 1], [0]]


@pytest.fixture
def attended(script: Any) -> Any:
    """What the page's script makes of a stored map."""
    return lambda about: script("who_was_selected_cells.js", "attended", about)


def test_a_cell_a_client_and_round(recorded: Any, shown: Any, attended: Any, tmp_path: Path) -> None:
    about = shown(recorded(tmp_path, 4, IDS, kept=KEPT)).rounds["0"]
    assert about["taken"] == [[1, 0, 1, 0], [1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert about["lost"] == [[0, 0, 0.75, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert about["columns"] == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert about["most"] == 1
    found = attended(about)
    assert found["counted"] == [[1, 0, 0.25, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert found["lost"] == about["lost"]
    assert found["text"][0] == [
        "client 0<br>round 1: selected, its update counted",
        "client 0<br>round 2: not selected",
        "client 0<br>round 3: selected, its update counted 25 %",
        "client 0<br>round 4: not selected",
    ]
    assert found["text"][2][1] == "client 2<br>round 2: selected, but its update did not count"


def test_what_is_said_of_it(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path / "one", 4, IDS, kept=KEPT))
    said = page.rounds["0"]["said"].replace("\u00a0", " ")
    assert said == (
        "fedavg selected 1.8 of 4 clients a round on average, 2 in the first round and 1 in the last. "
        "Most often client 1, in 75 % of the rounds, least often client 2, in 25 %. "
        "Of 6 updates, 2 did not count (33.3 %), some only in part; 1 selected client did not reply."
    )
    assert page.rounds["0"]["note"] == "Seed 0. Clients are in the order of their numbers."
    assert "selected, but its update did not count" in page.words
    assert said in page.words, "also without the script"
    assert 'aria-label="Clients against rounds' in page.html
    other = shown(recorded(tmp_path / "other", 4, [[0], [1], [0]])).rounds["0"]
    assert other["said"].endswith("; 2 clients were never selected. Every update counted.")
    assert other["lost"] is None


def test_irrelevant_clients_are_at_the_bottom_and_called_so(recorded: Any, shown: Any, tmp_path: Path) -> None:
    about = shown(recorded(tmp_path, 4, IDS, kept=KEPT, irrelevant=[True, False, True, False])).rounds["0"]
    assert about["rows"] == ["relevant client 1", "relevant client 3", "irrelevant client 0", "irrelevant client 2"]
    assert about["relevant"] == 2
    assert about["taken"][2] == [1, 0, 1, 0]
    said = about["said"].replace("\u00a0", " ")
    assert "Irrelevant clients were selected in 37.5 % of the rounds, the others in 50 %." in said
    assert "the irrelevant ones at the bottom" in about["note"]


def made(n: int, ids: list[Any], kept: list[Any] | None = None, irrelevant: Any = None) -> Participation:
    rows = [np.asarray(row) for row in ids]
    return Participation([str(i) for i in range(n)], irrelevant, rows, kept)


@pytest.mark.parametrize(("n", "share"), [(200, 0.3), (201, 0.5), (1000, 0.001), (1001, 0.999), (99_999, 0.2)])
def test_groups_are_few_even_and_of_one_kind(n: int, share: float) -> None:
    truth = np.zeros(n, dtype=bool)
    truth[np.random.default_rng(0).permutation(n)[: max(1, int(share * n))]] = True
    one = made(n, [], irrelevant=truth)
    groups = one.groups(200)
    assert len(groups) <= 200
    np.testing.assert_array_equal(np.concatenate(groups), one.order)
    for ids in groups:
        assert len(set(truth[ids])) == 1
    for kind in (False, True):
        sizes = {len(ids) for ids in groups if truth[ids[0]] == kind}
        assert max(sizes) - min(sizes) <= 1
    assert n > 200 or {len(ids) for ids in groups} == {1}


def test_many_clients_and_rounds_are_drawn_together(attended: Any) -> None:
    n, rounds, gen = 450, 430, np.random.default_rng(0)
    ids = [np.sort(gen.choice(n, 45, replace=False)) for _ in range(rounds)]
    kept = [(gen.random(45) < 0.9).astype(float) for _ in range(rounds)]
    truth = gen.random(n) < 0.2
    found = rounds_map.rounds_map(made(n, ids, kept, truth))
    about = found.stored
    taken, lost = np.array(about["taken"]), np.array(about["lost"])
    assert taken.shape == (len(about["rows"]), len(about["columns"]))
    assert max(taken.shape) <= rounds_map.SIDE
    assert taken.sum() == 45 * rounds
    assert lost.sum() == sum(int((row == 0).sum()) for row in kept)
    assert sum(about["sizes"]) == n
    assert about["columns"][0] == [1, 3]
    assert about["columns"][-1] == [430, 430]
    assert len(json.dumps(about)) < 600_000
    assert found.note == "A cell stands for up to 3 clients and 3 rounds, so that the page stays small."
    first = np.flatnonzero(~truth)[: about["sizes"][0]]
    assert taken[0, 0] == sum(np.isin(first, row).sum() for row in ids[:3])
    shares = taken / np.outer(about["sizes"], [last - first + 1 for first, last in about["columns"]])
    assert about["most"] == pytest.approx(np.quantile(shares[shares > 0], 0.99), rel=0.05)
    cell = attended(about)["text"][0][0]
    assert cell.startswith(f"{len(first)} relevant clients, {first[0]} to {first[-1]}<br>rounds 1 to 3: selected in ")
    assert f"of {3 * len(first)} cases" in cell


def test_maps_of_many_methods_share_the_page(
    recorded: Any, shown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds_map, "BUDGET", 330)
    ids = [np.arange(r % 5, 14, 5) for r in range(12)]
    for name in "abc":
        recorded(tmp_path / name / "seed-0", 14, ids, name=name, every=12)
    page = shown(tmp_path)
    assert len(page.rounds) == 3
    for about in page.rounds.values():
        assert np.shape(about["taken"]) == (10, 6)
        assert np.sum(about["taken"]) == sum(len(row) for row in ids)
    assert page.html.count('name="attended"') == 3
    assert page.html.count('value="0" checked') == 1


def test_where_everybody_always_counts_a_sentence_is_enough(recorded: Any, shown: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "full" / "seed-0", 4, [range(4)] * 3, name="full")
    page = shown(tmp_path)
    assert "full: every client in every round, and every update counted." in page.words
    assert "rounds" not in page.stores
    recorded(tmp_path / "filtered" / "seed-0", 4, [range(4)] * 3, kept=[[1, 1, 1, 0]] * 3, name="filtered")
    page = shown(tmp_path)
    assert "full: every client in every round, and every update counted." in page.words
    assert page.rounds["0"]["said"].startswith(
        "filtered selected every client in every round. Of 12 updates, 3 did not count"
    )
    assert "selected" not in page.figures, "no line of shares, for all are selected always"
    assert 'name="attended"' not in page.html  # one method: nothing to choose


@pytest.mark.parametrize(
    ("last", "became"),
    [
        (0.5, "All 4 updates counted, some only in part."),
        (NAN, "All 3 updates counted; 1 selected client did not reply."),
    ],
)
def test_one_update_that_counts_half_or_never_comes_is_drawn(
    recorded: Any, shown: Any, tmp_path: Path, last: float, became: str
) -> None:
    about = shown(recorded(tmp_path, 2, [[0, 1]] * 2, kept=[[1, 1], [1, last]])).rounds["0"]
    assert about["lost"] == [[0, 0], [0, 0.5 if last == 0.5 else 1]]
    assert about["said"].replace("\u00a0", " ").endswith(became)


def test_local_sends_nothing_so_nothing_is_lost(federate: Any, shown: Any, tmp_path: Path) -> None:
    """Its updates never come, which is no loss."""
    fk.run(fk.Experiment(fk.methods.local(), federate((3, 4, 5)), model="mlr", rounds=2), tmp_path)
    page = shown(tmp_path)
    assert "local: every client in every round." in page.words
    assert "rounds" not in page.stores


def test_runs_of_before_have_no_kept(recorded: Any, shown: Any, attended: Any, tmp_path: Path) -> None:
    recorded(tmp_path, 4, IDS, kept=KEPT)
    forget_checksums(tmp_path)
    whole = (tmp_path / "kept.bin").read_bytes()
    (tmp_path / "kept.bin").unlink()
    page = shown(tmp_path)
    about = page.rounds["0"]
    assert (about["lost"], about["sent"]) == (None, False)
    assert "update" not in about["said"]
    assert attended(about)["text"][0][0] == "client 0<br>round 1: selected"
    assert "but its update did not count" not in page.words
    (tmp_path / "kept.bin").write_bytes(whole[8:])  # begun by an older version, and resumed
    assert not shown(tmp_path).rounds["0"]["sent"]


def test_a_killed_run_is_drawn_as_far_as_its_lines_go(recorded: Any, shown: Any, tmp_path: Path) -> None:
    recorded(tmp_path, 4, IDS, kept=KEPT, asked=6)
    with open(tmp_path / "selected.bin", "ab") as file:
        file.write(np.array([2, 3], "<i4").tobytes())  # the next round's, of which there is no line yet
    study = studied(tmp_path)
    assert [ids.tolist() for ids in study.runs[0].selected] == IDS
    page = shown(study)
    assert page.rounds["0"]["taken"][3] == [0, 0, 1, 0]
    assert "That seed is unfinished (round 4 of 6)." in page.rounds["0"]["note"]
    assert "selected" in page.figures
    (tmp_path / "rounds.jsonl").write_text("")
    for path in (tmp_path / "checkpoints").iterdir():  # killed before its first checkpoint
        path.unlink()
    study = studied(tmp_path)
    assert study.runs[0].selected == []
    assert "rounds" not in shown(study).stores


def test_names_are_escaped(recorded: Any, shown: Any, tmp_path: Path) -> None:
    page = shown(recorded(tmp_path / "one", 4, IDS, names=[ODD, "b", "c", "d"]))
    about = page.rounds["0"]
    assert ODD not in page.html
    assert "<" not in about["rows"][0] + about["firsts"][0]
    assert unescape(about["rows"][0]) == f"client {ODD}"
    other = shown(recorded(tmp_path / "other", 4, [[0]] * 3, names=[ODD, "b", "c", "d"]))
    assert f"Most often client {ODD}, in 100" in other.rounds["0"]["said"]  # the script sets it as text


def test_the_first_seed_is_drawn_and_shares_are_of_all(recorded: Any, shown: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "fedavg" / "seed-3", 4, [[0], [0]], seed=3)
    recorded(tmp_path / "fedavg" / "seed-4", 4, [[1], [2]], seed=4)
    page = shown(tmp_path)
    assert page.rounds["0"]["taken"][0] == [1, 1]
    assert page.rounds["0"]["note"].startswith("Seed 3.")
    assert page.figures["selected"]["data"][0]["y"] == [50, 25, 25, 0]


def test_shares_of_very_many_clients_are_thinned(recorded: Any, shown: Any, tmp_path: Path) -> None:
    n = 5000
    recorded(tmp_path, n, [range(0, n - 100 * r) for r in range(10)], every=10)
    study = studied(tmp_path)
    line = shown(study).figures["selected"]["data"][0]
    assert len(line["x"]) == len(line["y"]) == DOTS
    assert (line["x"][0], line["x"][-1]) == (1, n)
    assert (line["y"][0], line["y"][-1]) == (100, 10)
    assert study.entries["fedavg"].selected[4150] == 0.9
