"""The papers' claims, judged by the papers' own numbers: a claim that these do not bear out is written down wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from fedkin import presets
from fedkin.presets import Preset
from fedkin.presets.claims import NOT_RUN, SHAPE, Claim, judged

EXCEPTIONS = {  # claims of papers that are not borne out by their own numbers, and why
    ("adafl/table1", "Rows with attention have a higher best than all rows without."): (
        "on CIFAR Attn-0.1 has 74.91, below Dyn-FedAvg with 75.04 and FedAvg-0.5 with 75.31"
    ),
}


@cache
def full(name: str) -> Preset:
    return presets.named(name, "full")


def claims_of_papers() -> Iterator[tuple[str, Claim]]:
    for name in presets.PRESETS:
        for claim in full(name).claims:
            if claim.by == "paper":
                yield name, claim


def verdict(name: str, claim: Claim) -> str:
    """The verdict if every published number were a single repetition of ours."""
    values = {(c.row, c.column): [] if c.published is None else [c.published] for c in full(name).cells}
    return str(judged(claim, values)["verdict"])


@pytest.mark.parametrize(("name", "claim"), list(claims_of_papers()), ids=lambda one: getattr(one, "text", one))
def test_a_claim_of_a_paper_holds_by_its_own_numbers(name: str, claim: Claim) -> None:
    found = verdict(name, claim)
    if (name, claim.text) in EXCEPTIONS:
        assert found not in (SHAPE, NOT_RUN), "no exception any more"
    elif found != NOT_RUN:  # figures print no numbers
        assert found == SHAPE


def test_tables_are_judged_and_exceptions_are_claims() -> None:
    known = {(name, claim.text): verdict(name, claim) for name, claim in claims_of_papers()}
    assert EXCEPTIONS.keys() <= known.keys()
    tables = [name for name in presets.PRESETS if "/table" in name]
    assert all(any(cell.published is not None for cell in full(name).cells) for name in tables), "tables have numbers"
    assert all(any(known[place] == SHAPE for place in known if place[0] == name) for name in tables)


@pytest.mark.parametrize("scale", presets.SCALES)
@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_preset_is_named_by_its_key_and_has_runs_claims_and_a_note(name: str, scale: str) -> None:
    preset = presets.named(name, scale)  # a claim of a cell that is not there is refused here
    assert (preset.name, preset.scale) == (name, scale)
    assert preset.claims
    assert preset.note.strip()
    assert list(preset.experiments())
    for cell in preset.cells:
        assert cell.reading.words
        if cell.reading.over is not None:
            assert cell.reading.over in {(c.row, c.column) for c in preset.cells}
