"""Every run records all metrics, of which one decides: verdicts, rankings, tables and the report go by it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import Until, forget_checksums, same_runs, tiny

import fedkin as fk
from fedkin import metrics
from fedkin.data.federation import Federation, Index
from fedkin.engines import Score, scoring
from fedkin.report import terminal
from fedkin.report.page import page
from fedkin.report.study import studied
from fedkin.runs import statistics
from fedkin.runs.imbalance import one_sided
from fedkin.runs.recorder import averages

NAMES = metrics.of_task("classify")
TEST = (30, 0, 11, 40, 1)


def experiment(federate: Any, **more: Any) -> fk.Experiment:
    fed = federate((9, 9, 16, 12, 7), test=TEST, common=25)
    return fk.Experiment(tiny(fk.methods.fedavg()), fed, "mlr", rounds=4, evaluate_every=2, threads=1, **more)


@pytest.mark.parametrize("held", [1, 400, 2**24])
@pytest.mark.parametrize("engine", ["stacked", "plain"])
def test_every_metric_of_every_client_is_that_of_its_predictions(
    federate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, held: int
) -> None:
    """In whatever blocks samples are looked at."""
    monkeypatch.setattr(scoring, "HELD", held)
    monkeypatch.setattr(metrics, "HELD", held)
    fk.run(experiment(federate, engine=engine), tmp_path)
    run = fk.Run(tmp_path)
    found = run.predictions
    assert found is not None
    assert set(run.measured) == set(NAMES)
    for name in NAMES:
        for kind in ("post", "global"):
            assert run.values(name, kind).shape == (2, 5)
            for client in range(5):
                mine = found["client"] == client
                by_hand = metrics.value(name, found[kind][mine], found["y"][mine]) if mine.any() else np.nan
                assert run.last(name)[kind][client] == pytest.approx(by_hand, abs=1e-5, nan_ok=True), (name, kind)


def test_lines_and_summary_have_all_metrics(federate: Any, tmp_path: Path) -> None:
    fk.run(experiment(federate, metric="auc"), tmp_path)
    run = fk.Run(tmp_path)
    line, summary = run.lines[-1], run.summary
    assert set(line["metrics"]) == set(NAMES) - {"accuracy"}
    relevant = ~np.array(run.about_clients["irrelevant"])
    for name, kinds in line["metrics"].items():
        values, count = run.last(name)["post"], np.array(TEST)
        known = ~np.isnan(values) & relevant
        assert kinds["post"]["macro"] == pytest.approx(values[known].mean())
        assert kinds["post"]["micro"] == pytest.approx(np.average(values[known], weights=count[known]))
        assert set(kinds) == {"post", "global", "test"}
        assert summary["metrics"][name]["post"]["macro"]["last"] == kinds["post"]["macro"]
    assert np.isnan(run.last("auc")["post"][4]), "one row has one class"
    assert summary["metric"] == run.metric == "auc"
    assert statistics.deciding(summary) == summary["metrics"]["auc"]
    assert summary["fairness"]["post"]["std_clients"] == pytest.approx(np.nanstd(run.last("auc")["post"][relevant]))
    low = [line["metrics"]["log_loss"]["post"]["macro"] for line in run.scored]
    assert summary["metrics"]["log_loss"]["post"]["macro"]["best"] == min(low), "of a loss the best is the lowest"
    table = run.clients()
    np.testing.assert_array_equal(table["post auc"], run.last("auc")["post"])
    np.testing.assert_array_equal(table["post"], run.accuracies["post"])
    assert "global log_loss" in table


def test_the_pooled_log_loss_is_the_loss(federate: Any) -> None:
    line = fk.run(experiment(federate)).lines[-1]
    for kind in ("post", "global", "test"):
        assert line["metrics"]["log_loss"][kind]["micro"] == pytest.approx(line["loss"][kind])


def test_the_metric_that_decides_may_change_and_nothing_else_does(federate: Any, tmp_path: Path) -> None:
    asked = experiment(federate, metric="auc")
    fk.run(asked, tmp_path / "whole")
    fk.run(replace(asked, metric=None), tmp_path / "part", callbacks=[Until(2)])
    fk.run(asked, tmp_path / "part", resume=True)
    same_runs(tmp_path / "whole", tmp_path / "part")
    other = fk.Run(tmp_path / "whole", metric="log_loss").summary
    assert other["metric"] == "log_loss"
    worst = fk.Run(tmp_path / "whole").last("log_loss")["post"]
    assert other["fairness"]["post"]["worst10"] == pytest.approx(np.nanmax(worst)), "the worst loss is the largest"


def test_averages_where_a_metric_is_not_defined_or_not_finite() -> None:
    values = {"auc": torch.tensor([0.5, torch.nan, 1.0]), "log_loss": torch.tensor([0.5, torch.nan, torch.inf])}
    values |= {"f1": torch.full((3,), torch.nan)}
    score = Score(torch.zeros(3), torch.zeros(3), torch.tensor([1, 5, 3]), values)
    assert averages(score, "auc") == {"macro": 0.75, "micro": pytest.approx((0.5 + 3) / 4)}
    assert averages(score, "log_loss") == {"macro": None, "micro": None}
    assert averages(score, "f1") == {"macro": None, "micro": None}


def test_a_folder_of_before_is_read(federate: Any, tmp_path: Path) -> None:
    """Its lines have no metrics, its summary has none, and its experiment does not know the field."""
    fk.run(experiment(federate), tmp_path)
    forget_checksums(tmp_path)
    run = fk.Run(tmp_path)
    accuracies = run.accuracies["post"]
    for name in NAMES[1:]:
        for path in tmp_path.glob(f"{name}-*.bin"):
            path.unlink()
    old = [{k: v for k, v in line.items() if k != "metrics"} for line in run.lines]
    (tmp_path / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    for name, gone in (("summary.json", ("metric", "metrics")), ("experiment.json", ("metric", "class_weights"))):
        stored = json.loads((tmp_path / name).read_text())
        (tmp_path / name).write_text(json.dumps({k: v for k, v in stored.items() if k not in gone}))
    (tmp_path / "predictions.safetensors").unlink()
    for path in (tmp_path / "checkpoints").glob("*.json"):
        about = json.loads(path.read_text())
        there = {name: (tmp_path / name).stat().st_size for name in about["lengths"] if (tmp_path / name).exists()}
        path.write_text(json.dumps(about | {"lengths": there}))
    before = fk.Run(tmp_path)
    assert before.metric == "accuracy"
    np.testing.assert_array_equal(before.last()["post"], accuracies)
    assert before.predictions is None
    assert "post auc" not in before.clients()
    assert "More than accuracy" not in page(studied(tmp_path))
    with pytest.raises(fk.BadInput, match="no ROC AUC: a version wrote it"):
        before.last("auc")
    fk.run(replace(experiment(federate), rounds=6), tmp_path, resume=True)
    assert fk.Run(tmp_path).last("auc")["post"].shape == (5,)


# verdicts and tables


def compared(federate: Any, folder: Path, metric: str | None, **more: Any) -> fk.Comparison:
    fed = federate((9, 9, 16, 12, 7), test=30)
    methods = [tiny(fk.methods.fedavg()), tiny(fk.methods.fedmcsa())]
    return fk.compare(methods, fed, rounds=4, folder=folder, metric=metric, warn=lambda _: None, **more)


def test_gains_and_verdicts_go_by_the_metric_and_positive_is_better(federate: Any, tmp_path: Path) -> None:
    found = compared(federate, tmp_path / "log", "log_loss")
    theirs, local = (found.runs[name][0].last("log_loss")["post"] for name in ("fedavg", "local"))
    relevant = np.arange(5) % 4 != 3
    np.testing.assert_allclose(found.gains()["fedavg"][relevant], (local - theirs)[relevant])
    assert found.verdicts["fedavg"]["gain"] == pytest.approx((local - theirs)[relevant].mean())
    assert found.metric == found.summary["metric"] == "log_loss"
    last = found.methods["fedavg"]["metrics"]["log_loss"]["post"]["macro"]["last"]
    assert found.table().loc["fedavg", "post macro"] == last
    accuracy = found.table("accuracy").loc["fedavg", "post macro"]
    assert accuracy == found.methods["fedavg"]["accuracy"]["post"]["macro"]["last"]
    again = fk.load_comparison(tmp_path / "log")
    assert again.table().equals(found.table())


def test_a_finished_comparison_can_be_decided_by_another_metric(federate: Any, tmp_path: Path) -> None:
    """Nothing is played again, for all metrics were recorded."""
    compared(federate, tmp_path / "one", None)
    before = (tmp_path / "one" / "fedavg" / "seed-0" / "rounds.jsonl").read_bytes()
    found = compared(federate, tmp_path / "one", "auc", resume=True)
    assert (tmp_path / "one" / "fedavg" / "seed-0" / "rounds.jsonl").read_bytes() == before
    straight = compared(federate, tmp_path / "two", "auc")
    assert found.verdicts == straight.verdicts
    assert found.methods["fedavg"]["fairness"] == straight.methods["fedavg"]["fairness"]
    assert studied(tmp_path / "one").metric.name == "auc"


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        (None, ("Accuracy over the rounds", "gain over alone, points", "percentage points")),
        ("auc", ("ROC AUC over the rounds", "gain over alone, points", "ROC AUC decides here")),
        (
            "log_loss",
            ("Log loss over the rounds", "gain over alone, log loss", "with the sign turned", "the lowest first"),
        ),
    ],
)
def test_page_and_terminal_show_the_metric(
    federate: Any, tmp_path: Path, metric: str | None, shown: tuple[str, ...]
) -> None:
    found = compared(federate, tmp_path / "here", metric)
    html = page(studied(tmp_path / "here"))
    for text in ("More than accuracy", "calibration error \u2193", *shown):
        assert text in html, text
    table = terminal.comparison_table(found.summary)
    label = metrics.METRICS[metric or "accuracy"]
    assert str(table.title).lower().startswith(label.label.lower() + (" in %" if label.percent else " after"))
    value = statistics.deciding(found.methods["fedavg"])["post"]["macro"]["last"]
    assert value is not None
    cells = list(table.columns[1].cells)
    assert cells[list(found.methods).index("fedavg")] == (f"{100 * value:.2f}" if label.percent else f"{value:.3f}")


def test_numbers_are_compared_and_shown(tmp_path: Path) -> None:
    """R2 and its gains over alone, as for accuracy; nothing on the page speaks of accuracy."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(120, 3))
    y = x @ [1.0, -2.0, 0.5] + draw.normal(size=120)
    rows = np.arange(120).reshape(4, 30)
    fed = Federation(
        "numbers",
        torch.from_numpy(x).float(),
        torch.from_numpy(y).float(),
        1,
        Index.of(list(rows[:, :10])),
        Index.of(list(rows[:, 10:])),
        task="regress",
    )
    methods = [tiny(fk.methods.fedavg(), eta=0.01), tiny(fk.methods.fedacs(), eta=0.01)]
    found = fk.compare(methods, fed, rounds=6, folder=tmp_path, warn=lambda _: None)
    r2 = {name: found.runs[name][0].last()["post"] for name in found.runs}
    assert found.verdicts["fedavg"]["gain"] == pytest.approx((r2["fedavg"] - r2["local"]).mean())
    html = page(studied(tmp_path))
    assert "R2 over the rounds" in html
    assert "All metrics" in html
    assert "in the target&#x27;s own unit" in html
    assert "ccuracy after" not in html
    assert str(terminal.comparison_table(found.summary).title).startswith("R2 after")
    assert terminal.accuracy_table(found.methods["fedavg"]).title is not None
    assert found.methods["fedavg"]["accuracy"] == {}


