"""Sites with ragged samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from federation import SIZES, Party


@pytest.fixture
def party(federate: Any, tmp_path: Path) -> Party:
    federation = replace(federate(SIZES, test=(5, 2, 6, 3), shape=(6,)), irrelevant=None)
    return Party(tmp_path / "sites", federation)
