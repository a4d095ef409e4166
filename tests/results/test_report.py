"""The page says what the summaries say, calls a win only what was tested, and loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fedkin.results.table import accuracy_table, percent

import fedkin as fk
from fedkin import compare
from fedkin.results import charts, report, words
from fedkin.runs import files, metrics

go = pytest.importorskip("plotly.graph_objects")

ODD = "<b>&\"ward' 7</b></script>"


def federation(n: int = 8) -> fk.Federation:
    """Clients that share one task, with 12 to 68 samples; the first has a name that must be escaped."""
    gen = np.random.default_rng(0)
    weights = gen.normal(size=(5, 3))
    clients = {}
    for i in range(n):
        x = gen.normal(size=(12 + 8 * i, 5)).astype(np.float32)
        clients[ODD if i == 0 else f"clinic {i}"] = (x, (x @ weights).argmax(1))
    return fk.from_clients(clients, name="clinics")


def compared(
    folder: Path, methods: list[fk.Method], seeds: list[int], stop: tuple[str, int] | None = None, rounds: int = 4
) -> None:
    """A comparison as the command line makes it; with `stop` that method's seed ends after round 2, and all after it
    are not begun."""
    fed = federation()
    experiment = fk.Experiment(methods[0], fed, rounds=rounds, evaluate_every=2)
    plan = compare.arms(experiment, methods, seeds, folder)
    compare.write_plan(folder, plan)

    def listener(arm: compare.Arm, *_: int) -> Any:
        return (lambda tick: tick.round < 2) if (arm.experiment.method.name, arm.experiment.seed) == stop else None

    if compare.play(plan, fed, listener=listener):
        compare.summarised(folder, plan)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Local, FedAvg of four a round and FedProx under a name that must be escaped; two seeds."""
    folder = tmp_path_factory.mktemp("runs") / "trio"
    fedavg, fedprox = fk.methods.fedavg(count=4), fk.methods.fedprox(count=4)
    compared(folder, compare.with_local([fedavg, replace(fedprox, name="<i>prox")]), [0, 1])
    return folder


@pytest.fixture
def trio(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(made, tmp_path / "trio"))


