"""Locks: who is at work in a folder can be asked without keeping anybody out."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import fedkin as fk
from fedkin.runs import files


def test_a_folder_is_in_use_while_somebody_is_at_work_in_it(tmp_path: Path) -> None:
    assert not files.in_use(tmp_path), "nobody ever was"
    assert not list(tmp_path.iterdir()), "asking writes nothing"
    assert not files.in_use(tmp_path / "nowhere")
    with files.locked(tmp_path):
        assert files.in_use(tmp_path)
        with pytest.raises(fk.BadInput, match="Another command is at work"), files.locked(tmp_path):
            pass
    assert not files.in_use(tmp_path)


def test_asking_keeps_nobody_out(tmp_path: Path) -> None:
    """A command that begins while somebody asks a thousand times a second is not refused."""
    with files.locked(tmp_path):
        pass
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.001):
            files.in_use(tmp_path)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(50):
            with files.locked(tmp_path):
                pass
    finally:
        over.set()
        asking.join()
