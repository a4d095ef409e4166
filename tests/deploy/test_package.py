"""An exported model predicts in a process that has no fedkin, as fedkin itself does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from alone import script, scripts

import fedkin as fk
from fedkin.deploy.prediction import outputs
from fedkin.deploy.reading import read_rows


def predicted(folder: Path, file: Path) -> pd.DataFrame:
    found = script(folder / "predict.py", file, folder / "out.csv")
    assert found.returncode == 0, found.stderr
    return pd.read_csv(folder / "out.csv")


def test_the_process_of_these_tests_has_no_fedkin(tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text("import fedkin")
    assert "fedkin is not here" in script(tmp_path / "it.py").stderr


@pytest.mark.parametrize("method", ["fedavg", "fedmcsa"])
def test_the_script_says_what_the_run_was_judged_by(
    compared: fk.Comparison, method: str, rows_of, tmp_path: Path
) -> None:
    run = fk.load_run(compared.folder / method / "seed-0")
    rows = rows_of("Hospital 7")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    folder = fk.export(run, tmp_path / "model", "Hospital 7")
    found = predicted(folder, tmp_path / "rows.csv")
    stored = run.predictions
    logits = stored["post"][stored["client"] == run.number("Hospital 7")]
    chance = torch.from_numpy(logits).softmax(1).numpy()
    assert found.columns.tolist() == ["row", "prediction", "probability readmitted", "probability recovered"]
    np.testing.assert_allclose(found.iloc[:, 2:].to_numpy(), chance, atol=1e-5)
    right = (found["prediction"].to_numpy() == rows["outcome"].to_numpy()).mean()
    assert right == pytest.approx(run.accuracies["post"][run.number("Hospital 7")])
    ours = fk.predict(run, rows, "Hospital 7")
    assert ours["prediction"].tolist() == found["prediction"].tolist()
    np.testing.assert_allclose(ours.iloc[:, 1:].to_numpy(), found.iloc[:, 2:].to_numpy(), atol=1e-6)


def test_odd_rows_are_predicted_as_fedkin_does(fedavg: fk.Run, rows_of, tmp_path: Path) -> None:
    """Values of every odd kind: missing ones in all spellings, unseen categories, text where a number should be."""
    rows = rows_of("Hospital 3").head(8).astype(object).drop(columns=["outcome", "hospital"])
    rows.iloc[0, rows.columns.get_loc("albumin")] = "n/a"
    rows.iloc[1, rows.columns.get_loc("ward")] = "a ward of tomorrow"
    rows.iloc[2, rows.columns.get_loc("ward")] = "?"
    rows.iloc[3, rows.columns.get_loc("admitted")] = "soon"
    rows.iloc[4, rows.columns.get_loc("age")] = "old"
    rows.iloc[5, rows.columns.get_loc("emergency")] = None
    rows.iloc[6, rows.columns.get_loc("smoker")] = "  yes "
    rows["new"] = 3
    rows.to_csv(tmp_path / "rows.csv", index=False, sep=";")
    found = predicted(fk.export(fedavg, tmp_path / "model", "Hospital 3"), tmp_path / "rows.csv")
    ours = fk.predict(fedavg, rows, "Hospital 3")
    np.testing.assert_allclose(ours.iloc[:, 1:].to_numpy(), found.iloc[:, 2:].to_numpy(), atol=1e-6)
    assert len(set(found["probability recovered"].round(6))) == 8


def test_decimal_commas_are_read_as_fedkin_does(fedavg: fk.Run, rows_of, tmp_path: Path) -> None:
    rows = rows_of("Hospital 3").drop(columns=["outcome", "hospital"])
    rows.to_csv(tmp_path / "points.csv", index=False)
    rows.to_csv(tmp_path / "commas.csv", index=False, sep=";", decimal=",")
    folder = fk.export(fedavg, tmp_path / "model", "Hospital 3")
    points, commas = (predicted(folder, tmp_path / name) for name in ("points.csv", "commas.csv"))
    pd.testing.assert_frame_equal(points, commas)
    ours = fk.predict(fedavg, read_rows(fedavg, tmp_path / "commas.csv"), "Hospital 3")
    np.testing.assert_allclose(ours.iloc[:, 1:].to_numpy(), commas.iloc[:, 2:].to_numpy(), atol=1e-6)


def test_a_missing_column_is_named(fedavg: fk.Run, rows_of, tmp_path: Path) -> None:
    rows_of("Hospital 3").drop(columns=["age", "ward"]).to_csv(tmp_path / "rows.csv", index=False)
    found = script(fk.export(fedavg, tmp_path / "model", "Hospital 3") / "predict.py", tmp_path / "rows.csv")
    assert found.returncode == 1
    assert found.stderr.strip() == "The table lacks the column age, ward."


def refused(folder: Path, *several: tuple[object, ...]) -> list[str]:
    """The sentences with which predict.py ends, given these words."""
    found = scripts(folder / "predict.py", [(), *several])
    assert "Traceback" not in found.stderr
    assert found.stdout == ""
    return found.stderr.strip().splitlines()


def test_what_the_script_cannot_read_is_one_sentence(fedavg: fk.Run, tmp_path: Path) -> None:
    folder, picture = fk.export(fedavg, tmp_path / "model", "Hospital 3"), tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    usage, missing, unreadable = refused(folder, (tmp_path / "no.csv",), (picture,))
    assert usage.endswith("python predict.py rows.csv [predictions.csv]")
    assert missing == f"There is no file {tmp_path / 'no.csv'}."
    assert unreadable.startswith(f"{picture} cannot be read as a CSV table in UTF-8: ")
    code = [line for line in (folder / "predict.py").read_text().splitlines() if line and not line.startswith('"""')]
    assert len(code) <= 10


