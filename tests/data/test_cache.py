import os
from pathlib import Path

import pytest
import torch

from fedkin.data import cache

TENSORS = {
    "x": torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4),
    "y": torch.tensor([1, -5]),
    "none": torch.zeros(0),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    target = tmp_path / "deep" / "mnist-0.safetensors"
    cache.save(target, TENSORS, {"rows": "2"})
    return target


def test_what_is_saved_is_loaded(file: Path) -> None:
    stored = cache.load(file)
    assert stored is not None
    tensors, notes = stored
    assert notes["rows"] == "2"
    assert tensors.keys() == TENSORS.keys()
    assert all(
        torch.equal(tensors[name], TENSORS[name]) and tensors[name].dtype == TENSORS[name].dtype for name in TENSORS
    )


def test_nothing_is_left_beside(file: Path) -> None:
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_a_failed_write_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(cache, "save_file", full)
    with pytest.raises(OSError, match="no space"):
        cache.save(file, {"x": torch.ones(3)}, {})
    assert cache.load(file) is not None
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_missing_cut_and_changed_files_are_not_used(file: Path) -> None:
    assert cache.load(file.with_name("other")) is None
    whole = file.read_bytes()
    for damaged in (b"", b"rubbish" * 20, whole[:-5], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(damaged)
        assert cache.load(file) is None


def test_a_fingerprint_sees_names_sizes_and_times(tmp_path: Path) -> None:
    one = tmp_path / "a"
    one.write_text("1")
    first = cache.fingerprint([one], tmp_path)
    assert cache.fingerprint([one], tmp_path) == first
    os.utime(one, ns=(1, 1))
    later = cache.fingerprint([one], tmp_path)
    assert later != first
    one.write_text("12")
    os.utime(one, ns=(1, 1))
    assert cache.fingerprint([one], tmp_path) != later
    assert cache.path("mnist", "a/b", first) != cache.path("mnist", "a/b", later)
    assert cache.path("mnist", "a/b", first) != cache.path("mnist", "a/c", first)


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDKIN_CACHE", str(tmp_path))
    assert cache.folder() == tmp_path
    monkeypatch.delenv("FEDKIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg" / "fedkin"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folder() == Path.home() / ".cache" / "fedkin"
