"""The page says what the summaries say, calls a win only what was tested, and loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import compared

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.report import page, scripts
from fedkin.report.charts import style
from fedkin.report.formats import percent, points, size
from fedkin.report.study import Study, studied
from fedkin.report.terminal import accuracy_table
from fedkin.runs import metrics
from fedkin.runs.folder import RunFolder
from fedkin.runs.verdict import gain

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


def gain_of(study: Study, name: str, seed: int) -> np.ndarray:
    return gain(*(next(run for run in study.entries[who].runs if run.seed == seed) for who in (name, "local")))


def clinics(rounds: int = 4) -> fk.Experiment:
    return fk.Experiment(fk.methods.fedavg(), federation(), rounds=rounds, evaluate_every=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Local, FedAvg of four a round and FedProx under a name that must be escaped; two seeds. And their summary."""
    folder = tmp_path_factory.mktemp("runs") / "trio"
    fedavg, fedprox = fk.methods.fedavg(count=4), fk.methods.fedprox(count=4)
    methods = with_local([fedavg, replace(fedprox, name="<i>prox")])
    found = compared(folder, clinics(), methods, [0, 1])
    assert found is not None
    return folder, found.summary


@pytest.fixture
def trio(made: tuple[Path, dict[str, Any]]) -> Study:
    """A study of it that a test may change."""
    return studied(made[0])


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


def read(source: Path | Study) -> Page:
    return Page(page.page(studied(source) if isinstance(source, Path) else source))


def verdicts(study: Study, **words: str) -> None:
    """Change the stored verdicts."""
    for name, found in study.stored["against_local"].items():
        found["verdict"] = words.get(name, words.get("others"))


