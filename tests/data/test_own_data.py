from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fedkin.data import Data, load
from fedkin.errors import BadInput


def frame(rows: int = 40, clients: int = 4, seed: int = 0) -> pd.DataFrame:
    gen = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": gen.normal(50, 10, rows),
            "dose": gen.integers(0, 5, rows),
            "client": [f"ward {i % clients}" for i in range(rows)],
            "label": gen.choice(["well", "ill", "cured"], rows),
        }
    )


def written(table: pd.DataFrame, path: Path) -> str:
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return str(path)


def refused(name: str | Path, **more: str) -> str:
    with pytest.raises(BadInput) as raised:
        load(Data(str(name), **more))  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_one_table_with_a_column_of_clients(tmp_path: Path, suffix: str) -> None:
    table = frame()
    federation = load(Data(written(table, tmp_path / f"patients{suffix}"), standardise="none"))
    assert federation.name == "patients"
    assert federation.clients == ("ward 0", "ward 1", "ward 2", "ward 3")
    assert federation.classes == 3
    assert federation.labels == ("cured", "ill", "well")
    np.testing.assert_array_equal(federation.x.numpy(), table[["age", "dose"]].to_numpy(np.float32))  # as given
    assert [federation.labels[y] for y in federation.y.tolist()] == table["label"].tolist()
    for i, (train, test) in enumerate(zip(federation.train.lists(), federation.test.lists(), strict=True)):
        assert sorted(torch.cat([train, test]).tolist()) == list(range(i, 40, 4))


def test_columns_can_be_named(tmp_path: Path) -> None:
    name = written(frame().rename(columns={"client": "hospital", "label": "outcome"}), tmp_path / "t.csv")
    for data in (
        Data(name, client="hospital", target="outcome"),
        Data(name, "natural:hospital", target="outcome"),
    ):
        assert load(data).n == 4
        assert load(data).shape == (2,)


def test_a_table_can_be_divided_otherwise(tmp_path: Path) -> None:
    name = written(frame().drop(columns="client"), tmp_path / "t.csv")
    assert load(Data(name, "iid", clients=5)).n == 5
    with_clients = written(frame(), tmp_path / "u.csv")
    assert load(Data(with_clients, "dirichlet:1", clients=3)).shape == (2,)  # the column of clients is no feature


def test_a_folder_with_a_file_a_client(tmp_path: Path) -> None:
    for i, suffix in enumerate((".csv", ".parquet")):
        written(frame(10 + i).drop(columns="client"), tmp_path / f"site{i}{suffix}")
    table = frame(12).drop(columns=["client", "label"])
    np.savez(tmp_path / "site2.npz", x=table.to_numpy(), y=np.array(["ill"] * 12))
    (tmp_path / "notes.txt").write_text("not data")
    (tmp_path / "site2.npz").rename(tmp_path / "other.txt")
    federation = load(Data(str(tmp_path)))
    assert federation.clients == ("site0", "site1")
    assert (federation.train.sizes + federation.test.sizes).tolist() == [10, 11]


def test_a_folder_of_npz_files(tmp_path: Path) -> None:
    gen = np.random.default_rng(0)
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", x=gen.normal(size=(8, 1, 4, 4)), y=gen.integers(0, 3, 8))
    federation = load(Data(str(tmp_path)))
    assert federation.shape == (1, 4, 4)
    assert federation.clients == ("a", "b")


def test_a_folder_of_tables_with_a_column_of_clients(tmp_path: Path) -> None:
    written(frame(20, 2), tmp_path / "part0.csv")
    written(frame(20, 4, seed=1), tmp_path / "part1.csv")
    federation = load(Data(str(tmp_path), client="client"))
    assert federation.clients == ("ward 0", "ward 1", "ward 2", "ward 3")
    assert (federation.train.sizes + federation.test.sizes).tolist() == [15, 15, 5, 5]


def test_npz(tmp_path: Path) -> None:
    gen = np.random.default_rng(0)
    x, y, client = gen.normal(size=(30, 5)), gen.integers(0, 3, 30), np.repeat([7, 8, 9], 10)
    np.savez(tmp_path / "d.npz", x=x, y=y, client=client)
    federation = load(Data(str(tmp_path / "d.npz"), standardise="none"))
    assert federation.clients == ("7", "8", "9")
    assert federation.preparation is not None
    assert [column["name"] for column in federation.preparation["columns"]][:5] == ["x0", "x1", "x2", "x3", "x4"]
    np.testing.assert_array_equal(federation.x.numpy(), x.astype(np.float32))
    np.testing.assert_array_equal(federation.y.numpy(), y)


