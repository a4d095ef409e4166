"""Where datasets come from: folders, the cache and the hub, and everything that can be wrong with them."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from datasets import Dataset

from fedkin.data import Data, Federation, cache, datasets, load, sources
from fedkin.data.catalogue import CATALOGUE
from fedkin.errors import BadInput

from .conftest import Build, pictures, roles


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


TEN = pictures([0, 1] * 5, 10)


def two() -> Federation:
    """MNIST as it is found now, divided among two clients."""
    return load(Data("mnist", "iid", 2), progress=False)


def mixed(**columns: list[object]) -> Dataset:
    """Pictures and labels as given, whatever they are."""
    return Dataset.from_dict(columns, features=TEN.features)


TALL = pictures([0], 10, (30, 28))
BAD: list[tuple[Callable[[], dict[str, Dataset]], str]] = [
    (lambda: {"test": TEN}, "no split 'train', only test"),
    (lambda: {"train": pictures([0, 11], 12)}, "has the label 11, but its classes are 0 to 9"),
    (lambda: {"train": TEN.remove_columns("label").add_column("label", ["a", "b"] * 5)}, "not whole numbers"),
    (lambda: {"train": Dataset.from_dict({"image": ["a"], "label": [0]})}, "no pictures in the column image"),
    (lambda: {"train": mixed(image=[{"bytes": b"no", "path": None}], label=[0])}, "could not be decoded"),
    (lambda: {"train": TEN, "test": TALL}, "different shapes"),
    (lambda: {"train": mixed(image=[TEN["image"][0], TALL["image"][0]], label=[0, 1])}, "different shapes"),
]


class TestBadFolders:
    def test_missing_everywhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_hub: None) -> None:
        monkeypatch.setenv("FEDKIN_DATA", str(tmp_path))
        sentence = refusal("cifar100")
        assert all(word in sentence for word in ("uoft-cs/cifar100", str(tmp_path), "FEDKIN_DATA"))
        monkeypatch.delenv("FEDKIN_DATA")
        assert "which is not set" in refusal("cifar100")

    @pytest.mark.parametrize(("files", "sentence"), [([], "is empty"), (["README"], "could not be read")])
    def test_empty_or_of_another_kind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], sentence: str
    ) -> None:
        folder = tmp_path / "ylecun" / "mnist"
        folder.mkdir(parents=True)
        for name in files:
            (folder / name).write_text("nothing here")
        monkeypatch.setenv("FEDKIN_DATA", str(tmp_path))
        assert sentence in refusal("mnist")

    @pytest.mark.parametrize("keep", [0, 10, 2000])
    def test_truncated(self, tiny: Build, own_cache: Path, keep: int) -> None:
        folder = tiny("ylecun/mnist", train=pictures([0, 1] * 20, 10))
        file = folder / "train-00000-of-00001.parquet"
        file.write_bytes(file.read_bytes()[:keep])
        assert "could not be read" in refusal("mnist")
        assert not own_cache.exists()

    def test_wrong_columns(self, tiny: Build) -> None:
        tiny("uoft-cs/cifar100", train=pictures([0, 1], 100, (32, 32, 3), "img", "label"))
        sentence = refusal("cifar100")
        assert "lacks the column fine_label" in sentence
        assert "expected img, fine_label, found img, label" in sentence

    def test_no_rows(self, tiny: Build) -> None:
        tiny("flwrlabs/shakespeare", train=roles({}))
        assert "no data" in refusal("shakespeare")

    @pytest.mark.parametrize(("splits", "sentence"), BAD)
    def test_wrong_contents(
        self, tiny: Build, own_cache: Path, splits: Callable[[], dict[str, Dataset]], sentence: str
    ) -> None:
        tiny("ylecun/mnist", **splits())
        assert sentence in refusal("mnist")
        assert not own_cache.exists()


class TestCache:
    def test_the_second_load_decodes_nothing(self, tiny: Build, monkeypatch: pytest.MonkeyPatch) -> None:
        tiny("ylecun/mnist", train=pictures([0, 1] * 5, 10), test=pictures([1], 10))
        first = two()
        monkeypatch.setattr(sources, "_decode", None)  # calling it would raise
        again = two()
        assert torch.equal(first.x, again.x)
        assert torch.equal(first.y, again.y)
        assert first.source == again.source

    @pytest.mark.parametrize("damage", [b"", b"rubbish", None])
    def test_a_damaged_file_is_rebuilt(self, tiny: Build, own_cache: Path, damage: bytes | None) -> None:
        tiny("ylecun/mnist", train=TEN)
        first = two()
        (file,) = own_cache.iterdir()
        whole = file.read_bytes()
        file.unlink()  # a new file, since the old one is mapped by `first`
        file.write_bytes(whole[:-9] + b"damaged!!" if damage is None else damage)
        assert torch.equal(two().x, first.x)
        assert cache.load(file) is not None

    def test_a_changed_folder_is_read_again(self, tiny: Build) -> None:
        tiny("ylecun/mnist", train=TEN)
        assert len(two().y) == 10
        tiny("ylecun/mnist", train=pictures([0, 1] * 6, 10))
        assert len(two().y) == 12

    def test_a_cache_that_cannot_be_written_is_no_obstacle(
        self, tiny: Build, own_cache: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        own_cache.write_text("a file where the folder should be")
        tiny("ylecun/mnist", train=TEN)
        assert two().n == 2
        assert "decoded again next time" in capsys.readouterr().err

    def test_nothing_is_left_of_the_copy_that_is_read(
        self, tiny: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
        (tmp_path / "scratch").mkdir()
        tiny("ylecun/mnist", train=TEN)
        two()
        assert not list((tmp_path / "scratch").iterdir())


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
            return {"train": TEN}

        monkeypatch.setattr("datasets.load_dataset", load_dataset)
        monkeypatch.delenv("FEDKIN_DATA", raising=False)
        assert not {entry.name: entry.offline for entry in datasets()}["mnist"]
        federation = two()
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
        two()
        assert len(asked) == 1
        tiny("ylecun/mnist", train=pictures([0, 1] * 4, 10))
        assert two().source["kind"] == "folder"  # folders come first

    def test_scripts_are_replaced_by_their_converted_copy(
        self, api: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def load_dataset(id: str, revision: str) -> dict[str, Dataset]:
            if revision != "refs/convert/parquet":
                raise RuntimeError("Dataset scripts are no longer supported")
            return {"train": TEN}

        monkeypatch.setattr("datasets.load_dataset", load_dataset)
        monkeypatch.delenv("FEDKIN_DATA", raising=False)
        assert two().n == 2

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
        tiny("ylecun/mnist", train=TEN)
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
        tiny("ylecun/mnist", train=TEN)
        load(Data("mnist", "iid", 2))
        assert "Decoding mnist, once" in terminal.getvalue()

    def test_silence_on_request(self, tiny: Build, capsys: pytest.CaptureFixture[str]) -> None:
        tiny("ylecun/mnist", train=TEN)
        capsys.readouterr()
        two()
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
    two()
    stored = cache.load(next(own_cache.iterdir()))
    assert stored is not None
    assert json.loads(stored[1]["rows"]) == {"train": 2}
    assert stored[0]["x"].dtype == torch.uint8
