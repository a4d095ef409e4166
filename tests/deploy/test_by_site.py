"""Rows of a comparison are predicted by the method that it recommends to their site."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import forget_checksums

import fedkin as fk
from fedkin.deploy import Chooser, choose
from fedkin.deploy.by_site import predict_by_site

JOINED = ("Hospital 2", "Hospital 6")


@pytest.fixture(scope="module")
def folder(compared: fk.Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The comparison, as if it said that two hospitals should join, and that the others should stay alone."""
    folder = tmp_path_factory.mktemp("advice") / "copy"
    shutil.copytree(compared.folder, folder)
    forget_checksums(folder)
    summary = json.loads((folder / "summary.json").read_text())
    for site in summary["sites"]["sites"]:
        verdict = "join" if site["site"] in JOINED else "stay alone"
        site |= {"verdict": verdict, "method": "fedmcsa", "against": "local"}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def by_site(folder: Path, rows: pd.DataFrame | np.ndarray, seed: int | None = None) -> tuple[pd.DataFrame, list[str]]:
    told: list[str] = []
    return predict_by_site(Chooser(folder), rows, seed, told.append), told


def test_each_row_is_predicted_as_the_export_for_its_site(folder: Path, patients: pd.DataFrame) -> None:
    rows = patients[patients["hospital"] != "Hospital 12"].sample(frac=1, random_state=0).reset_index(drop=True)
    found, told = by_site(folder, rows)
    assert found.index.tolist() == rows.index.tolist()
    for site, mine in rows.groupby("hospital"):
        chosen = choose(folder, str(site))
        assert chosen.run.method == ("fedmcsa" if site in JOINED else "local")
        pd.testing.assert_frame_equal(found.loc[mine.index], fk.predict(chosen.run, mine, str(site)))
    assert told == [
        "Each site gets what the comparison recommends to it or, where that is unclear, the best there, with seed 0, "
        "the first of 2 runs:",
        "fedmcsa for Hospitals 2, 6",
        "local for 9 others",
    ]
    assert by_site(folder, rows, seed=1)[1][0].endswith("the best there:")
    one, said = by_site(folder, rows[rows["hospital"] == "Hospital 6"])
    assert said == [choose(folder, "Hospital 6").said]
    pd.testing.assert_frame_equal(one, found.loc[one.index])


def test_a_site_that_was_not_there_gets_the_best_common_model(folder: Path, patients: pd.DataFrame) -> None:
    rows = patients[patients["hospital"].isin(["Hospital 12", "Hospital 2"])].astype({"hospital": object})
    rows.loc[rows.index[-1], "hospital"] = None
    rows.index = rows.index * 0  # what the index says does not matter
    found, told = by_site(folder, rows)
    assert told[-1] == (
        "Not in the comparison, so judged by the common model of fedavg with seed 0, the first of 2 runs: "
        "Hospital 12, None."
    )
    new = (rows["hospital"] != "Hospital 2").to_numpy()
    fedavg, fedmcsa = choose(folder, method="fedavg").run, choose(folder, method="fedmcsa").run
    pd.testing.assert_frame_equal(found[new], fk.predict(fedavg, rows[new].drop(columns="hospital")))
    pd.testing.assert_frame_equal(found[~new], fk.predict(fedmcsa, rows[~new], "Hospital 2"))
    without, said = by_site(folder, rows.drop(columns="hospital"))
    assert said == [
        "The table has no column hospital, so all are judged by the common model of fedavg with seed 0, the first of "
        "2 runs."
    ]
    pd.testing.assert_frame_equal(without[new], found[new])
    assert by_site(folder, rows.head(0))[0].columns.tolist() == found.columns.tolist()


def test_without_any_common_model_only_known_sites_are_predicted(
    folder: Path, patients: pd.DataFrame, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "fedavg")
    rows = patients[patients["hospital"].isin(["Hospital 12", "Hospital 2"])]
    assert len(by_site(tmp_path / "copy", rows[rows["hospital"] == "Hospital 2"])[0])
    with pytest.raises(fk.BadInput, match=r"no client of the comparison: Hospital 12\. No method in this folder has a"):
        by_site(tmp_path / "copy", rows)
    with pytest.raises(fk.BadInput, match="No method in this folder has a common model; name a client"):
        by_site(tmp_path / "copy", rows.drop(columns="hospital"))


def test_arrays_get_the_best_common_model(tmp_path: Path) -> None:
    data = fk.Data("digits", clients=3)
    fk.compare(["fedavg", "fedmcsa"], data, "dnn:6", rounds=2, folder=tmp_path / "out", evaluate_every=2)
    run = fk.load_run(tmp_path / "out" / "fedavg")
    x = run.federation.x[:5].numpy()
    found, told = by_site(tmp_path / "out", x)
    assert told == ["The rows name no site, so all are judged by the common model of fedavg."]
    pd.testing.assert_frame_equal(found, fk.predict(run, x))