def test_clients_without_samples_are_left_out(tmp_path: Path) -> None:
    written(frame(10).drop(columns="client"), tmp_path / "full.csv")
    written(frame(10).drop(columns="client").head(0), tmp_path / "void.csv")
    federation = load(Data(str(tmp_path)))
    assert federation.clients == ("full",)
    assert federation.left_out == ("void",)

    table = frame()
    table["client"] = pd.Categorical(table["client"], categories=[*sorted(set(table["client"])), "ward 9"])
    assert load(Data(written(table, tmp_path / "t.parquet"))).left_out == ("ward 9",)


@pytest.mark.parametrize(
    ("labels", "numbers", "classes"),
    [
        ([0, 2, 2, 0], [0, 2, 2, 0], 3),
        ([0.0, 1.0, 1.0, 0.0], [0, 1, 1, 0], 2),
        ([-1, 1, 1, -1], [0, 1, 1, 0], 2),
        ([5000, 7, 7, 7], [1, 0, 0, 0], 2),
        ([True, False, False, True], [1, 0, 0, 1], 2),
    ],
)
def test_labels_become_class_numbers(tmp_path: Path, labels: list[object], numbers: list[int], classes: int) -> None:
    table = frame(4)
    table["label"] = labels
    federation = load(Data(written(table, tmp_path / "t.parquet")))
    assert federation.y.tolist() == numbers
    assert federation.classes == classes


