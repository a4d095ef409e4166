"""Texts of a federation: settings of several words, files with places that are filled in, and notes for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedkin.comparison.arms import read_arms
from fedkin.parts import Method

NOTES = "notes.txt"  # of the runs in a folder


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


def noted(runs: Path) -> Callable[[str], None]:
    """Return a function that writes a sentence where the people at the server read it."""

    def note(sentence: str) -> None:
        runs.mkdir(parents=True, exist_ok=True)
        with open(runs / NOTES, "a") as file:
            file.write(sentence.replace("\n", " ") + "\n")

    return note


def notes_after(runs: Path, read: int) -> list[str]:
    """Return the notes after the first so many."""
    path = runs / NOTES
    return path.read_text().splitlines()[read:] if path.exists() else []