def test_the_page_is_written_whole(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    path = page.write(folder)
    assert path == folder / "report.html"
    assert path.read_text() == page.page(studied(folder))
    assert not list(folder.glob(".*part"))


def test_every_number_of_the_summary_is_on_the_page(made: tuple[Path, dict[str, Any]]) -> None:
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
    compared(tmp_path, clinics(), with_local(methods), [0, 1])
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
    assert found["fedavg"][6:] == [*steady, *fair]
    assert found["local"][7] == "-"
    assert "of 2 scored rounds, 2 to 4" in text


def test_runs_of_before_have_their_client_rounds_counted(trio: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their summaries have none, and no mean of them either."""
    new, read = trio.runs[0].summary, RunFolder.summary

    def old(folder: RunFolder) -> dict[str, Any]:
        summary = read(folder)
        return summary | {"cost": {name: value for name, value in summary["cost"].items() if name != "client_rounds"}}

    monkeypatch.setattr(RunFolder, "summary", old)
    assert cells(page.page(studied(trio.folder)), "costs")["fedavg"][0] == "16"
    before = old(trio.runs[1].folder)
    assert "client_rounds" not in metrics.merged([new, before])["cost"]
    assert "client-rounds" not in str(accuracy_table(metrics.merged([before])).caption)
    new["cost"]["client_rounds"] = 3
    assert str(accuracy_table(metrics.merged([new])).caption).startswith("3 client-rounds (the papers' cost); ")


def test_the_page_is_whole_and_loads_nothing(trio: Study) -> None:
    text = page.page(trio)
    found = Page(text)
    assert text.count("plotly.js v") == 1
    assert sum(len(script) > 1_000_000 for script in found.scripts.values()) == 1
    for tag, attributes in found.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed"), tag
        assert not {"src", "href", "srcset"} & attributes.keys(), (tag, attributes)
    look = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in look
    assert "@import" not in look
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_names_are_escaped_everywhere(trio: Study) -> None:
    text = page.page(trio)
    found = Page(text)
    assert ODD in found.text
    assert "<i>prox" in found.text
    assert ODD not in text
    assert "<i>prox" not in text
    assert not any(tag == "b" and attributes != {"class": "win"} for tag, attributes in found.tags)
    assert "<" not in text[text.index('id="figures">') + len('id="figures">') :].split("</script>")[0]
    hovers = found.figures["bars-0"]["data"][0]["hovertext"]
    one = [hover for hover in hovers if "ward" in hover]
    assert len(one) == 1
    assert one[0].count("<b>") == 1
    assert ODD in unescape(one[0])
    legend = [trace["name"] for trace in found.figures["curves"]["data"] if "name" in trace]
    assert "&lt;i&gt;prox" in legend
    assert "<i>prox" not in legend


def test_figures_are_valid_and_each_has_its_place(trio: Study) -> None:
    found = read(trio)
    charted = [a for tag, a in found.tags if tag == "div" and a.get("class") == "chart"]
    assert all(a["role"] == "img" and a["aria-label"] for a in charted)
    places = [a["id"] for a in charted]
    assert places == ["curves", "bars-0", "sizes-0", "bars-1", "sizes-1", "selected", "attended-map"]
    assert {*found.figures, "attended-map"} == set(places)  # that one is drawn from what is stored apart
    for figure in found.figures.values():
        go.Figure(figure)  # raises on an unknown property


def test_curves_are_means_over_seeds_within_their_band(trio: Study) -> None:
    data = read(trio).figures["curves"]["data"]
    traces = [t for t in data if t["meta"] == "global/micro" and t["legendgroup"] == "fedavg"]
    low, high, line = traces
    runs = [run.rounds for run in trio.entries["fedavg"].runs]
    values = np.array([[r["accuracy"]["global"]["micro"] for r in run if "accuracy" in r] for run in runs]) * 100
    assert line["x"] == [2, 4]
    np.testing.assert_allclose(line["y"], values.mean(0))
    np.testing.assert_allclose(low["y"], values.min(0))
    np.testing.assert_allclose(high["y"], values.max(0))
    shown = {t["meta"] for t in data if t["visible"]}
    assert shown == {"post/macro"}
    assert not any(t["legendgroup"] == "local" and t["meta"].startswith("global") for t in data)


def test_gains_are_post_minus_local_with_names_and_sizes(trio: Study) -> None:
    found = read(trio)
    bars, dots = (found.figures[name]["data"][0] for name in ("bars-0", "sizes-0"))
    expected = 100 * np.mean([gain_of(trio, "fedavg", seed) for seed in (0, 1)], axis=0)
    np.testing.assert_allclose(bars["y"], np.sort(expected), atol=1e-8)
    np.testing.assert_allclose(dots["y"], expected, atol=1e-8)
    fed = federation()
    assert dots["x"] == fed.train.sizes.tolist()
    for name, samples, text in zip(fed.clients, dots["x"], dots["hovertext"], strict=True):
        assert name in unescape(text)
        assert f"<br>{samples:,} training samples<br>" in text
    few, many = expected[:2].mean() / 100, expected[-2:].mean() / 100
    assert f"has a mean gain of {points(few)} points" in found.text
    assert f"of {points(many)}. A client trains" in found.text
    for each, colour in zip(bars["y"], bars["marker"]["color"], strict=True):
        assert colour == (style.BETTER if each > 0 else style.WORSE if each < 0 else style.SAME)
    assert found.figures["bars-0"]["layout"]["yaxis"]["range"] == found.figures["bars-1"]["layout"]["yaxis"]["range"]


def test_gains_of_very_many_clients_are_thinned_and_that_is_said(recorded: Any, tmp_path: Path) -> None:
    n = 2500
    gains = np.random.default_rng(0).permutation(n) / n - 0.25
    recorded(tmp_path / "local" / "seed-0", n, [range(n)], name="local", post=np.full(n, 0.25))
    recorded(tmp_path / "fedavg" / "seed-0", n, [range(n)], post=0.25 + gains)
    found = read(tmp_path)
    bars, dots = (found.figures[name]["data"][0] for name in ("bars-0", "sizes-0"))
    assert len(bars["y"]) == len(dots["y"]) == len(bars["hovertext"]) == style.DOTS
    assert (bars["y"][0], bars["y"][-1]) == pytest.approx((100 * gains.min(), 100 * gains.max()))
    assert bars["y"] == sorted(bars["y"])
    assert np.median(bars["y"]) == pytest.approx(100 * np.median(gains), abs=0.1)
    assert "Of 2,500 clients 1,000 are drawn, evenly spaced by gain." in found.text
    assert "Every client's gain is not listed" in found.text
    assert not any(tag == "table" and "id" not in attributes for tag, attributes in found.tags)


def test_selections_are_shares_of_rounds(trio: Study) -> None:
    found = read(trio)
    traces = {trace["name"]: trace for trace in found.figures["selected"]["data"]}
    assert set(traces) == {"fedavg", "&lt;i&gt;prox"}
    ids = np.concatenate([np.concatenate(run.selected) for run in trio.entries["fedavg"].runs])
    np.testing.assert_allclose(traces["fedavg"]["y"], np.sort(np.bincount(ids, minlength=8))[::-1] / 8 * 100)
    assert "local: every client in every round" in found.text
    assert "A client trains in 50 % of the rounds here, alone in all of them." in found.text


@pytest.mark.parametrize(
    ("words", "headline", "wins"),
    [
        ({"others": "worse"}, "Training alone is best here: clients do worse with fedavg and <i>prox.", 0),
        ({"others": "no clear difference"}, "No method is clearly better than training alone.", 0),
        ({"fedavg": "worse", "others": "no clear difference"}, "No method is clearly better than training alone.", 0),
    ],
)
def test_only_a_tested_win_is_called_one(trio: Study, words: dict[str, str], headline: str, wins: int) -> None:
    verdicts(trio, **words)
    found = read(trio)
    assert found.headline == headline
    assert sum(a.get("class") == "win" for _, a in found.tags) == wins
    assert "Verdict: better" not in found.text


def test_wins_are_named_and_marked(trio: Study) -> None:
    verdicts(trio, fedavg="better", others="worse")
    found = read(trio)
    assert re.fullmatch(r"fedavg leads, and its clients .*|Clients do better than alone with fedavg\.", found.headline)
    assert sum(a.get("class") == "win" for _, a in found.tags) == 1
    verdicts(trio, others="better")
    found = read(trio)
    assert re.fullmatch(r"Clients do better than alone with (fedavg and <i>prox|<i>prox and fedavg)\.", found.headline)
    assert sum(a.get("class") == "win" for _, a in found.tags) == 2


def test_verdicts_of_older_runs_are_not_repeated(trio: Study) -> None:
    """A summary that lies above the runs may be of fewer rounds than they have by now."""
    verdicts(trio, others="better")
    trio.stored["methods"]["fedavg"]["rounds"] = 3
    found = read(trio)
    assert "do better than alone" not in found.headline
    assert "No verdict: there is no summary of these runs." in found.text
    assert not any(a.get("class") == "win" for _, a in found.tags)


def test_a_partial_comparison_says_so(tmp_path: Path) -> None:
    methods = with_local([fk.methods.fedavg(count=3), fk.methods.fedprox(count=3)])
    compared(tmp_path, clinics(), methods, [0, 1], stop=("fedprox", 0))
    with open(tmp_path / "fedprox" / "seed-0" / "rounds.jsonl", "a") as file:
        file.write('{"round": 3, "sel')  # a run that was killed while it wrote
    found = read(tmp_path)
    assert found.headline == "Not finished: 4 of 6 runs are done."
    assert "Unfinished: fedprox seed 0 (round 2 of 4), fedprox seed 1 (not begun)." in found.text
    assert "no seed is finished" in found.text
    assert "No verdict: the comparison is not finished." in found.text
    assert "Verdict: " not in found.text
    names = [trace["name"] for trace in found.figures["curves"]["data"] if "name" in trace]
    assert "fedprox (unfinished)" in names
    assert "bars-0" in found.figures
    assert "bars-1" not in found.figures


def test_some_seeds_of_a_method(trio: Study) -> None:
    vars(trio.entries["fedavg"].runs[1])["finished"] = False  # as if it had none
    verdicts(trio, others="better")
    found = read(trio)
    assert "1 of 2 seeds" in found.text
    assert "fedavg seed 1 (round 4 of 4)" in found.text
    assert not any(a.get("class") == "win" for _, a in found.tags)
    expected = np.sort(100 * gain_of(trio, "fedavg", 0))
    np.testing.assert_allclose(found.figures["bars-0"]["data"][0]["y"], expected, atol=1e-8)


def test_a_run_of_one_method_leaves_gains_out(tmp_path: Path) -> None:
    found = compared(tmp_path, clinics(), [fk.methods.fedavg(count=3)], [0, 1])
    assert found is not None
    summary = found.summary
    found = read(tmp_path)
    last = percent(summary["accuracy"]["post"]["macro"]["last"], summary["spread"]["post"]["macro"]["last"])
    assert found.headline == f"fedavg reaches {last} % after local training."
    assert "Local was not run" in found.text
    assert "'fedkin compare' adds it" in found.text
    assert "better off than alone" not in found.text
    assert set(found.figures) == {"curves", "selected"}


def test_one_seed_has_no_spread_and_is_cautioned(tmp_path: Path) -> None:
    summary = fk.run(fk.Experiment(fk.methods.fedavg(count=3), federation(), rounds=2), tmp_path).summary
    found = read(tmp_path)
    assert "One seed only" in found.text
    table = found.text[: found.text.index("What the words mean")]
    assert "±" not in table
    last = summary["accuracy"]["post"]["macro"]["last"]
    assert found.headline == f"fedavg reaches {percent(last)} % after local training."
    assert all("fill" not in trace for trace in found.figures["curves"]["data"])


def test_local_by_itself(tmp_path: Path) -> None:
    fk.run(fk.Experiment(fk.methods.local(), federation(), rounds=2), tmp_path)
    found = read(tmp_path)
    assert found.headline.startswith("Training alone reaches ")
    assert "Only training alone was run" in found.text
    assert set(found.figures) == {"curves"}


def test_sizes_are_left_out_where_they_were_not_stored(trio: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFolder, "clients", lambda _: {})
    found = read(trio)
    assert "bars-0" in found.figures
    assert "sizes-0" not in found.figures
    assert "quarter of clients" not in found.text
    assert "<b>client 5</b>" in "".join(found.figures["bars-0"]["data"][0]["hovertext"])


def test_a_client_without_test_samples_is_left_out(tmp_path: Path) -> None:
    x, y = np.ones((4, 5), np.float32), np.arange(4) % 3
    clients = {
        "mute": {"train": (x, y)},
        "a": (np.tile(x, (5, 1)), np.tile(y, 5)),
        "b": (np.tile(x, (6, 1)), np.tile(y, 6)),
    }
    fed = fk.from_clients(clients)
    methods = with_local([fk.methods.fedavg(count=3)])
    compared(tmp_path, fk.Experiment(methods[0], fed, rounds=2), methods, [0])
    found = read(tmp_path)
    assert "1 client has no test samples and is left out." in found.text
    assert len(found.figures["bars-0"]["data"][0]["y"]) == 2


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match="nothing to report"):
        page.write(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_many_methods_keep_apart_and_local_stays_grey() -> None:
    names = ["local", *(f"m{i}" for i in range(12))]
    found = style.styles(names, "local")
    assert len(set(found.values())) == 13
    assert found["local"][0] == style.ALONE


def test_ticks_of_a_logarithmic_axis() -> None:
    assert style.decades(12, 161) == [10, 20, 50, 100, 200]
    assert style.decades(1, 20_000) == [1, 10, 100, 1000, 10_000]


def test_signs_and_sizes_as_people_write_them() -> None:
    assert [points(v) for v in (0.0123, -0.5, 0.0, -1e-9)] == ["+1.23", "−50.00", "0.00", "0.00"]
    assert [size(v) for v in (0, 999, 1500, 11_712_000, 2.5e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "11.7 MB",
        "25.0 TB",
    ]


def test_scripts_are_only_in_pages_that_need_them(recorded: Any, tmp_path: Path) -> None:
    some = page.page(studied(recorded(tmp_path / "some", 3, [[0], [1]])))
    everybody = page.page(studied(recorded(tmp_path / "all", 3, [range(3)] * 2)))
    for text, there in ((some, True), (everybody, False)):
        assert ("function attended" in text) == ('id="rounds"' in text) == there
        assert "function cells" not in text
        assert 'id="kin"' not in text
    assert "function cells" in scripts.script(["figures", "kin"])