class TestMistakes:
    def test_missing(self, tmp_path: Path) -> None:
        assert refused(tmp_path / "none.csv") == f"There is no file or folder '{tmp_path / 'none.csv'}'."

    def test_of_another_kind(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("a")
        assert "make it a CSV file, for example by renaming it to 'a.csv'" in refused(tmp_path / "a.txt")

    def test_empty_folder(self, tmp_path: Path) -> None:
        assert "holds no .csv, .tsv, .parquet, .xlsx, .jsonl, .ndjson, .npz file" in refused(tmp_path)

    @pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.npz"])
    def test_empty_file(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).touch()
        assert refused(tmp_path / name) == f"{name} is empty."

    def test_truncated_parquet(self, tmp_path: Path) -> None:
        name = written(frame(), tmp_path / "a.parquet")
        Path(name).write_bytes(Path(name).read_bytes()[:-100])
        assert "a.parquet could not be read" in refused(name)

    def test_truncated_npz(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", x=np.ones((5, 2)), y=np.zeros(5))
        (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-30])
        assert "a.npz could not be read" in refused(tmp_path / "a.npz")

    def test_ragged_csv(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("x,client,label\n1,a,0\n1,a,0,5,6\n")
        assert "a.csv could not be read" in refused(tmp_path / "a.csv")

    def test_no_rows_at_all(self, tmp_path: Path) -> None:
        assert "no samples" in refused(written(frame().head(0), tmp_path / "a.csv"))

    def test_no_client_column(self, tmp_path: Path) -> None:
        name = written(frame().rename(columns={"client": "ward"}), tmp_path / "a.csv")
        assert (
            "no column 'client' that says whose a row is, only age, dose, ward, label; set 'client' (--client-column)"
            in refused(name)
        )
        assert "no column 'hospital'" in refused(name, client="hospital")

    def test_no_label_column(self, tmp_path: Path) -> None:
        name = written(frame().rename(columns={"label": "outcome"}), tmp_path / "a.csv")
        said = refused(name)
        assert "no column label or y or target for the label, only age, dose, client, outcome" in said
        assert said.endswith("set 'target' (--target-column).")
        assert "no column cure for the label" in refused(name, target="cure")

    def test_no_features(self, tmp_path: Path) -> None:
        assert "no columns besides" in refused(written(frame()[["client", "label"]], tmp_path / "a.csv"))

    def test_rows_without_a_client(self, tmp_path: Path) -> None:
        table = frame()
        table.loc[3, "client"] = None
        assert "rows without a client in the column 'client'" in refused(written(table, tmp_path / "a.csv"))

    def test_labels_that_are_measurements(self, tmp_path: Path) -> None:
        table = frame()
        name = written(table.assign(label=[1.5] + [2.0] * 39), tmp_path / "a.csv")
        assert "labels that are not classes, such as 1.5; say --task regress" in refused(name, task="classify")

    def test_files_with_nothing_in_common(self, tmp_path: Path) -> None:
        written(frame()[["age", "label"]], tmp_path / "a.csv")
        written(frame()[["label"]], tmp_path / "b.csv")
        assert "b.csv has none of the columns of the other files: age" in refused(tmp_path)

    def test_a_class_target_of_text_that_is_no_class(self, tmp_path: Path) -> None:
        name = written(frame().assign(label=[f"note {i}" for i in range(40)]), tmp_path / "a.csv")
        assert "40 different texts in 40 rows, which are hardly classes" in refused(name)

    def test_a_length_of_stay_is_asked_about_but_class_numbers_of_arrays_are_not(self, tmp_path: Path) -> None:
        days = np.arange(1000) % 50
        name = written(frame(1000).assign(label=days), tmp_path / "a.csv")
        assert "50 different whole numbers in 1,000 rows" in refused(name)
        assert load(Data(name, task="regress")).task == "regress"
        assert load(Data(name, task="classify")).classes == 50
        np.savez(tmp_path / "a.npz", x=np.ones((1000, 1, 2, 2)), y=days, client=days % 3)
        assert load(Data(str(tmp_path / "a.npz"))).classes == 50

    def test_the_target_is_the_client(self, tmp_path: Path) -> None:
        name = written(frame(), tmp_path / "a.csv")
        said = "The column 'client' cannot say both whose a row is and what to predict; choose another --target-column."
        assert refused(name, target="client") == said
        assert refused(name, target="client", client="client", partition="iid") == said
        assert load(Data(name, "iid", target="client", clients=2)).classes == 4  # then it is no column of clients

    @pytest.mark.parametrize(("value", "told"), [("DK", "DK"), (2.0, "2"), (0, "0"), (1.5, "1.5"), (True, "True")])
    def test_a_target_with_one_value(self, tmp_path: Path, value: object, told: str) -> None:
        name = written(frame().assign(label=value), tmp_path / "a.csv")
        assert f"column 'label', has one value only, '{told}': there is nothing to learn" in refused(name)

    @pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", None])
    def test_a_target_of_dates(self, tmp_path: Path, form: str | None) -> None:
        days = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(40) % 3, unit="D"))
        label = days.dt.strftime(form) if form else days
        name = written(frame().assign(label=label), tmp_path / "a.parquet")
        assert refused(name).endswith("column 'label', is dates; choose another --target-column.")
        codes = written(
            frame().assign(label=days.dt.day.map({1: "2021", 2: "2022", 3: "2023"})), tmp_path / "b.parquet"
        )
        assert load(Data(codes)).labels == ("2021", "2022", "2023")  # numbers as text are classes

    @pytest.mark.parametrize("asked", ["Outcome", "OUTCOME", "outcme"])
    def test_nearly_the_name_of_a_column(self, tmp_path: Path, asked: str) -> None:
        name = written(frame().rename(columns={"label": "outcome", "client": "Ward"}), tmp_path / "a.csv")
        said = "; did you mean outcome? If so, set 'target' (--target-column)."
        assert refused(name, target=asked).endswith(said)
        assert "did you mean Ward? If so, set 'client'" in refused(name, target="outcome", client="ward")

    @pytest.mark.parametrize(("option", "column"), [("features", "agee"), ("drop", "agee")])
    def test_columns_that_are_not_there(self, tmp_path: Path, option: str, column: str) -> None:
        name = written(frame(), tmp_path / "a.csv")
        with pytest.raises(BadInput, match=f"no column called 'agee'; did you mean age.*--{option}"):
            load(Data(name, **{option: (column,)}))  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="is the column to predict"):
            load(Data(name, **{option: ("label",)}))  # type: ignore[arg-type]

    def test_npz_without_its_arrays(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", features=np.ones((2, 2)))
        assert "no array 'x', only features" in refused(tmp_path / "a.npz")
        np.savez(tmp_path / "b.npz", x=np.ones((2, 2)), y=np.zeros(3), client=np.zeros(3))
        assert "2 rows in 'x'" in refused(tmp_path / "b.npz")
        np.savez(tmp_path / "c.npz", x=np.ones((2, 2)), y=np.zeros(2))
        assert "no column 'client'" in refused(tmp_path / "c.npz")
        np.savez(tmp_path / "d.npz", x=np.array([["a"], ["b"]]), y=np.zeros(2), client=np.zeros(2))
        assert "not numbers" in refused(tmp_path / "d.npz")

    def test_no_official_split(self, tmp_path: Path) -> None:
        assert "no official test split" in refused(written(frame(), tmp_path / "a.csv"), holdout="official")

    def test_more_clients_than_samples(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="41 clients cannot share 40 samples"):
            load(Data(written(frame(), tmp_path / "a.csv"), "iid", clients=41))