class Page(HTMLParser):
    """The tags of a page with their attributes, the text outside of scripts and styles, and the table's cells."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.inside: list[str] = []
        self.scripts: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style", "h1"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside[-1:] == ["script"]:
            name = self.tags[-1][1].get("id") or f"script {len(self.tags)}"
            self.scripts[name] = self.scripts.get(name, "") + data
        elif self.inside[-1:] != ["style"]:
            self.words.append(data)
            if self.inside[-1:] == ["h1"]:
                self.scripts["h1"] = data

    @property
    def text(self) -> str:
        return " ".join(self.words).replace("\u00a0", " ")

    @property
    def headline(self) -> str:
        return self.scripts["h1"]

    @property
    def figures(self) -> dict[str, Any]:
        return dict(json.loads(self.scripts["figures"]))


def written(folder: Path) -> Page:
    path = report.write(folder)
    assert path == folder / "report.html"
    assert not list(folder.glob(".*part"))
    return Page(path.read_text())


def verdicts(folder: Path, **words: str) -> None:
    """Change the stored verdicts."""
    summary = files.read_json(folder / "summary.json")
    for name in summary["against_local"]:
        summary["against_local"][name]["verdict"] = words.get(name, words.get("others"))
    files.write_json(folder / "summary.json", summary)


def test_every_number_of_the_summary_is_on_the_page(trio: Path) -> None:
    page = written(trio)
    summary = files.read_json(trio / "summary.json")
    assert list(summary["methods"]) == ["local", "fedavg", "<i>prox"]
    for name, method in summary["methods"].items():
        assert name in page.text
        assert f"{method['cost']['uploads']:,.0f}" in page.text
        for kind, averages in method["accuracy"].items():
            for average, values in averages.items():
                for statistic in ("last", "last10", "best"):
                    spread = method["spread"][kind][average][statistic]
                    assert percent(values[statistic], spread) in page.text, (name, kind, average, statistic)
        for value in [*method["fairness"]["post"].values(), *method["stability"].values()]:
            assert percent(value) in page.text
    for found in summary["against_local"].values():
        better, worse = (f"{100 * found[word]:.0f} %" for word in ("better", "worse"))
        assert f"{better} of the clients are better off than alone, {worse} worse off" in page.text
        assert f"the mean gain is {words.points(found['gain'])} points" in page.text


def cells(text: str, table: str) -> dict[str, list[str]]:
    """The cells of a table of the page, by the name of the row."""
    body = text[text.index(f'<table id="{table}"') :].split("<tbody>")[1].split("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("</tr>")]
    plain = [[unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in rows if row]
    return {head: rest for head, *rest in plain}


def test_costs_are_in_client_rounds_models_and_bytes(tmp_path: Path) -> None:
    """SCAFFOLD sends a control variate beside each model: twice the traffic, the same number of client-rounds. Active
    FL sends every client a model before the first round."""
    methods = [fk.methods.fedavg(count=3), fk.methods.scaffold(count=3), fk.methods.active(fraction=3 / 8)]
    compared(tmp_path, compare.with_local(methods), [0, 1])
    text = report.write(tmp_path).read_text()
    found = cells(text, "costs")
    numbers = files.read_json(tmp_path / "fedavg" / "seed-0" / "experiment.json")["resolved"]["parameters"]
    once, twice = words.size(12 * 4 * numbers), words.size(24 * 4 * numbers)
    assert found["local"][:5] == ["0", "0", "0", "0 B", "0 B"]
    assert found["fedavg"][:5] == ["12", "12", "12", once, once]
    assert found["scaffold"][:5] == ["12", "24", "24", twice, twice]
    assert found["active"][:5] == ["12", "12", "20", once, words.size(20 * 4 * numbers)]
    assert "with scaffold more than one model a client and round" in text
    seeds = [files.read_json(tmp_path / "fedavg" / f"seed-{seed}" / "summary.json") for seed in (0, 1)]
    steady = [percent(np.mean([s["stability"][kind] for s in seeds])) for kind in ("post", "global")]
    fair = [percent(np.mean([s["fairness"]["post"][word] for s in seeds])) for word in ("std_clients", "worst10")]
    assert found["fedavg"][6:] == [*steady, *fair]
    assert found["local"][7] == "-"
    assert "of 2 scored rounds, 2 to 4" in text


def test_runs_of_before_have_their_client_rounds_counted(trio: Path) -> None:
    """Their summaries have none, and no mean of them either."""
    for path in trio.glob("*/seed-*/summary.json"):
        summary = files.read_json(path)
        del summary["cost"]["client_rounds"]
        files.write_json(path, summary)
    assert cells(report.write(trio).read_text(), "costs")["fedavg"][0] == "16"
    old, new = (files.read_json(path / "seed-0" / "summary.json") for path in (trio / "fedavg", trio / "local"))
    new["cost"]["client_rounds"] = 3
    assert "client_rounds" not in metrics.merged([new, old])["cost"]
    assert "client-rounds" not in str(accuracy_table(metrics.merged([old])).caption)
    assert str(accuracy_table(metrics.merged([new])).caption).startswith("3 client-rounds (the papers' cost); ")


def test_the_page_is_whole_and_loads_nothing(trio: Path) -> None:
    text = report.write(trio).read_text()
    page = Page(text)
    assert text.count("plotly.js v") == 1
    assert sum(len(script) > 1_000_000 for script in page.scripts.values()) == 1
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed"), tag
        assert not {"src", "href", "srcset"} & attributes.keys(), (tag, attributes)
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_names_are_escaped_everywhere(trio: Path) -> None:
    text = report.write(trio).read_text()
    page = Page(text)
    assert ODD in page.text
    assert "<i>prox" in page.text
    assert ODD not in text
    assert "<i>prox" not in text
    assert not any(tag == "b" and attributes != {"class": "win"} for tag, attributes in page.tags)
    assert "<" not in text[text.index('id="figures">') + len('id="figures">') :].split("</script>")[0]
    hovers = page.figures["bars-0"]["data"][0]["hovertext"]
    found = [hover for hover in hovers if "ward" in hover]
    assert len(found) == 1
    assert found[0].count("<b>") == 1
    assert ODD in unescape(found[0])
    legend = [trace["name"] for trace in page.figures["curves"]["data"] if "name" in trace]
    assert "&lt;i&gt;prox" in legend
    assert "<i>prox" not in legend


def test_figures_are_valid_and_each_has_its_place(trio: Path) -> None:
    page = written(trio)
    charted = [a for tag, a in page.tags if tag == "div" and a.get("class") == "chart"]
    assert all(a["role"] == "img" and a["aria-label"] for a in charted)
    places = [a["id"] for a in charted]
    assert places == ["curves", "bars-0", "sizes-0", "bars-1", "sizes-1", "selected", "attended-map"]
    assert {*page.figures, "attended-map"} == set(places)  # that one is drawn from what is stored apart
    for figure in page.figures.values():
        go.Figure(figure)  # raises on an unknown property


def test_curves_are_means_over_seeds_within_their_band(trio: Path) -> None:
    data = written(trio).figures["curves"]["data"]
    traces = [t for t in data if t["meta"] == "global/micro" and t["legendgroup"] == "fedavg"]
    low, high, line = traces
    runs = [compare.Run(trio / "fedavg" / f"seed-{seed}").rounds() for seed in (0, 1)]
    values = np.array([[r["accuracy"]["global"]["micro"] for r in run if "accuracy" in r] for run in runs]) * 100
    assert line["x"] == [2, 4]
    np.testing.assert_allclose(line["y"], values.mean(0))
    np.testing.assert_allclose(low["y"], values.min(0))
    np.testing.assert_allclose(high["y"], values.max(0))
    shown = {t["meta"] for t in data if t["visible"]}
    assert shown == {"post/macro"}
    assert not any(t["legendgroup"] == "local" and t["meta"].startswith("global") for t in data)


def test_gains_are_post_minus_local_with_names_and_sizes(trio: Path) -> None:
    page = written(trio)
    bars, dots = (page.figures[name]["data"][0] for name in ("bars-0", "sizes-0"))
    expected = 100 * np.mean([compare.gain(trio, seed, "fedavg") for seed in (0, 1)], axis=0)
    np.testing.assert_allclose(bars["y"], np.sort(expected), atol=1e-8)
    np.testing.assert_allclose(dots["y"], expected, atol=1e-8)
    stored = files.read_json(trio / "fedavg" / "seed-0" / "clients.json")
    assert dots["x"] == stored["train"]
    for name, size, text in zip(stored["names"], dots["x"], dots["hovertext"], strict=True):
        assert name in unescape(text)
        assert f"<br>{size:,} training samples<br>" in text
    few, many = expected[:2].mean() / 100, expected[-2:].mean() / 100
    assert f"has a mean gain of {words.points(few)} points" in page.text
    assert f"of {words.points(many)}. A client trains" in page.text
    for gain, colour in zip(bars["y"], bars["marker"]["color"], strict=True):
        assert colour == (charts.BETTER if gain > 0 else charts.WORSE if gain < 0 else charts.SAME)
    assert page.figures["bars-0"]["layout"]["yaxis"]["range"] == page.figures["bars-1"]["layout"]["yaxis"]["range"]


def test_gains_of_very_many_clients_are_thinned_and_that_is_said(made_up: Any, tmp_path: Path) -> None:
    n = 2500
    gains = np.random.default_rng(0).permutation(n) / n - 0.25
    made_up(tmp_path / "local" / "seed-0", n, [range(n)], name="local", method=fk.methods.local(), post=[0.25] * n)
    made_up(tmp_path / "fedavg" / "seed-0", n, [range(n)], post=0.25 + gains)
    page = written(tmp_path)
    bars, dots = (page.figures[name]["data"][0] for name in ("bars-0", "sizes-0"))
    assert len(bars["y"]) == len(dots["y"]) == len(bars["hovertext"]) == charts.DOTS
    assert (bars["y"][0], bars["y"][-1]) == pytest.approx((100 * gains.min(), 100 * gains.max()))
    assert bars["y"] == sorted(bars["y"])
    assert np.median(bars["y"]) == pytest.approx(100 * np.median(gains), abs=0.1)
    assert "Of 2,500 clients 1,000 are drawn, evenly spaced by gain." in page.text
    assert "Every client's gain is not listed" in page.text
    assert not any(tag == "table" and "id" not in attributes for tag, attributes in page.tags)


def test_selections_are_shares_of_rounds(trio: Path) -> None:
    page = written(trio)
    traces = {trace["name"]: trace for trace in page.figures["selected"]["data"]}
    assert set(traces) == {"fedavg", "&lt;i&gt;prox"}
    ids = np.concatenate([np.concatenate(compare.Run(trio / "fedavg" / f"seed-{s}").selected()) for s in (0, 1)])
    np.testing.assert_allclose(traces["fedavg"]["y"], np.sort(np.bincount(ids, minlength=8))[::-1] / 8 * 100)
    assert "local: every client in every round" in page.text
    assert "A client trains in 50 % of the rounds here, alone in all of them." in page.text


@pytest.mark.parametrize(
    ("words", "headline", "wins"),
    [
        ({"others": "worse"}, "Training alone is best here: clients do worse with fedavg and <i>prox.", 0),
        ({"others": "no clear difference"}, "No method is clearly better than training alone.", 0),
        ({"fedavg": "worse", "others": "no clear difference"}, "No method is clearly better than training alone.", 0),
    ],
)
def test_only_a_tested_win_is_called_one(trio: Path, words: dict[str, str], headline: str, wins: int) -> None:
    verdicts(trio, **words)
    page = written(trio)
    assert page.headline == headline
    assert sum(a.get("class") == "win" for _, a in page.tags) == wins
    assert "Verdict: better" not in page.text


def test_wins_are_named_and_marked(trio: Path) -> None:
    verdicts(trio, fedavg="better", others="worse")
    page = written(trio)
    assert re.fullmatch(r"fedavg leads, and its clients .*|Clients do better than alone with fedavg\.", page.headline)
    assert sum(a.get("class") == "win" for _, a in page.tags) == 1
    verdicts(trio, others="better")
    page = written(trio)
    assert re.fullmatch(r"Clients do better than alone with (fedavg and <i>prox|<i>prox and fedavg)\.", page.headline)
    assert sum(a.get("class") == "win" for _, a in page.tags) == 2


def test_verdicts_of_older_runs_are_not_repeated(trio: Path) -> None:
    """A summary that lies above the runs may be of fewer rounds than they have by now."""
    verdicts(trio, others="better")
    summary = files.read_json(trio / "summary.json")
    summary["methods"]["fedavg"]["rounds"] = 3
    files.write_json(trio / "summary.json", summary)
    page = written(trio)
    assert "do better than alone" not in page.headline
    assert "No verdict: there is no summary of these runs." in page.text
    assert not any(a.get("class") == "win" for _, a in page.tags)


def test_a_partial_comparison_says_so(tmp_path: Path) -> None:
    methods = compare.with_local([fk.methods.fedavg(count=3), fk.methods.fedprox(count=3)])
    compared(tmp_path, methods, [0, 1], stop=("fedprox", 0))
    with open(tmp_path / "fedprox" / "seed-0" / "rounds.jsonl", "a") as file:
        file.write('{"round": 3, "sel')  # a run that was killed while it wrote
    page = written(tmp_path)
    assert page.headline == "Not finished: 4 of 6 runs are done."
    assert "Unfinished: fedprox seed 0 (round 2 of 4), fedprox seed 1 (not begun)." in page.text
    assert "no seed is finished" in page.text
    assert "No verdict: the comparison is not finished." in page.text
    assert "Verdict: " not in page.text
    names = [trace["name"] for trace in page.figures["curves"]["data"] if "name" in trace]
    assert "fedprox (unfinished)" in names
    assert "bars-0" in page.figures
    assert "bars-1" not in page.figures


def test_some_seeds_of_a_method(trio: Path) -> None:
    (trio / "fedavg" / "seed-1" / "summary.json").unlink()
    verdicts(trio, others="better")
    page = written(trio)
    assert "1 of 2 seeds" in page.text
    assert "fedavg seed 1 (round 4 of 4)" in page.text
    assert not any(a.get("class") == "win" for _, a in page.tags)
    expected = np.sort(100 * compare.gain(trio, 0, "fedavg"))
    np.testing.assert_allclose(page.figures["bars-0"]["data"][0]["y"], expected, atol=1e-8)


def test_a_run_of_one_method_leaves_gains_out(tmp_path: Path) -> None:
    compared(tmp_path, [fk.methods.fedavg(count=3)], [0, 1])
    page = written(tmp_path)
    summary = files.read_json(tmp_path / "summary.json")
    last = percent(summary["accuracy"]["post"]["macro"]["last"], summary["spread"]["post"]["macro"]["last"])
    assert page.headline == f"fedavg reaches {last} % after local training."
    assert "Local was not run" in page.text
    assert "'fedkin compare' adds it" in page.text
    assert "better off than alone" not in page.text
    assert set(page.figures) == {"curves", "selected"}


def test_one_seed_has_no_spread_and_is_cautioned(tmp_path: Path) -> None:
    fk.run(fk.Experiment(fk.methods.fedavg(count=3), federation(), rounds=2), tmp_path)
    page = written(tmp_path)
    assert "One seed only" in page.text
    table = page.text[: page.text.index("What the words mean")]
    assert "±" not in table
    last = files.read_json(tmp_path / "summary.json")["accuracy"]["post"]["macro"]["last"]
    assert page.headline == f"fedavg reaches {percent(last)} % after local training."
    assert all("fill" not in trace for trace in page.figures["curves"]["data"])


def test_local_by_itself(tmp_path: Path) -> None:
    fk.run(fk.Experiment(fk.methods.local(), federation(), rounds=2), tmp_path)
    page = written(tmp_path)
    assert page.headline.startswith("Training alone reaches ")
    assert "Only training alone was run" in page.text
    assert set(page.figures) == {"curves"}


def test_sizes_are_left_out_where_they_were_not_stored(trio: Path) -> None:
    for path in trio.glob("*/seed-*/clients.json"):
        path.unlink()
    page = written(trio)
    assert "bars-0" in page.figures
    assert "sizes-0" not in page.figures
    assert "quarter of clients" not in page.text
    assert "<b>client 5</b>" in "".join(page.figures["bars-0"]["data"][0]["hovertext"])


def test_a_client_without_test_samples_is_left_out(tmp_path: Path) -> None:
    x, y = np.ones((4, 5), np.float32), np.arange(4) % 3
    clients = {
        "mute": {"train": (x, y)},
        "a": (np.tile(x, (5, 1)), np.tile(y, 5)),
        "b": (np.tile(x, (6, 1)), np.tile(y, 6)),
    }
    fed = fk.from_clients(clients)
    methods = compare.with_local([fk.methods.fedavg(count=3)])
    plan = compare.arms(fk.Experiment(methods[0], fed, rounds=2), methods, [0], tmp_path)
    compare.play(plan, fed)
    page = written(tmp_path)
    assert "1 client has no test samples and is left out." in page.text
    assert len(page.figures["bars-0"]["data"][0]["y"]) == 2


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match="nothing to report"):
        report.write(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_many_methods_keep_apart_and_local_stays_grey() -> None:
    names = ["local", *(f"m{i}" for i in range(12))]
    found = charts.styles(names, "local")
    assert len(set(found.values())) == 13
    assert found["local"][0] == charts.ALONE


def test_ticks_of_a_logarithmic_axis() -> None:
    assert charts.decades(12, 161) == [10, 20, 50, 100, 200]
    assert charts.decades(1, 20_000) == [1, 10, 100, 1000, 10_000]


def test_signs_and_sizes_as_people_write_them() -> None:
    assert [words.points(v) for v in (0.0123, -0.5, 0.0, -1e-9)] == ["+1.23", "−50.00", "0.00", "0.00"]
    assert [words.size(v) for v in (0, 999, 1500, 11_712_000, 2.5e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "11.7 MB",
        "25.0 TB",
    ]