def test_what_the_script_of_arrays_cannot_read_is_one_sentence(tmp_path: Path) -> None:
    made = fk.Experiment(fk.methods.fedavg(count=2), fk.Data("digits", clients=2), "dnn:4", rounds=1)
    folder, picture = fk.export(fk.run(made), tmp_path / "model"), tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    np.savez(tmp_path / "y.npz", y=np.zeros(3))
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 2)))
    torch.save([1, 2], tmp_path / "list.pt")
    files = ("no.npz", "a.png", "y.npz", "list.pt", "x.npz")
    usage, missing, *unreadable, shape = refused(folder, *((tmp_path / file,) for file in files))
    assert "python predict.py" in usage
    assert missing == f"There is no file {tmp_path / 'no.npz'}."
    assert len(unreadable) == 3
    for file, said in zip(files[1:], unreadable, strict=False):
        assert said.startswith(f"{tmp_path / file} cannot be read: give an .npz"), file
    assert shape.startswith("The samples are of shape [2], but the network takes")
    alone = script(folder / "predict.py", tmp_path / "no.npz")
    assert (alone.returncode, alone.stderr.strip()) == (1, missing)


def test_a_place_that_cannot_be_written_is_one_sentence(fedavg: fk.Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for place in (Path("/proc/x"), tmp_path / "file" / "model", tmp_path / ("long" * 100)):
        with pytest.raises(fk.BadInput, match=r"cannot be written: .*; choose another -o\.$"):
            fk.export(fedavg, place, "Hospital 3")


def test_nothing_of_other_sites_is_exported(fedavg: fk.Run, tmp_path: Path) -> None:
    folder = fk.export(fedavg, tmp_path / "model", "Hospital 7")
    how = json.loads((folder / "preparation.json").read_text())
    assert list(how["sites"]) == ["Hospital 7"]
    assert "all" not in how
    assert how["sites"]["Hospital 7"] == fedavg.preparation["sites"]["Hospital 7"]
    texts = "".join(path.read_text() for path in folder.iterdir() if path.suffix in (".json", ".md", ".py"))
    others = [name for name in fedavg.about_clients["names"] if name != "Hospital 7"]
    assert not [name for name in others if f'{name}"' in texts or f"{name} " in texts]
    for name in others:
        for number in fedavg.preparation["sites"][name]["scale"]:
            assert len(repr(number)) < 10 or repr(number) not in texts  # short ones, as 1.0 and 0.5, many sites have


def test_the_common_model_and_its_card(fedavg: fk.Run, rows_of, tmp_path: Path) -> None:
    rows = rows_of("Hospital 2")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    folder = fk.export(fedavg, tmp_path / "model")
    found = predicted(folder, tmp_path / "rows.csv")
    ours = fk.predict(fedavg, rows.drop(columns="hospital"))
    np.testing.assert_allclose(ours.iloc[:, 1:].to_numpy(), found.iloc[:, 2:].to_numpy(), atol=1e-6)
    card = (folder / "README.md").read_text()
    assert card.startswith("# Common model of all clients")
    assert str(Path(fedavg.experiment["data"]["name"]).parent) not in card + (folder / "model.json").read_text()
    mine = (fk.export(fedavg, tmp_path / "mine", "Hospital 2") / "README.md").read_text()
    k = fedavg.number("Hospital 2")
    count = fedavg.about_clients["test"][k]
    score = f"| accuracy | {fedavg.accuracies['post'][k]:.4f} | {fedavg.accuracies['global'][k]:.4f} |"
    for words in (
        "fine-tuned",
        f"Scores on {count} test rows",
        score,
        "4 rounds, seed 0",
        "readmitted, recovered",
        "SGD(",
    ):
        assert words in mine, words


def test_a_folder_is_written_whole_and_only_over_an_export(
    fedavg: fk.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    fk.export(fedavg, mine, "Hospital 1")  # an empty folder is nobody's
    (mine / "out.csv").write_text("of the last time")
    fk.export(fedavg, mine, "Hospital 2")
    assert not (mine / "out.csv").exists()
    assert json.loads((mine / "model.json").read_text())["client"] == "Hospital 2"
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    with pytest.raises(fk.BadInput, match="not written by fedkin export"):
        fk.export(fedavg, other, "Hospital 1")
    assert (other / "thesis.tex").read_text() == "years of work"

    def fails(*_: object) -> str:
        raise OSError("the disk is full")

    monkeypatch.setattr("fedkin.deploy.package.card", fails)
    for name in ("mine", "fresh"):
        with pytest.raises(OSError, match="full"):
            fk.export(fedavg, tmp_path / name, "Hospital 3")
    assert json.loads((mine / "model.json").read_text())["client"] == "Hospital 2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "other"]


def test_numbers_are_predicted_in_their_own_unit(patients: pd.DataFrame, tmp_path: Path) -> None:
    table = patients[patients["hospital"].isin(["Hospital 1", "Hospital 2", "Hospital 3"])].reset_index(drop=True)
    draw = np.random.default_rng(0)
    table["days"] = (20 + 0.3 * table["age"] + draw.normal(0, 1, len(table))).round(2)
    table = table.drop(columns="outcome")
    table.to_csv(tmp_path / "t.csv", index=False)
    data = fk.Data(str(tmp_path / "t.csv"), client="hospital", target="days", task="regress")
    fk.run(fk.Experiment(fk.methods.fedavg(count=3, eta=0.05), data, rounds=20, evaluate_every=20), tmp_path / "run")
    run = fk.load_run(tmp_path / "run")
    k = run.number("Hospital 2")
    rows = table.iloc[run.federation.test[k].tolist()]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    folder = fk.export(run, tmp_path / "model", "Hospital 2")
    found = predicted(folder, tmp_path / "rows.csv")["prediction"].to_numpy()
    np.testing.assert_allclose(found, fk.predict(run, rows, "Hospital 2")["prediction"], rtol=1e-5)
    error = np.sqrt(((found - rows["days"].to_numpy()) ** 2).mean())
    assert error == pytest.approx(run.last("rmse")["post"][k], rel=1e-3)
    assert abs(found.mean() - rows["days"].mean()) < 5
    card = (folder / "README.md").read_text()
    assert "Predicts the value of `days`, in its own unit." in card
    assert f"| RMSE | {run.last('rmse')['post'][k]:.4f} |" in card
    new = patients[patients["hospital"] == "Hospital 9"].copy()
    new["days"] = (20 + 0.3 * new["age"] + draw.normal(0, 1, len(new))).round(2)
    joined = fk.join(run, new.drop(columns="outcome"), "Hospital 9", splits=2)
    assert joined.metric == "r2"
    assert " in R2 over alone" in joined.sentence
    for option, score in joined.scores.items():
        assert score > 0.2, option


def test_two_networks_in_one_are_exported(tmp_path: Path) -> None:
    made = fk.methods.apfl(count=3)
    method = replace(made, train=replace(made.train, mix="output"))
    run = fk.run(
        fk.Experiment(method, fk.Data("digits", clients=3), "dnn:6", rounds=2, evaluate_every=2), tmp_path / "run"
    )
    folder = fk.export(fk.load_run(tmp_path / "run"), tmp_path / "model", "1")
    x = run.federation.x[run.federation.test[1]]
    np.savez(tmp_path / "x.npz", x=x.numpy())
    found = predicted(folder, tmp_path / "x.npz")
    stored = run.predictions
    chance = torch.from_numpy(stored["post"][stored["client"] == 1]).softmax(1).numpy()
    np.testing.assert_allclose(found.iloc[:, 2:].to_numpy(), chance, atol=1e-5)
    assert not (folder / "preparation.json").exists()


def test_a_network_handed_in_and_its_numbers(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    clients = {name: (torch.randn(30, 1, 6, 6), torch.randint(0, 3, (30,))) for name in ("north", "south")}
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32, 3))
    fk.run(fk.Experiment(fk.methods.fedavg(count=2), fk.from_clients(clients), module, rounds=1), tmp_path / "run")
    saved = fk.load_run(tmp_path / "run")
    with pytest.raises(fk.BadInput, match="handed to it"):
        fk.export(saved, tmp_path / "model", "north")
    folder = fk.export(saved, tmp_path / "model", "north", module)
    wanted = saved.personal("north")
    assert all(torch.equal(value, wanted[name]) for name, value in load_file(folder / "model.safetensors").items())
    torch.save({"x": clients["north"][0][:5]}, tmp_path / "x.pt")
    found = predicted(folder, tmp_path / "x.pt")
    said = torch.from_numpy(outputs(saved.model("north", module), clients["north"][0][:5])).softmax(1)
    np.testing.assert_allclose(found.iloc[:, 2:].to_numpy(), said.numpy(), atol=1e-5)


def test_a_network_that_torch_cannot_export_is_refused(tmp_path: Path) -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(torch.from_numpy(x.numpy() * 1))

    clients = {"a": (torch.randn(20, 4), torch.randint(0, 2, (20,)))}
    run = fk.run(fk.Experiment(fk.methods.fedavg(count=1), fk.from_clients(clients), torch.nn.Linear(4, 2), rounds=1))
    module = Odd()
    run.models["personal"] = {f"inner.{name}": value for name, value in run.models["personal"].items()}
    with pytest.raises(fk.BadInput, match=r"torch\.export cannot take the network Odd"):
        fk.export(run, tmp_path / "model", "a", module)
    assert not (tmp_path / "model").exists()
