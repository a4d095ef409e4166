"""The commands of a federation where its server is not running, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("init study", "A federation has sites"),
        ("init study --sites a,b/c", "'b/c' is none"),
        ("init study --sites a,b --address here", "An address is HOST:PORT"),
        ("serve study", "is not the folder of a federation"),
        ("run study", "is not the folder of a federation"),
        ("status study", "is not the folder of a federation"),
        ("site study", "There is no folder study"),
        ("demo --sites 5", "There are 4 hospitals"),
    ],
)
def test_bad_input_is_one_sentence(fedkin: Callable[..., Any], tmp_path: Path, words: str, sentence: str) -> None:
    code, out, error = fedkin("federation", *words.split())
    assert (code, out) == (2, "")
    assert sentence in error
    assert len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_without_a_server(fedkin: Callable[..., Any]) -> None:
    code, out, error = fedkin("federation", "init", "study", "--sites", "a,b", "--address", "127.0.0.1:1")
    assert (code, out) == (0, "study\n")
    assert "Only this machine reaches 127.0.0.1:1" in error
    code, out, error = fedkin("federation", "status", "study")
    assert code == 0
    assert "no run yet" in out
    assert out.count("not known") == 2
    assert "start it with: fedkin federation serve" in error
    code, _, error = fedkin("federation", "run", "study")
    assert code == 1
    assert "The server does not answer at port 1" in error
