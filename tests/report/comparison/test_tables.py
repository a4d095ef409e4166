"""The tables have the numbers of the summaries, and the curves those of the rounds."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.report import page
from fedkin.report.formats import percent, points, size
from fedkin.report.study import Study, studied
from fedkin.report.terminal import accuracy_table
from fedkin.runs import statistics
from fedkin.runs.folder import RunFolder


def cells(text: str, table: str) -> dict[str, list[str]]:
    """The cells of a table of the page, by the name of the row."""
    body = text[text.index(f'<table id="{table}"') :].split("<tbody>")[1].split("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("</tr>")]
    plain = [[unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in rows if row]
    return {head: rest for head, *rest in plain}


def test_every_number_of_the_summary_is_on_the_page(read: Any, made: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = made
    found = read(folder)
    assert list(summary["methods"]) == ["local", "fedavg", "<i>prox"]
    for name, method in summary["methods"].items():
        assert name in found.text
        assert f"{method['cost']['uploads']:,.0f}" in found.text
        for kind, averages in method["accuracy"].items():
            for average, values in averages.items():
                for statistic in ("last", "last10", "best"):
                    spread = method["spread"][kind][average][statistic]
                    assert percent(values[statistic], spread) in found.text, (name, kind, average, statistic)
        for value in [*method["fairness"]["post"].values(), *method["stability"].values()]:
            assert percent(value) in found.text
    for verdict in summary["against_local"].values():
        better, worse = (f"{100 * verdict[word]:.0f} %" for word in ("better", "worse"))
        assert f"{better} of the clients are better off than alone, {worse} worse off" in found.text
        assert f"the mean gain is {points(verdict['gain'])} points" in found.text


def test_costs_are_in_client_rounds_models_and_bytes(compared: Any, tmp_path: Path) -> None:
    """SCAFFOLD sends a control variate beside each model: twice the traffic, the same number of client-rounds. Active
    FL sends every client a model before the first round."""
    methods = [fk.methods.fedavg(count=3), fk.methods.scaffold(count=3), fk.methods.active(fraction=3 / 8)]
    compared(tmp_path, with_local(methods), [0, 1])
    study = studied(tmp_path)
    text = page.page(study)
    found = cells(text, "costs")
    numbers = study.experiment["resolved"]["parameters"]
    once, twice = size(12 * 4 * numbers), size(24 * 4 * numbers)
    assert found["local"][:5] == ["0", "0", "0", "0 B", "0 B"]
    assert found["fedavg"][:5] == ["12", "12", "12", once, once]
    assert found["scaffold"][:5] == ["12", "24", "24", twice, twice]
    assert found["active"][:5] == ["12", "12", "20", once, size(20 * 4 * numbers)]
    assert "with scaffold more than one model a client and round" in text
    seeds = [run.summary for run in study.entries["fedavg"].runs]
    steady = [percent(np.mean([s["stability"][kind] for s in seeds])) for kind in ("post", "global")]
    fair = [percent(np.mean([s["fairness"]["post"][word] for s in seeds])) for word in ("std_clients", "worst10")]
    peak = [size(np.mean([s["memory"][word] for s in seeds])) for word in ("measured", "estimated")]
    assert found["fedavg"][6:] == [*peak, *steady, *fair]
    assert found["local"][9] == "-"
    assert "of 2 scored rounds, 2 to 4" in text


def test_runs_of_before_have_their_client_rounds_counted(trio: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their summaries have none, and no mean of them either."""
    new, read = trio.runs[0].summary, RunFolder.summary

    def old(folder: RunFolder) -> dict[str, Any]:
        summary = read(folder)
        return summary | {"cost": {name: value for name, value in summary["cost"].items() if name != "client_rounds"}}

    monkeypatch.setattr(RunFolder, "summary", old)
    assert cells(page.page(studied(trio.folder)), "costs")["fedavg"][0] == "16"
    before = old(trio.runs[1].files)
    assert "client_rounds" not in statistics.merged([new, before])["cost"]
    assert "client-rounds" not in str(accuracy_table(statistics.merged([before])).caption)
    new["cost"]["client_rounds"] = 3
    assert str(accuracy_table(statistics.merged([new])).caption).startswith("3 client-rounds (the papers' cost); ")


def test_curves_are_means_over_seeds_within_their_band(read: Any, trio: Study) -> None:
    data = read(trio).figures["curves"]["data"]
    traces = [t for t in data if t["meta"] == "global/micro" and t["legendgroup"] == "fedavg"]
    low, high, line = traces
    runs = [run.lines for run in trio.entries["fedavg"].runs]
    values = np.array([[r["accuracy"]["global"]["micro"] for r in run if "accuracy" in r] for run in runs]) * 100
    assert line["x"] == [2, 4]
    np.testing.assert_allclose(line["y"], values.mean(0))
    np.testing.assert_allclose(low["y"], values.min(0))
    np.testing.assert_allclose(high["y"], values.max(0))
    shown = {t["meta"] for t in data if t["visible"]}
    assert shown == {"post/macro"}
    assert not any(t["legendgroup"] == "local" and t["meta"].startswith("global") for t in data)


def test_selections_are_shares_of_rounds(read: Any, trio: Study) -> None:
    found = read(trio)
    traces = {trace["name"]: trace for trace in found.figures["selected"]["data"]}
    assert set(traces) == {"fedavg", "&lt;i&gt;prox"}
    ids = np.concatenate([np.concatenate(run.selected) for run in trio.entries["fedavg"].runs])
    np.testing.assert_allclose(traces["fedavg"]["y"], np.sort(np.bincount(ids, minlength=8))[::-1] / 8 * 100)
    assert "local: every client in every round" in found.text
    assert "A client trains in 50 % of the rounds here, alone in all of them." in found.text
