"""Texts of settings: several words in one, and files with places that are filled in."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from fedkin.comparison.arms import read_arms
from fedkin.parts import Method


def template(name: str) -> str:
    """Return the text of a file that is copied into folders of federations."""
    return (files("fedkin.federation") / "files" / name).read_text()


def quoted(text: str) -> str:
    """Return a text as TOML has it."""
    return json.dumps(text, ensure_ascii=False)


def words_of(text: Any) -> list[str]:
    """Return the words of a text with commas between them."""
    return [word.strip() for word in str(text).split(",") if word.strip()]


def methods_of(text: Any, settings: Any = "") -> list[Method]:
    """Return the methods that a text asks for, with spaces between them, with these changes of their fields."""
    return read_arms(str(text).split(), str(settings).split())
