"""Methods and parts in words: every field has a meaning and a range, every method a paper."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import fedkin as fk
from fedkin import explain
from fedkin.methods import METHODS
from fedkin.methods.papers import PAPERS
from fedkin.parts import Part

KINDS = {label: kind for label, kind in Part.known.items() if ":" not in label and is_dataclass(kind)}
ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("label", KINDS)
def test_every_field_of_every_part_has_a_meaning_and_a_range(label: str) -> None:
    for field in explain.explained(KINDS[label]):
        assert len(field.meaning.split()) >= 2, f"write what {label}.{field.name} means in a comment at its line"
        assert field.fits
        assert field.fits != "anything"


@dataclass(frozen=True)
class Own(fk.train.Prox):
    """A part of one's own."""

    lam: fk.fields.Share = 0.5  # another meaning
    plain: int = 3
    checked: bool = False  # noqa: RUF100
    long: fk.fields.Positive | None = None  # said on the second line


def test_meanings_are_the_comments_also_of_parts_of_ones_own() -> None:
    found = {field.name: field for field in explain.explained(Own)}
    assert found["lam"] == explain.Explained("lam", "0.5", "a number from 0 to 1", "another meaning")
    assert found["eta"].meaning == "the learning rate"
    assert (found["plain"].meaning, found["checked"].meaning) == ("", "")
    assert found["long"] == explain.Explained("long", "null", "a number above 0, or null", "said on the second line")


def test_values_are_shown_as_settings_take_them() -> None:
    shown = explain.shown(fk.methods.adafl().select)
    assert shown == "Attention(alpha=0.9, fraction=Steps(start=0.1, end=0.5, levels=5))"
    assert explain.shown(fk.select.Listed((0.1, 0.5))) == "Listed(fractions=[0.1,0.5])"
    assert explain.shown(fk.train.FedMix()).endswith("group=null, own=true, naive=false)")


def test_every_method_has_its_paper_and_a_purpose() -> None:
    assert list(PAPERS) == list(METHODS)
    ours = {"kin", "kin_light", "fedavg_prior", "fedavg_calibrated"}
    nobodys = {"local", "local_matched", "oracle", "pooled"}
    assert {name for name, papers in PAPERS.items() if not papers} == ours | nobodys
    for papers in PAPERS.values():
        for paper in papers:
            assert paper.page is None or (ROOT / paper.page).is_file()
            assert paper.arxiv or paper.venue in ("ECML PKDD", "ICML")  # two papers are not there
    for name in METHODS:
        assert explain.purpose(name)[0]


def test_the_command_lists_every_default(fedkin: Any) -> None:
    said = " ".join(fedkin("methods").out.split())
    for name in METHODS:
        assert name in said
    defaults = "SGD(eta=0.02, steps=20, epochs=null, batch=20, momentum=0, weight_decay=0, rate_decay=1, sampler=fresh,"
    assert defaults in said


def test_the_command_explains_a_method_with_its_paper(fedkin: Any) -> None:
    said = " ".join(fedkin("methods", "fedmcsa").out.split())
    for words in (
        "self-attention between the components of models",
        "collaborate.sigma 50 a number of at least 0 how sharply attention prefers similar components",
        "train.lam 5 a number of at least 0",
        "trains everyone selected or everyone",
        "Qi Guo, Yong Qi",
        "arXiv:2208.10731",
        "docs/papers/fedmcsa.md",
        "--set train.eta=0.1",
        "fk.methods.fedmcsa(lam=5.0, sigma=50.0",
    ):
        assert words in said
    assert "select.fraction.levels 5" in " ".join(fedkin("methods", "adafl").out.split())
    assert "train.lam 3" in " ".join(fedkin("methods", "fedprox@lam=3").out.split())


def test_the_command_explains_a_part_and_refuses_the_rest(fedkin: Any) -> None:
    said = fedkin("methods", "Steps").out
    assert "levels" in said
    assert "equally far apart" in said
    assert "--set train=SGD" in fedkin("methods", "SGD").out
    refused = fedkin("methods", "fedmcs")
    assert refused.code == 2
    assert "fedmcsa" in refused.err
