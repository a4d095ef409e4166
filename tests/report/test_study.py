"""A report reads each file of a run once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkin.report import page
from fedkin.report.study import studied
from fedkin.runs.folder import RunFolder
from fedkin.runs.verdict import gain

OPENED: list[list[str]] = []  # a list for every `opened` that is under way


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and OPENED and isinstance(arguments[0], str | Path):
        OPENED[-1].append(str(arguments[0]))


sys.addaudithook(hook)  # cannot be removed, so it does nothing outside of `opened`


@contextmanager
def opened(folder: Path) -> Iterator[Callable[[], Counter[str]]]:
    """How often Python opens the files below a folder meanwhile."""
    found: list[str] = []
    OPENED.append(found)
    try:
        yield lambda: Counter(str(Path(name).relative_to(folder)) for name in found if name.startswith(str(folder)))
    finally:
        OPENED.remove(found)


def test_each_file_is_checked_and_read_once(recorded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors: Counter[tuple[Path, str]] = Counter()  # safetensors opens its files itself
    pictures = RunFolder.pictures

    def counted(folder: RunFolder, kind: str) -> Any:
        tensors[folder.path, kind] += 1
        return pictures(folder, kind)

    monkeypatch.setattr(RunFolder, "pictures", counted)
    ids, kept = [[0, 1], [1, 2]], [[1, 0], [1, 1]]
    post = {"local": np.full(3, 0.5), "fedavg": np.array([0.25, 0.5, 1])}
    for seed in (0, 1):
        recorded(tmp_path / "local" / f"seed-{seed}", 3, [range(3)] * 2, name="local", seed=seed, post=post["local"])
        place = tmp_path / "fedavg" / f"seed-{seed}"
        marks = {"score": {1: np.arange(3.0)}, "divergence": {1: np.arange(3.0)}}
        recorded(place, 3, ids, kept=kept, seed=seed, post=post["fedavg"], **marks)
    with opened(tmp_path) as count:
        text = page.page(studied(tmp_path))
    for section in ("Every client's gain", "Who was selected", "Whose updates counted", "What the selection thinks"):
        assert section in text, "or files that it needs are not read"
    assert len(count()) >= 16, "four runs of four files or more"
    assert set(count().values()) <= {1, 2}, count()
    assert (tmp_path / "fedavg" / "seed-0", "marks") in tensors
    assert set(tensors.values()) == {1}, tensors


def test_gains_are_those_of_the_verdict(recorded: Any, tmp_path: Path) -> None:
    truth = [False, True, False]
    for name, post in (("local", [0.5, 0.5, 0.5]), ("fedavg", [0.25, 0.5, 1.0])):
        recorded(tmp_path / name / "seed-0", 3, [range(3)], name=name, post=np.array(post), irrelevant=truth)
    study = studied(tmp_path)
    found = gain(study.entries["fedavg"].runs[0], study.entries["local"].runs[0])
    np.testing.assert_array_equal(found, [-0.25, np.nan, 0.5])
