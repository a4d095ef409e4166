"""The section that answers for each site: a row a site, an interval that is drawn, and a search box."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fedkin.answers.bootstrap import Gain
from fedkin.answers.site import Answer
from fedkin.report.sections.sites import drawn, scale, sites

ODD = "<b>North & Sons</b>"


@dataclass
class Told:
    """What the section reads of a study."""

    sites: dict[str, Any] = field(default_factory=dict)


def site(name: str, **more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"verdict": "join", "rows": 63, "method": "fedavg", "against": "local", "gain": 0.07}
    found = Answer(name, **values | {"low": 0.02, "high": 0.12} | more)
    return found.as_json({"fedavg": Gain(0.07, 0.02, 0.12)})


def study(*found: dict[str, Any], **more: Any) -> Any:
    return Told({"metric": "accuracy", "notes": ["One split."], "sites": list(found)} | more)


def test_without_an_answer_there_is_no_section() -> None:
    assert sites(Told()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [4, 500])
def test_every_site_has_a_row_and_can_be_searched(count: int) -> None:
    section = sites(study(*(site(f"Hospital {i}") for i in range(count))))
    assert section is not None
    assert section.html.count("<tr title=") == count
    assert section.html.count("<svg") == count
    assert 'type="search"' in section.html
    assert section.data["sites"]["count"] == str(count)
    assert f"{count} of {count} sites: join" in section.html


def test_names_are_escaped_and_filters_named() -> None:
    bad = site(ODD, verdict="stay alone", looks="mislabelled", left_out_by=("Multi-Krum",), opinions=6)
    section = sites(study(bad, site("B"), filters=["Multi-Krum"]))
    assert section is not None
    assert ODD not in section.html
    assert "looks mislabelled" in section.html
    assert "1 of 6 <small>Multi-Krum</small>" in section.html
    assert '<td class="said">nobody</td>' in section.html


def test_a_site_of_which_nothing_is_known_has_no_picture() -> None:
    empty = Answer("A", "too few test rows to tell", 0).as_json({})
    section = sites(study(empty))
    assert section is not None
    assert "<svg" not in section.html


def test_the_picture_has_the_dot_between_the_ends_and_zero_in_the_middle() -> None:
    picture = drawn(site("A"), "accuracy", 0.2)
    assert 'cx="126.2"' in picture
    assert 'class="interval up"' in picture
    assert '<line class="zero" x1="95.0"' in picture
    lost = drawn(site("A", gain=-0.5, low=-0.9, high=-0.1), "accuracy", 0.2)
    assert 'class="interval down"' in lost
    assert 'cx="6.0"' in lost, "what is beyond the scale is drawn at its end"


def test_a_mislabelled_site_does_not_stretch_the_scale() -> None:
    far = site("B", gain=-0.7, low=-0.9, high=-0.5, looks="mislabelled")
    assert scale([site("A"), far]) == pytest.approx(scale([site("A")]))
