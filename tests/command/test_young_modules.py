"""A module of the user is found however young its file is."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedkin.imports import user_module


def test_a_module_that_was_written_a_moment_ago_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python looks into a folder again only if its time has changed, and a moment may be too short for that."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_spec("not_yet_written") is None  # now Python has a list of the folder
    before = tmp_path.stat()
    (tmp_path / "not_yet_written.py").write_text("there = True\n")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert user_module("not_yet_written", "A module").there
