"""A headless Chromium, and what a reader of a page would see in it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
# What a figure has drawn: of each place for one, its marks that have a size, and the texts that stick out of it.
FIGURES = """() => [...document.querySelectorAll('.chart, .map')].map(place => {
  const box = place.getBoundingClientRect(), boxes = selector => [...place.querySelectorAll(selector)]
    .map(e => ({text: e.textContent, ...e.getBoundingClientRect().toJSON()})).filter(b => b.width > 0 || b.height > 0);
  const marks = boxes('.scatterlayer path, .barlayer path, .heatmaplayer image, .boxlayer path, .pielayer path');
  const out = boxes('svg text').filter(b => b.left < box.left - 2 || b.right > box.right + 2 || b.top < box.top - 2 ||
    b.bottom > box.bottom + 2).map(b => b.text);
  const [legend] = boxes('.legend .bg'), [plot] = boxes('.plotclip, .bglayer rect, .nsewdrag');
  const covers = legend && plot && legend.bottom > plot.top + 2 && legend.top < plot.bottom && legend.left < plot.right
    && legend.right > plot.left;
  return {id: place.id || place.className, drawn: !!place.querySelector('.main-svg'), marks: marks.length, out,
    tall: plot ? plot.height : 0, covers: !!covers};
})"""
# Whether every place has its figure: those that nobody has come near yet are drawn when nothing else is to be done.
DRAWN = "() => !document.querySelector(':is(.chart, .map):not(.js-plotly-plot)')"
# Whether every drawn figure is as wide as its place: after the screen has turned, plotly takes a moment.
SETTLED = """() => [...document.querySelectorAll('.js-plotly-plot')].every(place =>
  Math.abs(place.querySelector('.main-svg').getBoundingClientRect().width - place.clientWidth) < 2)"""
# How much wider than the screen the page is, and what sticks out of it.
OVERFLOW = """() => {
  const whole = document.documentElement, more = whole.scrollWidth - whole.clientWidth;
  const out = e => e.getBoundingClientRect().right > whole.clientWidth && !e.closest('.wide, pre');
  return more <= 0 ? [] : [more, ...[...document.querySelectorAll('main *')].filter(out).map(e => e.outerHTML)];
}"""
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield browser
        browser.close()


@dataclass
class Seen:
    """A page in the browser, and everything it complained about."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def open(self, address: str) -> Seen:
        self.page.goto(address)
        return self

    def look(self, scheme: str, size: dict[str, int]) -> None:
        """Look at the page by day or night, at a desk or on a phone, until its figures have their new size."""
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size(size)
        self.page.wait_for_timeout(150)
        self.until(SETTLED)

    def until(self, script: str, seconds: float = 30.0) -> None:
        """Wait until a script says true. The page's policy forbids playwright's own way of waiting, which is eval."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(script):
            assert time.monotonic() < end, script
            self.page.wait_for_timeout(50)

    def figures(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate(FIGURES)
        return found

    def whole(self) -> None:
        """Every figure is drawn and has something in it, no text is cut off, and the page is not wider than the screen.
        Nothing was complained about."""
        self.until(DRAWN)
        figures = self.figures()
        assert figures
        for figure in figures:
            assert figure["drawn"], figure
            assert figure["marks"], figure
            assert not figure["out"], figure
            assert not figure["covers"], figure
            assert figure["tall"] > 60, figure
        assert self.page.evaluate(OVERFLOW) == []
        assert not self.complaints

    def look_everywhere(self) -> None:
        """By day at a desk, and by night on a phone."""
        for scheme, size in (("light", DESK), ("dark", PHONE)):
            self.look(scheme, size)
            self.whole()
            back = self.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
            ink = self.page.evaluate("() => document.querySelector('.chart text')?.style.fill")
            assert (brightness(back) < 0.3) == (scheme == "dark")
            assert ink is None or (brightness(ink) > brightness(back)) == (scheme == "dark")


def brightness(colour: str) -> float:
    """How bright a colour 'rgb(r, g, b)' is, from 0 to 1."""
    red, green, blue = (int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


@pytest.fixture
def seen(chromium: Any) -> Iterator[Callable[..., Seen]]:
    """`seen(address)`: the page there, in a fresh browser profile; `before` is a script that runs before its own."""
    contexts = []

    def open(address: str, before: str = "") -> Seen:
        context = chromium.new_context(viewport=DESK)
        contexts.append(context)
        context.add_init_script(before)
        found = Seen(context.new_page())
        found.page.on("pageerror", lambda error: found.complaints.append(f"error: {error}"))
        found.page.on(
            "console",
            lambda said: found.complaints.append(said.text) if said.type in ("error", "warning") else None,
        )
        found.page.on("request", lambda asked: outside(found, asked.url))
        return found.open(address)

    yield open
    for context in contexts:
        context.close()


def outside(found: Seen, address: str) -> None:
    """A page asks nobody but this machine."""
    if not address.startswith(("file:", "data:", "blob:", "http://127.0.0.1:")):
        found.complaints.append(f"asked {address}")
