"""Whole datasets, bundled or real."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from fedkin.data import NAMES, Data, load, partition
from fedkin.data.catalogue import CATALOGUE
from fedkin.errors import BadInput

Real = Callable[[str], Path]


def test_digits() -> None:
    federation = load(Data("digits"))
    assert federation.n == 20
    assert federation.shape == (1, 8, 8)
    assert len(federation.y) == 1797
    assert federation.classes == 10
    assert abs(float(federation.x.mean())) < 1e-5
    assert int((federation.train.sizes + federation.test.sizes).min()) >= 10


def test_every_name_is_accepted() -> None:
    assert set(NAMES) == set(CATALOGUE)
    assert all(Data(name).dataset == name for name in NAMES)


def test_images_have_no_natural_clients() -> None:
    with pytest.raises(BadInput, match="digits does not say whose"):
        load(Data("digits", "natural"))
    with pytest.raises(BadInput, match="digits cannot be divided by 'writer': it has no column of clients"):
        load(Data("digits", "natural:writer"))


def test_more_clients_than_samples() -> None:
    for spec in ("iid", "dirichlet:0.5", "classes:2", "shards:1"):
        with pytest.raises(BadInput, match="1798 clients cannot share 1797 samples"):
            load(Data("digits", spec, 1798))


def test_real_mnist_gives_the_published_partitions(real: Real) -> None:
    folder = real("ylecun/mnist")
    splits = [
        pq.read_table(folder / f"{split}-00000-of-00001.parquet", columns=["label"]) for split in ("train", "test")
    ]
    labels = np.concatenate([table.column("label").to_numpy() for table in splits])
    assert np.bincount(labels).tolist() == [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]
    for spec, least, total, distinct in (
        ("pfedme", 1905, 70_000, 70_000),
        ("pfedme-overlap", 1165, 69_969, 23_536),
        ("fedmcsa", 1167, 70_000, 70_000),
    ):
        shares = partition(spec, labels, None, 0)
        train = [int(0.75 * len(rows)) for rows in shares]
        assert (min(train), max(train)) == (least, 3834)
        assert sum(len(rows) for rows in shares) == total
        assert len(np.unique(np.concatenate(shares))) == distinct


def test_real_images_load_at_once_the_second_time(real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 10,000 official test images stand for all, since decoding 70,000 takes its time."""
    file = real("ylecun/mnist") / "test-00000-of-00001.parquet"
    (tmp_path / "ylecun" / "mnist").mkdir(parents=True)
    (tmp_path / "ylecun" / "mnist" / "train.parquet").symlink_to(file)
    monkeypatch.setenv("FEDKIN_DATA", str(tmp_path))
    first = load(Data("mnist", "shards:2"), progress=False)
    again = load(Data("mnist", "shards:2"), progress=False)
    assert torch.equal(first.x, again.x)
    assert again.shape == (1, 28, 28)
    assert (again.train.sizes + again.test.sizes).tolist() == [100] * 100
    assert again.y.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(again.x.mean()) == pytest.approx(0, abs=1e-4)
    ink = again.x[:, 0, 14, 14]
    assert float(ink.std(correction=0)) == pytest.approx(1, abs=0.01)  # sd / (sd + 0.001)


def test_real_shakespeare(real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first three of 37 row groups stand for all."""
    (file,) = real("local/shakespeare_pd").glob("*.parquet")
    folder = tmp_path / "local" / "shakespeare_pd"
    folder.mkdir(parents=True)
    part = pq.ParquetFile(file).read_row_groups([0, 1, 2])
    pq.write_table(part, folder / "train.parquet")
    monkeypatch.setenv("FEDKIN_DATA", str(tmp_path))
    federation = load(Data("shakespeare", clients=20, samples=100), progress=False)
    assert federation.n == 20
    assert federation.shape == (80,)
    assert len(federation.y) == len(part)
    assert set(federation.clients) < set(part.column("character_id").to_pylist())
    assert int(federation.train.sizes.max()) == 100
    owned = federation.x[federation.train.rows]
    assert int(owned.max()) < 81
    assert (owned == 0).float().mean() < 0.001  # hardly a character is unknown