# one class outweighs the others


def test_a_caution_where_one_class_outweighs_the_others() -> None:
    names, labels = ["Basel", "Geneva", "Zurich"], ["healthy", "disease"]
    even = np.array([[5, 5], [6, 4], [2, 8]])
    assert one_sided(even, names, labels, None) == [], "80 % is not more than 80 %"
    whole = one_sided(np.array([[9, 1], [9, 1], [9, 1]]), names, labels, None)
    assert whole == [
        "90 % of all training rows are 'healthy': accuracy flatters there; try --metric balanced_accuracy or auc."
    ]
    some = np.array([[10, 10], [1, 13], [10, 10]])
    (one,) = one_sided(some, names, labels, None)
    assert one.startswith("93 % of the training rows of Geneva are 'disease': accuracy flatters")
    assert one_sided(some, names, labels, "accuracy") == [], "a choice needs no word"
    (two,) = one_sided(np.array([[0, 0], [1, 19], [19, 1]]), names, (), None)
    assert "rows of Geneva are of class 1, and 1 more of 2 clients" in two
    few = np.concatenate([np.full((19, 2), 5), [[1, 19]]])
    assert one_sided(few, [str(i) for i in range(20)], (), None) == [], "one client of twenty"


def test_the_caution_reaches_the_user_and_the_report(federate: Any, tmp_path: Path) -> None:
    fed = federate((9, 9, 16), test=10, classes=2)
    fed = replace(fed, y=torch.where(torch.arange(len(fed.y)) % 10 == 0, 1, 0), labels=("well", "ill"))
    said: list[str] = []
    methods = [tiny(fk.methods.fedavg())]
    found = fk.compare(methods, fed, rounds=2, folder=tmp_path / "a", warn=said.append)
    assert any("are 'well': accuracy flatters" in text for text in said)
    assert any("accuracy flatters" in text for text in found.summary["cautions"])
    said.clear()
    found = fk.compare(methods, fed, rounds=2, folder=tmp_path / "b", warn=said.append, metric="balanced_accuracy")
    assert not any("flatters" in text for text in [*said, *found.summary["cautions"]])


def test_the_command_line(fedkin: Any, tmp_path: Path) -> None:
    some = ["--data", "digits", "--clients", "4", "--rounds", "2", "--evaluate-every", "1"]
    code, out, err = fedkin(
        "compare", "fedavg", *some, "--metric", "log_loss", "--class-weights", "balanced", "--out", "a"
    )
    assert code == 0, err
    assert "Log loss after 2 rounds" in out
    assert "log loss, micro post" in err
    code, _, err = fedkin("run", "fedavg", *some, "--metric", "acuracy")
    assert code == 2
    assert "There is no metric called 'acuracy'; did you mean accuracy" in err
    code, _, err = fedkin("run", "fedavg", *some, "--metric", "rmse")
    assert code == 2
    assert "classes, which have no RMSE; use --metric accuracy, balanced_accuracy" in err
