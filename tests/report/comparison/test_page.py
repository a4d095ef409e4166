"""The page is whole in itself: it has a place for every figure, escapes every name and loads nothing from elsewhere."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import pytest

import fedkin as fk
from fedkin.report import page, scripts
from fedkin.report.study import Study, studied

ODD = "<b>&\"ward' 7</b></script>"
go = pytest.importorskip("plotly.graph_objects")


def test_the_page_is_written_whole(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    path = page.write(folder)
    assert path == folder / "report.html"
    assert path.read_text() == page.page(studied(folder))
    assert not list(folder.glob(".*part"))


def test_the_page_is_whole_and_loads_nothing(read: Any, trio: Study) -> None:
    found = read(trio)
    text = found.html
    assert text.count("plotly.js v") == 1
    assert sum(len(script) > 1_000_000 for script in found.scripts.values()) == 1
    for tag, attributes in found.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed"), tag
        assert not {"src", "href", "srcset"} & attributes.keys(), (tag, attributes)
    look = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in look
    assert "@import" not in look
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_names_are_escaped_everywhere(read: Any, trio: Study) -> None:
    found = read(trio)
    text = found.html
    assert ODD in found.text
    assert "<i>prox" in found.text
    assert ODD not in text
    assert "<i>prox" not in text
    assert not any(tag == "b" and attributes != {"class": "win"} for tag, attributes in found.tags)
    assert "<" not in text[text.index('id="figures">') + len('id="figures">') :].split("</script>")[0]
    hovers = found.figures["bars-0"]["data"][0]["hovertext"]
    one = [hover for hover in hovers if "ward" in hover]
    assert len(one) == 1
    assert one[0].count("<b>") == 1
    assert ODD in unescape(one[0])
    legend = [trace["name"] for trace in found.figures["curves"]["data"] if "name" in trace]
    assert "&lt;i&gt;prox" in legend
    assert "<i>prox" not in legend


def test_figures_are_valid_and_each_has_its_place(read: Any, trio: Study) -> None:
    found = read(trio)
    charted = [a for tag, a in found.tags if tag == "div" and a.get("class") == "chart"]
    assert all(a["role"] == "img" and a["aria-label"] for a in charted)
    places = [a["id"] for a in charted]
    assert places == ["curves", "bars-0", "sizes-0", "bars-1", "sizes-1", "selected", "attended-map"]
    assert {*found.figures, "attended-map"} == set(places)  # that one is drawn from what is stored apart
    for figure in found.figures.values():
        go.Figure(figure)  # raises on an unknown property


def test_scripts_are_only_in_pages_that_need_them(recorded: Any, tmp_path: Path) -> None:
    some = page.page(studied(recorded(tmp_path / "some", 3, [[0], [1]])))
    everybody = page.page(studied(recorded(tmp_path / "all", 3, [range(3)] * 2)))
    for text, there in ((some, True), (everybody, False)):
        assert ("function attended" in text) == ('id="rounds"' in text) == there
        assert "function cells" not in text
        assert 'id="kin"' not in text
    assert "function cells" in scripts.script(["figures", "kin"])


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match="nothing to report"):
        page.write(tmp_path)
    assert not (tmp_path / "report.html").exists()
