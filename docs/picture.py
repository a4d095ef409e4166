"""Takes a picture of the top of a report, in the system's Chromium: python docs/picture.py report.html picture.png"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

WIDTH, HEIGHT = 1180, 1500
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def opened(width: int = WIDTH, height: int = HEIGHT) -> Iterator[Page]:
    """An empty page of this size."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Pictures need Chromium: install it, then try again.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser.new_page(viewport={"width": width, "height": height})
        browser.close()


def main(report: str, picture: str) -> None:
    with opened() as page:
        page.goto(Path(report).resolve().as_uri())
        page.wait_for_selector(":is(.chart, .map):not(.js-plotly-plot)", state="detached")
        page.screenshot(path=picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
