"""Folders of data for the tests: real ones where they are at hand, tiny ones of the same schema otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Image, Value
from PIL import Image as Picture

BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "data"
Build = Callable[..., Path]


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """No test reads or fills the user's own cache; real data is decoded once for all tests of a session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDKIN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`real("ylecun/mnist")` points FEDKIN_DATA at a folder that has it, or skips."""
    roots = [Path(root) for root in os.environ.get("FEDKIN_DATA", "").split(os.pathsep) if root] or [BESIDE]

    def found(source: str) -> Path:
        for root in roots:
            if (root / source).is_dir():
                monkeypatch.setenv("FEDKIN_DATA", str(root))
                return root / source
        pytest.skip(f"no folder {source} in FEDKIN_DATA or beside the repository")

    return found


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """`tiny("uoft-cs/cifar10", train=table, test=table)` writes Parquet files and points FEDKIN_DATA at them."""

    def build(source: str, **splits: Dataset) -> Path:
        folder = tmp_path / "data" / source
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in splits.items():
            table.to_parquet(folder / f"{name}-00000-of-00001.parquet")
        monkeypatch.setenv("FEDKIN_DATA", str(tmp_path / "data"))
        return folder

    return build


def pictures(
    labels: list[int],
    classes: int,
    shape: tuple[int, ...] = (28, 28),
    column: str = "image",
    label: str = "label",
    seed: int = 0,
) -> Dataset:
    """Random pictures; the first pixel of a picture is its label."""
    pixels = np.random.default_rng(seed).integers(0, 256, (len(labels), *shape), dtype=np.uint8)
    pixels.reshape(len(labels), -1)[:, 0] = labels
    columns: dict[str, Any] = {column: [Picture.fromarray(p) for p in pixels], label: labels}
    features: dict[str, Any] = {column: Image(), label: ClassLabel(num_classes=classes)}
    if label == "fine_label":
        columns["coarse_label"] = [number // 5 for number in labels]
        features["coarse_label"] = ClassLabel(num_classes=20)
    return Dataset.from_dict(columns, features=Features(features))


def roles(rows: dict[str, str]) -> Dataset:
    """Windows of 80 characters and the next one, over each role's text."""
    found: dict[str, list[str]] = {"character_id": [], "x": [], "y": []}
    for role, text in rows.items():
        for i in range(len(text) - 80):
            found["character_id"].append(role)
            found["x"].append(text[i : i + 80])
            found["y"].append(text[i + 80])
    return Dataset.from_dict(found, features=Features({name: Value("string") for name in found}))


def tweets(rows: list[tuple[str, str, int]]) -> Dataset:
    """(user, text, sentiment)"""
    users, texts, moods = zip(*rows, strict=True)
    blank = [""] * len(rows)
    columns = {"text": texts, "date": blank, "user": users, "sentiment": moods, "query": blank}
    features = {name: Value("int32" if name == "sentiment" else "string") for name in columns}
    return Dataset.from_dict(columns, features=Features(features))
