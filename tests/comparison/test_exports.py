"""The tables of a comparison as files."""

from __future__ import annotations

import re
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


def test_markdown_has_mean_spread_gain_and_the_best_in_bold(found: fk.Comparison, tmp_path: Path) -> None:
    table, rows = found.table(), rows_of(found.export(tmp_path / "t.md").read_text())
    titles = rows["method"]
    assert titles[0] == "post macro accuracy (%)"
    at, best = titles.index("gain over alone (points)"), table["post macro"].idxmax()
    for name in table.index:
        mean, spread = 100 * table.loc[name, "post macro"], 100 * table.loc[name, "post macro std"]
        shown = f"{mean:.2f}"
        assert rows[name][0] == (f"**{shown}**" if name == best else shown) + f" ± {spread:.2f}"
        gain = table.loc[name, "gain"]
        assert rows[name][at] == ("-" if name == "local" else f"{100 * gain:+.2f}".replace("-", "−"))
    assert rows["fedprox@train.lam=1"][titles.index("uploads")] == "8"


def test_a_metric_of_which_less_is_better_marks_the_least(tmp_path: Path) -> None:
    data = fk.Data("digits", clients=4)
    found = fk.compare(["fedavg", "fedprox"], data, rounds=2, evaluate_every=1, metric="log_loss")
    table, rows = found.table(), rows_of(found.export(tmp_path / "t.md").read_text())
    assert rows["method"][0] == "post macro log loss"
    least = table["post macro"].idxmin()
    assert rows[least][0] == f"**{table.loc[least, 'post macro']:.3f}**"
    assert sum(row[0].startswith("**") for row in rows.values()) == 1


def test_latex_is_a_whole_table_with_every_sign_escaped(found: fk.Comparison, tmp_path: Path) -> None:
    text = found.export(tmp_path / "t.tex").read_text()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(rule) == 1
    columns = len(re.search(r"\{(lr+)\}", text)[1])  # type: ignore[index]
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(found.table())
    assert all(line.count(" & ") == columns - 1 for line in rows)
    assert r"\textbf{" in text
    assert "±" not in text
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
    assert fedkin("report", "here", "--export", "b.csv", "--export-clients", "d.csv").code == 0
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert Path("c.csv").read_text() == Path("d.csv").read_text()
    assert Path("a.md").exists()
    assert Path("a.tex").exists()
