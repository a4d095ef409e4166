"""Without Flower, fedkin says what to install; the other tests of this folder are then left out."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.util import find_spec

import pytest

import fedkin as fk


@pytest.mark.skipif(find_spec("flwr") is None, reason="Flower is not installed: pip install 'fedkin[flower]'")
def test_what_is_there() -> None:
    from fedkin import flower

    assert set(flower.__all__) == {"OnGrid", "Strategy", "client", "run"}


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fedkin.flower", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(fk.BadInput, match=r"pip install 'fedkin\[flower\]'"):
        importlib.import_module("fedkin.flower")


def test_fedkin_does_without_flower() -> None:
    """Nothing but fedkin.flower imports it, and nothing imports that."""
    code = "import sys, fedkin, fedkin.sites, fedkin.command.cli; sys.exit('flwr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
