"""Reports as a browser shows them: every figure drawn, by day and by night, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from tiny_preset import tiny

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.report import page
from fedkin.reproduce.play import concluded, play, runs_of
from fedkin.reproduce.store import Store

pytest.importorskip("plotly")

NAME = "Hospital"
VISIBLE = "text => text.checkVisibility({opacityProperty: true}) && text.getBoundingClientRect().width > 0"


@pytest.fixture(scope="module")
def hospitals() -> fk.Federation:
    """Twelve clients with names; two of them have the labels of nobody else."""
    gen = np.random.default_rng(0)
    weights = gen.normal(size=(4, 3))
    clients = {}
    for i in range(12):
        x = gen.normal(size=(20 + 9 * i, 4)).astype(np.float32)
        y = (x @ weights).argmax(1)
        clients[f"{NAME} {i}"] = (x, (y + 1) % 3 if i in (4, 9) else y)
    return replace(fk.from_clients(clients, name="hospitals"), irrelevant=None)


def shown(folder: Path) -> str:
    return page.write(folder).resolve().as_uri()


def test_one_run(hospitals: fk.Federation, tmp_path: Path, seen: Callable[[str], Any]) -> None:
    fk.run(fk.Experiment(fk.methods.fedavg(count=4), hospitals, rounds=5, evaluate_every=1), tmp_path / "run")
    seen(shown(tmp_path / "run")).look_everywhere()


def test_a_comparison_with_kin_names_every_client(
    hospitals: fk.Federation, tmp_path: Path, seen: Callable[[str], Any]
) -> None:
    methods = [fk.methods.fedmcsa(), fk.methods.fedavg(count=4)]
    fk.compare(methods, hospitals, rounds=5, evaluate_every=1, seeds=2, folder=tmp_path / "kin")
    found = seen(shown(tmp_path / "kin"))
    found.look_everywhere()
    ticks = "s => [...document.querySelectorAll('.map')].map(map => [...map.querySelectorAll(s)].filter(" + VISIBLE
    ticks += ").length)"
    for size in ({"width": 390, "height": 800}, {"width": 1280, "height": 800}):
        found.look("light", size)
        assert set(found.page.evaluate(ticks, ".ytick text")) == {12}, "a client has no name beside the map"
        assert set(found.page.evaluate(ticks, ".xtick text")) == {12}, "a client has no name under the map"


def test_relevance_beside_the_truth(tmp_path: Path, seen: Callable[[str], Any]) -> None:
    data = fk.Data("digits", clients=10, irrelevant="flip:0.2")
    method = fk.methods.pfedre()
    quick = replace(method, keep=replace(method.keep, iterations=3))  # type: ignore[type-var]
    fk.compare([quick, "adafl"], data, rounds=4, evaluate_every=1, folder=tmp_path / "relevance")
    found = seen(shown(tmp_path / "relevance"))
    found.look_everywhere()
    kinds = {figure["id"].rpartition("-")[0] for figure in found.figures()}
    assert {"attended", "divergence", "out", "filter", "scores"} <= kinds


def test_a_preset(tmp_path: Path, seen: Callable[[str], Any]) -> None:
    """The page of a preset has its claims, its table and a figure for each column and curve."""
    store, preset = Store(tmp_path), tiny()
    assert play(runs_of([preset], store), store, warn=lambda _: None)
    _, folder = concluded(preset, store)
    found = seen((folder / "report.html").resolve().as_uri())
    found.look_everywhere()
    text = found.page.inner_text("main")
    assert all(words in text for words in ("Fast is above slow.", "does not hold", "Paper and ours", "91.50 ± 0.25"))
    drawn = [column for column in preset.columns if column != "never"]  # which no run reaches
    assert found.page.locator(".js-plotly-plot").count() == 1 + len(drawn), "and the curves"


def test_an_unfinished_comparison(hospitals: fk.Federation, tmp_path: Path, seen: Callable[[str], Any]) -> None:
    methods = with_local([fk.methods.fedmcsa(), fk.methods.fedavg(count=4)])
    experiment = fk.Experiment(methods[0], hospitals, rounds=4, evaluate_every=1)
    assert small.compared(tmp_path / "part", experiment, methods, [0], ("fedmcsa", 0)) is None
    found = seen(shown(tmp_path / "part"))
    found.look_everywhere()
    assert "Not finished" in found.page.inner_text("h1")


def test_choices_change_what_is_shown(hospitals: fk.Federation, tmp_path: Path, seen: Callable[[str], Any]) -> None:
    fk.compare(["fedmcsa", "fedavg"], hospitals, rounds=4, evaluate_every=1, folder=tmp_path / "c")
    opened = seen(shown(tmp_path / "c"))
    found = opened.page
    lines = (
        "() => [...document.querySelectorAll('#curves .scatterlayer .trace .js-line')].map(e => e.getAttribute('d'))"
    )
    opened.until("() => !!document.querySelector('#curves .main-svg')")
    before = found.evaluate(lines)
    found.check("input[name=kind][value=global]", force=True)
    assert found.evaluate(lines) not in ([], before)
    found.check("input[name=statistic][value=best]", force=True)
    assert found.evaluate("() => document.getElementById('comparison').dataset.shows") == "best"
    rounds = "() => document.querySelector('[data-view] output').textContent"
    assert found.evaluate(rounds) == "round 4"
    found.locator("[data-view] input[type=range]").first.fill("0")
    assert found.evaluate(rounds) == "round 1"
    found.locator("[data-view] button").first.click()
    opened.until("() => document.querySelector('[data-view] output').textContent === 'round 4'")
    assert not opened.complaints


NEVER_IDLE = "window.requestIdleCallback = () => 0;"
ALONE = "delete window.IntersectionObserver;"
LEFT = "() => document.querySelectorAll(':is(.chart, .map):not(.js-plotly-plot)').length"
SCROLLED = "() => { scrollBy(0, innerHeight / 2); return scrollY + innerHeight >= document.body.scrollHeight - 2; }"


@pytest.fixture(scope="module")
def long_page(hospitals: fk.Federation, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of which the reader sees only the beginning."""
    folder = tmp_path_factory.mktemp("long") / "c"
    fk.compare(["fedmcsa", fk.methods.fedavg(count=4)], hospitals, rounds=4, evaluate_every=1, folder=folder)
    return shown(folder)


