"""Draws the figures of committed results as pictures, in the system's Chromium: python docs/figures.py

Every figure of a result that has curves, or columns that are steps of one number, goes to docs/papers/figures.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from picture import opened

from fedkin.reproduce.figures import figures
from fedkin.reproduce.page import page
from fedkin.reproduce.pages import drawn_ids, picture_of
from fedkin.reproduce.results import all_committed

WIDTH, HEIGHT = 900, 1200


def main() -> None:
    """Draw all figures."""
    with opened(WIDTH, HEIGHT) as browser, tempfile.TemporaryDirectory() as folder:
        for (name, scale), outcome in all_committed().items():
            drawn = [id for id in figures(outcome) if id in drawn_ids(outcome)]
            if not drawn:
                continue
            html = Path(folder) / "page.html"
            html.write_text(page(outcome), encoding="utf-8")
            browser.goto(html.resolve().as_uri())
            for id in drawn:
                path = picture_of(name, scale, id)
                path.parent.mkdir(parents=True, exist_ok=True)
                browser.locator(f"#{id} .main-svg").first.wait_for(state="attached")
                browser.locator(f"section:has(#{id})").screenshot(path=path)
                print(f"{path} is drawn.")


if __name__ == "__main__":
    main()
