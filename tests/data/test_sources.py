"""Folders of Parquet with the hub's schemas, small ones, and everything that can be wrong with them."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset

from fedkin.data import Data, cache, datasets, decode, load, sources, text
from fedkin.data.catalogue import CATALOGUE
from fedkin.errors import BadInput

from .conftest import Build, pictures, roles, tweets


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEDKIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is not there, without waiting for it."""

    def unreachable(id: str) -> None:
        raise sources.Unreachable(f"{id}: no network")

    monkeypatch.setattr(sources, "_from_hub", unreachable)


def refusal(name: str) -> str:
    with pytest.raises(BadInput) as raised:
        load(Data(name), progress=False)
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert f"'{name}'" in sentence
    return sentence


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
        assert "none of 0, 2 and 4" in refusal("sentiment140")


class TestCache:
    def test_the_second_load_decodes_nothing(self, tiny: Build, monkeypatch: pytest.MonkeyPatch) -> None:
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10), test=pictures([1], 10))
        first = load(Data("mnist", "iid", 2), progress=False)
        monkeypatch.setattr(sources, "_decode", None)  # calling it would raise
        again = load(Data("mnist", "iid", 2), progress=False)
        assert torch.equal(first.x, again.x)
        assert torch.equal(first.y, again.y)
        assert first.source == again.source

    @pytest.mark.parametrize("damage", [b"", b"rubbish", None])
    def test_a_damaged_file_is_rebuilt(self, tiny: Build, own_cache: Path, damage: bytes | None) -> None:
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        first = load(Data("mnist", "iid", 2), progress=False)
        (file,) = own_cache.iterdir()
        whole = file.read_bytes()
        file.unlink()  # a new file, since the old one is mapped by `first`
        file.write_bytes(whole[:-9] + b"damaged!!" if damage is None else damage)
        assert torch.equal(load(Data("mnist", "iid", 2), progress=False).x, first.x)
        assert cache.load(file) is not None

    def test_a_changed_folder_is_read_again(self, tiny: Build) -> None:
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        assert len(load(Data("mnist", "iid", 2), progress=False).y) == 10
        tiny("ylecun/mnist", train=pictures([0, 1] * 6, 10))
        assert len(load(Data("mnist", "iid", 2), progress=False).y) == 12

    def test_a_cache_that_cannot_be_written_is_no_obstacle(
        self, tiny: Build, own_cache: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        own_cache.write_text("a file where the folder should be")
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        assert load(Data("mnist", "iid", 2), progress=False).n == 2
        assert "decoded again next time" in capsys.readouterr().err

    def test_nothing_is_left_of_the_copy_that_is_read(
        self, tiny: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
        (tmp_path / "scratch").mkdir()
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        load(Data("mnist", "iid", 2), progress=False)
        assert not list((tmp_path / "scratch").iterdir())


class TestBadFolders:
    def test_missing_everywhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_hub: None) -> None:
        monkeypatch.setenv("FEDKIN_DATA", str(tmp_path))
        sentence = refusal("cifar100")
        assert "uoft-cs/cifar100" in sentence
        assert str(tmp_path) in sentence
        assert "FEDKIN_DATA" in sentence
        monkeypatch.delenv("FEDKIN_DATA")
        assert "which is not set" in refusal("cifar100")

    def test_empty(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "ylecun" / "mnist").mkdir(parents=True)
        monkeypatch.setenv("FEDKIN_DATA", str(tmp_path))
        assert "is empty" in refusal("mnist")

    @pytest.mark.parametrize("keep", [0, 10, 2000])
    def test_truncated(self, tiny: Build, own_cache: Path, keep: int) -> None:
        folder = tiny("ylecun/mnist", train=pictures([0, 1] * 20, 10))
        file = folder / "train-00000-of-00001.parquet"
        file.write_bytes(file.read_bytes()[:keep])
        assert "could not be read" in refusal("mnist")
        assert not own_cache.exists()

    def test_files_of_another_kind(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "ylecun" / "mnist"
        folder.mkdir(parents=True)
        (folder / "README").write_text("nothing here")
        monkeypatch.setenv("FEDKIN_DATA", str(tmp_path))
        assert "could not be read" in refusal("mnist")

    def test_wrong_columns(self, tiny: Build) -> None:
        tiny("uoft-cs/cifar100", train=pictures([0, 1], 100, (32, 32, 3), "img", "label"))
        sentence = refusal("cifar100")
        assert "lacks the column fine_label" in sentence
        assert "expected img, fine_label, found img, label" in sentence

    def test_no_training_split(self, tiny: Build) -> None:
        tiny("ylecun/mnist", test=pictures([0, 1], 10))
        assert "no split 'train', only test" in refusal("mnist")

    def test_a_label_outside_the_classes(self, tiny: Build, own_cache: Path) -> None:
        tiny("ylecun/mnist", train=pictures([0, 11], 12))
        assert "has the label 11, but its classes are 0 to 9" in refusal("mnist")
        assert not own_cache.exists()

    def test_labels_that_are_no_numbers(self, tiny: Build) -> None:
        table = pictures([0, 1], 10)
        tiny("ylecun/mnist", train=table.remove_columns("label").add_column("label", ["a", "b"]))
        assert "not whole numbers" in refusal("mnist")

    def test_pictures_that_are_none(self, tiny: Build) -> None:
        tiny("ylecun/mnist", train=Dataset.from_dict({"image": ["a", "b"], "label": [0, 1]}))
        assert "no pictures in the column image" in refusal("mnist")

    def test_pictures_that_cannot_be_decoded(self, tiny: Build) -> None:
        table = pictures([0, 1], 10)
        bad = Dataset.from_dict(
            {"image": [{"bytes": b"no picture", "path": None}] * 2, "label": [0, 1]}, features=table.features
        )
        tiny("ylecun/mnist", train=bad)
        assert "could not be decoded" in refusal("mnist")

    def test_pictures_of_different_shapes(self, tiny: Build) -> None:
        table = pictures([0], 10)
        big = Dataset.from_dict(
            {"image": [*table["image"], *pictures([0], 10, (30, 28))["image"]], "label": [0, 1]},
            features=table.features,
        )
        folder = tiny("ylecun/mnist", train=table, test=pictures([0], 10, (30, 28)))
        assert "different shapes" in refusal("mnist")
        (folder / "test-00000-of-00001.parquet").unlink()
        tiny("ylecun/mnist", train=big)
        assert "different shapes" in refusal("mnist")

    def test_no_rows(self, tiny: Build) -> None:
        tiny("flwrlabs/shakespeare", train=roles({}))
        assert "no data" in refusal("shakespeare")


class TestHub:
    """The hub is played by a folder: `load_dataset` takes both."""

    @pytest.fixture
    def api(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        asked: list[float] = []

        class Api:
            def dataset_info(self, id: str, timeout: float) -> object:
                asked.append(timeout)
                return type("Info", (), {"sha": "abc123"})()

        monkeypatch.setattr("huggingface_hub.HfApi", Api)
        return asked

    def test_an_id_is_loaded_at_its_revision_and_kept(
        self, api: list[float], tiny: Build, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = []

        def load_dataset(id: str, revision: str | None = None, cache_dir: str | None = None) -> dict[str, Dataset]:
            asked.append((id, revision))
            return {"train": pictures([0, 1] * 5, 10)}

        monkeypatch.setattr("datasets.load_dataset", load_dataset)
        monkeypatch.delenv("FEDKIN_DATA", raising=False)
        assert not {entry.name: entry.offline for entry in datasets()}["mnist"]
        federation = load(Data("mnist", "iid", 2), progress=False)
        assert asked == [("ylecun/mnist", "abc123")]
        assert api == [sources.SECONDS]
        assert federation.source | {"partition": ""} == {
            "kind": "hub",
            "id": "ylecun/mnist",
            "rows": {"train": 10},
            "revision": "abc123",
            "partition": "",
        }
        assert {entry.name: entry.offline for entry in datasets()}["mnist"]
        load(Data("mnist", "iid", 2), progress=False)
        assert len(asked) == 1
        tiny("ylecun/mnist", train=pictures([0, 1] * 4, 10))
        assert load(Data("mnist", "iid", 2), progress=False).source["kind"] == "folder"  # folders come first

    def test_scripts_are_replaced_by_their_converted_copy(
        self, api: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def load_dataset(id: str, revision: str) -> dict[str, Dataset]:
            if revision != "refs/convert/parquet":
                raise RuntimeError("Dataset scripts are no longer supported")
            return {"train": pictures([0, 1] * 5, 10)}

        monkeypatch.setattr("datasets.load_dataset", load_dataset)
        monkeypatch.delenv("FEDKIN_DATA", raising=False)
        assert load(Data("mnist", "iid", 2), progress=False).n == 2

    def test_whatever_the_hub_raises_is_one_sentence(self, api: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
        def load_dataset(id: str, revision: str) -> None:
            raise RuntimeError("gated\nmore")

        monkeypatch.setattr("datasets.load_dataset", load_dataset)
        monkeypatch.delenv("FEDKIN_DATA", raising=False)
        assert "hub did not give it (ylecun/mnist: gated)" in refusal("mnist")

    def test_no_network_is_noticed_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Api:
            def dataset_info(self, id: str, timeout: float) -> None:
                raise OSError("Name or service not known")

        monkeypatch.setattr("huggingface_hub.HfApi", Api)
        monkeypatch.setattr("datasets.load_dataset", None)  # calling it would raise
        monkeypatch.delenv("FEDKIN_DATA", raising=False)
        assert "uoft-cs/cifar10: Name or service not known" in refusal("cifar10")


class TestProgress:
    def test_one_line_where_there_is_no_terminal(self, tiny: Build, capsys: pytest.CaptureFixture[str]) -> None:
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        capsys.readouterr()
        load(Data("mnist", "iid", 2))
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err == "Decoding mnist, 10 rows, once ...\n"
        load(Data("mnist", "iid", 2))
        assert capsys.readouterr().err == ""

    def test_a_bar_on_a_terminal(self, tiny: Build, monkeypatch: pytest.MonkeyPatch) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        load(Data("mnist", "iid", 2))
        assert "Decoding mnist, once" in terminal.getvalue()

    def test_silence_on_request(self, tiny: Build, capsys: pytest.CaptureFixture[str]) -> None:
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10))
        capsys.readouterr()
        load(Data("mnist", "iid", 2), progress=False)
        assert capsys.readouterr() == ("", "")


def test_names_and_sources_are_listed(tiny: Build) -> None:
    tiny("local/emnist47_bymerge", train=pictures([0], 47))
    listed = {entry.name: entry for entry in datasets()}
    assert listed.keys() == CATALOGUE.keys()
    assert listed["digits"].offline
    assert listed["emnist"].offline
    assert not listed["cifar100"].offline
    assert listed["emnist"].sources == ("claudiogsc/emnist_balanced", "local/emnist47_bymerge")
    assert all(entry.description for entry in listed.values())


def test_notes_are_json(tiny: Build, own_cache: Path) -> None:
    tiny("ylecun/mnist", train=pictures([0, 1], 10))
    load(Data("mnist", "iid", 2), progress=False)
    stored = cache.load(next(own_cache.iterdir()))
    assert stored is not None
    assert json.loads(stored[1]["rows"]) == {"train": 2}
    assert stored[0]["x"].dtype == torch.uint8