def test_figures_are_drawn_when_the_reader_comes_near(long_page: str, seen: Callable[..., Any]) -> None:
    found = seen(long_page, NEVER_IDLE)
    found.page.wait_for_timeout(300)
    tall = "() => document.documentElement.scrollHeight"
    left, before = found.page.evaluate(LEFT), found.page.evaluate(tall)
    assert left > 3, "what is far away is not drawn"
    end = False
    while not end:
        end = found.page.evaluate(SCROLLED)
        found.page.wait_for_timeout(50)
    found.until(f"() => ({LEFT})() === 0", 10)
    assert found.page.evaluate(tall) == before, "nothing moves when a figure is drawn"
    found.whole()


def test_a_printed_page_has_every_figure(long_page: str, seen: Callable[..., Any]) -> None:
    found = seen(long_page, NEVER_IDLE)
    assert found.page.evaluate(LEFT) > 3
    found.page.pdf()
    assert found.page.evaluate(LEFT) == 0
    found.whole()


@pytest.mark.parametrize("before", ["", ALONE, ALONE + "delete window.requestIdleCallback;"])
def test_every_figure_is_drawn_without_scrolling(long_page: str, seen: Callable[..., Any], before: str) -> None:
    found = seen(long_page, before)
    found.until(f"() => ({LEFT})() === 0")
    found.whole()


def test_a_choice_before_its_figure_is_drawn(long_page: str, seen: Callable[..., Any]) -> None:
    found = seen(long_page, NEVER_IDLE + ALONE)
    assert found.page.evaluate(LEFT) == len(found.figures())
    found.page.check("input[name=kind][value=global]", force=True)
    assert (
        found.page.evaluate("() => document.getElementById('curves').data.find(one => one.visible).meta")[:7]
        == "global/"
    )
    found.page.locator("[data-view] input[type=range]").first.fill("0")
    assert found.page.evaluate("() => document.querySelector('[data-view] output').textContent") == "round 1"
    found.page.pdf()
    found.whole()
