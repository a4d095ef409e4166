"""Every dataset of the hub, as small folders of Parquet with its schema."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from fedkin.data import Data, decode, load, text
from fedkin.data.catalogue import CATALOGUE
from fedkin.errors import BadInput

from .conftest import Build, pictures, roles, tweets


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDKIN_CACHE", str(tmp_path / "cache"))


class TestImages:
    @pytest.mark.parametrize(
        ("name", "source", "shape", "column", "label"),
        [
            ("mnist", "ylecun/mnist", (28, 28), "image", "label"),
            ("fashion_mnist", "zalando-datasets/fashion_mnist", (28, 28), "image", "label"),
            ("emnist", "local/emnist47_bymerge", (28, 28), "image", "label"),
            ("emnist", "claudiogsc/emnist_balanced", (28, 28), "image", "label"),
            ("cifar10", "uoft-cs/cifar10", (32, 32, 3), "img", "label"),
            ("cifar100", "uoft-cs/cifar100", (32, 32, 3), "img", "fine_label"),
        ],
    )
    def test_every_set_loads(
        self, tiny: Build, name: str, source: str, shape: tuple[int, ...], column: str, label: str
    ) -> None:
        classes = CATALOGUE[name].classes
        train, test = list(range(classes)) * 2, list(range(classes))
        tiny(
            source,
            test=pictures(test, classes, shape, column, label, seed=1),
            train=pictures(train, classes, shape, column, label),
        )
        federation = load(Data(name, "iid", 5, holdout="official"), progress=False)
        height, width, *colours = shape
        assert federation.shape == (colours[0] if colours else 1, height, width)
        assert federation.x.dtype == torch.float32
        assert federation.classes == classes
        assert federation.y.tolist() == train + test  # the training split first, in its own order
        assert federation.common is not None
        assert len(federation.common) == len(test)
        assert federation.source["kind"] == "folder"
        assert federation.source["id"] == source
        assert federation.source["rows"] == {"train": len(train), "test": len(test)}

    def test_grey_pictures_are_standardised_a_pixel(self, tiny: Build) -> None:
        table = pictures([0, 1, 2] * 10, 10)
        tiny("ylecun/mnist", train=table)
        federation = load(Data("mnist", "iid", 2), progress=False)
        x = np.stack([np.asarray(picture) for picture in table["image"]])[:, None].astype(float)
        expected = (x - x.mean(0)) / (x.std(0) + 0.001)
        np.testing.assert_allclose(federation.x.numpy(), expected, atol=1e-4)

    def test_colour_pictures_are_scaled(self, tiny: Build) -> None:
        table = pictures([0, 1, 2] * 3, 10, (32, 32, 3), "img")
        tiny("uoft-cs/cifar10", train=table)
        federation = load(Data("cifar10", "iid", 2), progress=False)
        x = np.stack([np.asarray(picture) for picture in table["img"]]).transpose(0, 3, 1, 2) / 255
        np.testing.assert_allclose(federation.x.numpy(), (x - 0.5) / 0.5, atol=1e-5)

    def test_moments_are_exact(self) -> None:
        x = np.random.default_rng(0).integers(0, 256, (2345, 3, 4), dtype=np.uint8)
        mean, deviation = decode.moments(x)
        np.testing.assert_allclose(mean, x.mean(0), rtol=1e-6)
        np.testing.assert_allclose(deviation, x.std(0), rtol=1e-6)
        assert not decode.moments(np.full((5, 1, 1), 7, dtype=np.uint8))[1].any()

    def test_the_first_folder_wins(self, tiny: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first = tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        os.renames(first, tmp_path / "first" / "ylecun" / "mnist")
        tiny("ylecun/mnist", train=pictures([2, 3] * 6, 10))
        monkeypatch.setenv(
            "FEDKIN_DATA", os.pathsep.join(map(str, (tmp_path / "none", tmp_path / "first", tmp_path / "data")))
        )
        assert len(load(Data("mnist", "iid", 2), progress=False).y) == 10


class TestShakespeare:
    TEXT = "But, soft! what light through yonder window breaks? It is the east, and Juliet is the sun. " * 3

    def test_windows_and_roles(self, tiny: Build) -> None:
        plays = {"ROMEO": self.TEXT, "JULIET": self.TEXT[5:190], "PAGE": self.TEXT[:90]}
        tiny("flwrlabs/shakespeare", train=roles(plays))
        federation = load(Data("shakespeare", test=0.2), progress=False)
        assert federation.clients == ("JULIET", "ROMEO")  # the page has 10 samples, fewer than the minimum
        assert federation.source["below_minimum"] == 1
        assert federation.vocabulary == federation.classes == text.VOCABULARY
        assert federation.shape == (80,)
        letters = "\0" + text.LETTERS
        row = int(federation.train[1][0])
        window = "".join(letters[token] for token in federation.x[row].tolist())
        assert window + letters[federation.y[row]] in self.TEXT
        for train, test in zip(federation.train.lists(), federation.test.lists(), strict=True):
            assert train.max() < test.min()

    def test_clients_and_minimum(self, tiny: Build) -> None:
        tiny("local/shakespeare_pd", train=roles(dict.fromkeys("ABCDEF", self.TEXT) | {"Z": self.TEXT[:85]}))
        assert load(Data("shakespeare", minimum=1), progress=False).n == 7
        assert load(Data("shakespeare", "natural:character_id", clients=3), progress=False).n == 3
        assert load(Data("shakespeare", "iid", clients=4), progress=False).n == 4
        with pytest.raises(BadInput, match="clients are in the column 'character_id'"):
            load(Data("shakespeare", "natural:play"), progress=False)

    def test_it_has_no_official_test_split(self, tiny: Build) -> None:
        tiny("local/shakespeare_pd", train=roles({"A": self.TEXT}))
        with pytest.raises(BadInput, match="no official test split"):
            load(Data("shakespeare", holdout="official"), progress=False)


class TestSentiment140:
    ROWS = tuple(
        (user, f"{word} day @{user} number {i}!", mood)
        for user in ("amy", "bob")
        for i in range(20)
        for word, mood in (("bad", 0), ("good", 4))
    )

    def test_tweets_and_users(self, tiny: Build) -> None:
        few = [("cat", "meow", 4)]
        tiny(
            "stanfordnlp/sentiment140",
            train=tweets([*self.ROWS, *few]),
            test=tweets([("dan", "bad zebra", 0), ("dan", "hm", 2)]),
        )
        federation = load(Data("sentiment140"), progress=False)
        assert federation.clients == ("amy", "bob")
        assert federation.source["rows"] == {"train": 81, "test": 1}
        assert federation.source["dropped"] == {"neutral": 1}
        assert federation.classes == 2
        assert federation.vocabulary == text.WORDS
        assert federation.shape == (30,)
        assert federation.y[:4].tolist() == [0, 1, 0, 1]
        assert federation.x[0, -5:].tolist().count(0) == 0
        assert (federation.x[81] != 0).sum() == 2
        assert federation.x[81, -1] == 1  # the zebra is not in the training split

    def test_an_unknown_mood_is_refused(self, tiny: Build) -> None:
        tiny("stanfordnlp/sentiment140", train=tweets([("amy", "hm", 3)]))
        with pytest.raises(BadInput, match="none of 0, 2 and 4"):
            load(Data("sentiment140"), progress=False)
