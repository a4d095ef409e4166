"""The tables of a comparison as files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fedkin as fk
from fedkin.comparison.exports import Cell, latex, markdown


@pytest.fixture(scope="module")
def found() -> fk.Comparison:
    methods = ["fedavg", "fedprox@lam=0.1,1"]
    return fk.compare(methods, fk.Data("digits", clients=4), rounds=2, seeds=2, evaluate_every=1)


def test_csv_has_the_raw_numbers_of_the_frame(found: fk.Comparison, tmp_path: Path) -> None:
    table = pd.read_csv(found.export(tmp_path / "t.csv"), index_col="method", keep_default_na=True)
    pd.testing.assert_frame_equal(table, found.table(), check_dtype=False)
    clients = pd.read_csv(found.export_clients(tmp_path / "c.csv"), index_col="client", dtype={"client": str})
    pd.testing.assert_frame_equal(clients, found.gains(), check_dtype=False)


def rows_of(text: str) -> dict[str, list[str]]:
    """The rows of a Markdown table by their first cell."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {row[0]: row[1:] for row in lines}


def test_markdown_has_mean_spread_gain_and_interval(found: fk.Comparison, tmp_path: Path) -> None:
    table, rows = found.table(), rows_of(found.export(tmp_path / "t.md").read_text())
    titles = rows["method"]
    assert titles[0] == "post macro accuracy (%)"
    at = titles.index("gain over alone (points)")
    for name in table.index:
        mean, spread = 100 * table.loc[name, "post macro"], 100 * table.loc[name, "post macro std"]
        assert rows[name][0] == f"{mean:.2f} ± {spread:.2f}"
        gain, low, high = (f"{100 * table.loc[name, word]:+.2f}".replace("-", "−") for word in ("gain", "low", "high"))
        assert rows[name][at] == ("-" if name == "local" else rf"{gain} \[{low}, {high}\]")
    assert rows["fedprox@train.lam=1"][titles.index("uploads")] == "8"


def test_only_a_method_that_is_clearly_the_best_is_marked(found: fk.Comparison, tmp_path: Path) -> None:
    assert "**" not in found.export(tmp_path / "t.md").read_text(), "after two rounds nothing is clear"
    clear = {"method": "fedavg", "over": [*found.methods], "level": [], "best": True, "seeds": 2}
    rows = rows_of(replace(found, summary=found.summary | {"leader": clear}).export(tmp_path / "t.md").read_text())
    bold = {name: [i for i, cell in enumerate(row) if "**" in cell] for name, row in rows.items()}
    assert {name: places for name, places in bold.items() if places} == {"fedavg": [0]}, "its mean over clients"


def test_a_metric_of_which_less_is_better_has_its_best_in_front(tmp_path: Path) -> None:
    data = fk.Data("digits", clients=4)
    found = fk.compare(["fedavg", "fedprox"], data, rounds=2, evaluate_every=1, metric="log_loss")
    table, rows = found.table(), rows_of(found.export(tmp_path / "t.md").read_text())
    assert rows["method"][0] == "post macro log loss"
    assert found.leader["method"] == table["post macro"].idxmin()
    assert "one seed cannot separate methods" in found.export(tmp_path / "t.md").read_text()


def test_pairs_are_written(found: fk.Comparison, tmp_path: Path) -> None:
    table = pd.read_csv(found.export_pairs(tmp_path / "p.csv"), index_col=["method", "over"])
    pd.testing.assert_frame_equal(table, found.pairs(), check_dtype=False)
    text = found.export_pairs(tmp_path / "p.md").read_text()
    assert text.count("\n| ") == len(found.pairs())
    assert "has the best mean" in text


def test_latex_is_a_whole_table_with_every_sign_escaped(found: fk.Comparison, tmp_path: Path) -> None:
    text = found.export(tmp_path / "t.tex").read_text()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(rule) == 1
    columns = len(re.search(r"\{(lr+)\}", text)[1])  # type: ignore[index]
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(found.table())
    assert all(line.count(" & ") == columns - 1 for line in rows)
    assert "±" not in "".join(rows)
    assert r"$\pm$" in text
    shown = latex([[Cell("a_b & 5%"), Cell("x^2 {~} #$\\")], [Cell("1", " ± 2", best=True), Cell("−3")]])
    assert r"a\_b \& 5\% & x\textasciicircum{}2 \{\textasciitilde{}\} \#\$\textbackslash{} \\" in shown
    assert r"\textbf{1} $\pm$ 2 & $-$3 \\" in shown


def test_markdown_escapes_what_would_end_a_cell() -> None:
    assert r"| a\|b\_c | **1** ± 2 |" in markdown(
        [[Cell("x"), Cell("y")], [Cell("a|b_c"), Cell("1", " ± 2", best=True)]]
    )


def test_the_best_of_a_client_is_marked_only_where_it_gains(found: fk.Comparison, tmp_path: Path) -> None:
    rows = rows_of(found.export_clients(tmp_path / "c.md").read_text())
    for client, gains in found.gains().iterrows():
        bold = [cell for cell in rows[str(client)] if cell.startswith("**")]
        assert bool(bold) == (round(100 * gains.max(), 2) > 0)


@pytest.mark.parametrize(("path", "words"), [("t.docx", ".csv, .tex or .md"), ("nowhere/t.csv", "no folder nowhere")])
def test_a_table_that_cannot_be_written_is_refused_before_anything_runs(
    fedkin: Any, tmp_path: Path, path: str, words: str
) -> None:
    outcome = fedkin("compare", "fedavg", "--data", "digits", "--rounds", "2", "--export", path)
    assert outcome.code == 2
    assert words in outcome.err
    assert not list(tmp_path.iterdir())


def test_the_commands_write_the_same_tables(fedkin: Any, tmp_path: Path) -> None:
    words = ["--data", "digits", "--clients", "4", "--rounds", "2", "--evaluate-every", "1", "--out", "here"]
    outcome = fedkin(
        "compare", "fedavg", *words, "--export", "a.csv,a.md", "--export", "a.tex", "--export-clients", "c.csv"
    )
    assert outcome.code == 0, outcome.err
    assert (
        fedkin("report", "here", "--export", "b.csv", "--export-clients", "d.csv", "--export-pairs", "p.tex").code == 0
    )
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert Path("c.csv").read_text() == Path("d.csv").read_text()
    assert Path("p.tex").exists()
    assert Path("a.md").exists()
    assert Path("a.tex").exists()
