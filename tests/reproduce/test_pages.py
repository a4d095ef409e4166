"""The pages of the papers are made from the committed results, and the results from what their presets say."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedkin import presets
from fedkin.errors import BadInput
from fedkin.reproduce.outcome import claimed, digest
from fedkin.reproduce.pages import BEGIN, END, pages
from fedkin.reproduce.results import all_committed, result_path
from fedkin.reproduce.store import Store

RESULTS = Path(__file__).parents[2] / "docs" / "results"
COMMITTED = all_committed(RESULTS)


def test_no_page_is_older_than_its_results() -> None:
    for path, text in pages(RESULTS).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is older than its results: make pages"


@pytest.mark.parametrize(("name", "scale"), COMMITTED, ids=lambda one: one)
def test_a_committed_result_is_of_its_preset_as_it_is(name: str, scale: str) -> None:
    """Cells, published numbers and claims are those of the preset, and the verdicts follow from the values."""
    found, preset = COMMITTED[name, scale], presets.named(name, scale)
    assert [(cell["row"], cell["column"]) for cell in found["cells"]] == [(c.row, c.column) for c in preset.cells]
    assert [cell.get("published") for cell in found["cells"]] == [c.published for c in preset.cells]
    assert found["note"] == preset.note
    for said, cell in zip(found["cells"], preset.cells, strict=True):
        runs = [digest(preset, cell, k, Store()) for k in said["repetitions"]]
        assert said["digests"] == runs, f"{cell.row}, {cell.column}: another experiment now than the one that was run"
    said = [(claim["text"], claim["verdict"]) for claim in found["claims"]]
    judged_again = [claimed(claim, found["cells"], preset.overlap) for claim in preset.claims]
    assert said == [(claim["text"], claim["verdict"]) for claim in judged_again]
    assert any(cell["values"] for cell in found["cells"]), "a result has a run behind it"


def test_every_file_of_results_is_one_of_a_preset() -> None:
    known = {result_path(name, scale, RESULTS) for name, scale in COMMITTED}
    assert set(RESULTS.glob("*/*.json")) == known


def test_a_page_without_a_place_for_results_is_refused(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    for name in presets.PRESETS:
        (papers / f"{name.partition('/')[0]}.md").write_text(f"# A paper\n{BEGIN}\n{END}\nAfter.\n")
    made = pages(tmp_path / "results")
    assert all(text.startswith("# A paper\n") and text.endswith(f"{END}\nAfter.\n") for text in made.values())
    assert "no result is committed" in next(iter(made.values()))
    (papers / "fedmcsa.md").write_text("# FedMCSA\n")
    with pytest.raises(BadInput, match="no place for results"):
        pages(tmp_path / "results")
