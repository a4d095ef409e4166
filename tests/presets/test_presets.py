"""What a preset may not be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_preset import tiny

import fedkin as fk
from fedkin.presets.claims import Claim, above


def test_a_claim_of_no_cell_and_a_cell_twice_are_refused() -> None:
    with pytest.raises(fk.BadInput, match="no cell: quick, accuracy"):
        replace(tiny(), claims=(Claim("Quick is above slow.", above("quick", "slow", ["accuracy"])),))
    with pytest.raises(fk.BadInput, match="a cell twice"):
        replace(tiny(), cells=(*tiny().cells, tiny().cells[0]))
    with pytest.raises(fk.BadInput, match="small or full"):
        replace(tiny(), scale="huge")
