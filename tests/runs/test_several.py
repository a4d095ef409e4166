"""Several runs of one method are read as one, with tables that say which run a row is of."""

from pathlib import Path

import pytest

import fedkin as fk


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> fk.Comparison:
    data = fk.Data("digits", clients=4)
    folder = tmp_path_factory.mktemp("compared") / "out"
    return fk.compare(["fedavg"], data, rounds=3, seeds=[10, 2], evaluate_every=2, folder=folder)


def test_the_folder_of_a_method_gives_all_its_runs(compared: fk.Comparison) -> None:
    runs = fk.load_run(compared.folder / "fedavg")
    assert isinstance(runs, fk.Runs)
    assert [run.seed for run in runs] == runs.seeds == [2, 10]
    assert runs.method == "fedavg"
    assert runs.summary["accuracy"] == compared.methods["fedavg"]["accuracy"]
    assert len(runs[:1]) == 1


def test_tables_of_several_runs_say_the_seed(compared: fk.Comparison) -> None:
    runs = fk.load_run(compared.folder / "fedavg")
    clients, rounds = runs.clients(), runs.rounds()
    assert clients["seed"].tolist() == [2] * 4 + [10] * 4
    assert clients["client"].tolist() == ["0", "1", "2", "3"] * 2
    assert (
        clients.loc[clients["seed"] == 10, "post"].tolist() == compared.runs["fedavg"][10].accuracies["post"].tolist()
    )
    assert rounds["seed"].tolist() == [2] * 3 + [10] * 3
    assert rounds["round"].tolist() == [1, 2, 3] * 2
    assert rounds["accuracy.post.macro"].isna().tolist() == [True, False, False] * 2
    assert "split" not in rounds


def test_tables_of_several_splits_say_the_split(tmp_path: Path) -> None:
    data = fk.Data("digits", clients=3)
    made = fk.compare(["fedavg"], data, rounds=1, seeds=1, splits=2, folder=tmp_path / "out")
    runs = fk.load(made.folder / "fedavg")
    assert runs.clients()["split"].tolist() == [0] * 3 + [1] * 3
    assert runs.rounds().columns[:2].tolist() == ["seed", "split"]
    assert [run.split for run in runs] == [0, 1]


def test_load_gives_what_the_folder_holds(compared: fk.Comparison) -> None:
    assert isinstance(fk.load(compared.folder), fk.Comparison)
    assert isinstance(fk.load(compared.folder / "fedavg"), fk.Runs)
    one = fk.load(compared.folder / "fedavg" / "seed-2")
    assert isinstance(one, fk.Run)
    assert one.rounds()["round"].tolist() == [line["round"] for line in one.lines] == [1, 2, 3]
    with pytest.raises(fk.BadInput, match=r"holds 2 methods; use fk\.load, or load one of them: fedavg, local"):
        fk.load_run(compared.folder)


def test_an_unfinished_run_is_refused(compared: fk.Comparison, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(compared.folder / "fedavg", tmp_path / "fedavg")
    (tmp_path / "fedavg" / "seed-2" / "summary.json").unlink()
    with pytest.raises(fk.BadInput, match="seed-2 is not finished"):
        fk.load(tmp_path / "fedavg")
