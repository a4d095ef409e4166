"""Pages and terminal tables say how sure a difference is, which Local is meant, and over whom an average is."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import fedkin as fk
from fedkin.report.study import Study, studied
from fedkin.report.terminal import accuracy_table, comparison_table
from fedkin.runs.verdict import led

NEW = ("low", "high", "p_holm", "seeds", "clients", "trained", "local_trained", "matched")  # fields of a verdict


def shown(table: Any) -> str:
    """What a terminal shows of a table, on one line."""
    console = Console(width=400, file=StringIO())
    console.print(table)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> fk.Comparison:
    """FedAvg of two clients a round beside a matched Local, with irrelevant clients and one seed."""
    data = fk.Data("digits", clients=8, irrelevant="flip:0.25")
    methods, place = [fk.methods.fedavg(count=2), "local_matched"], tmp_path_factory.mktemp("one") / "seed"
    return fk.compare(methods, data, rounds=2, folder=place, warn=lambda _: None)


def test_a_win_in_one_seed_is_told_as_that(read: Any, trio: Study) -> None:
    for one in trio.stored["against_local"].values():
        one |= {"verdict": "better in this seed", "seeds": 1}
    page = read(trio)
    assert "In this one seed clients do better than alone with fedavg" in page.text.replace(
        "<i>prox and fedavg", "fedavg"
    )
    assert "Verdict: better than alone in this seed (paired test, p" in page.text


def test_verdicts_have_their_interval(read: Any, trio: Study) -> None:
    page, [name, *_] = read(trio), trio.against
    one = trio.against[name]
    assert f"(95 % interval {100 * one['low']:+.2f} to {100 * one['high']:+.2f})".replace("-", "−") in page.text
    assert " after Holm)" in page.text


def test_folders_of_an_older_version_are_shown_as_they_are(read: Any, trio: Study) -> None:
    for word in ("pairs", "leader"):
        trio.stored.pop(word)
    for one in trio.stored["against_local"].values():
        one |= {"verdict": "better"}
        for word in NEW:
            one.pop(word, None)
    page = read(trio)
    assert "Clients do better than alone with" in page.text
    assert "tested against training alone, not against each other" in page.text
    assert "95 % interval " not in page.text.partition("What the words mean")[0].partition("Every client's gain")[2]
    assert "better" in shown(comparison_table(trio.stored))


def test_all_pairs_are_on_the_page_and_who_leads_is_told(read: Any, trio: Study) -> None:
    page = read(trio)
    assert "Every method against every other, corrected together" in page.text
    assert page.html.count('<table class="pairs">') == 1
    assert led(trio.leader) in page.text
    assert 'class="win"' not in page.html
    trio.stored["leader"] = {"method": "fedavg", "over": [], "level": [], "best": True, "seeds": 2}
    assert read(trio).html.count('<b class="win">') == 1, "the mean over clients of the one method that is clearly best"


def test_the_terminal_says_which_local_is_meant(found: fk.Comparison) -> None:
    text = shown(comparison_table(found.summary))
    assert "Alone: Local, in which every client trains in every round." in text
    assert "than matched" in text
    assert "Matched: local_matched, in which clients train as rarely as the method's." in text
    assert led(found.leader) in text
    del found.summary["against_local"]["fedavg"]["matched"]
    without = shown(comparison_table(found.summary))
    assert "Local's clients trained 4.0 times as often as those of fedavg" in without
    assert "than matched" not in without


def test_irrelevant_clients_stand_apart(found: fk.Comparison, read: Any, tmp_path: Path) -> None:
    text = shown(comparison_table(found.summary))
    assert "post macro, irrelevant" in text
    assert "macro: mean over relevant clients" in text
    one = shown(accuracy_table(found.methods["fedavg"]))
    for title in ("macro, relevant clients", "macro, irrelevant clients", "micro, all clients"):
        assert title in one
    page = read(studied(found.folder))
    assert "irrelevant clients, %" in page.text
    assert "mean over relevant clients (macro)" in page.text
    assert "post macro_irrelevant" in found.table()
    assert "post macro of irrelevant clients, accuracy (%)" in found.export(tmp_path / "t.tex").read_text().replace(
        "\\", ""
    )
