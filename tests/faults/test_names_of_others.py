"""Names that look like scripts, markup, paths or writing from right to left are text wherever they are shown."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedkin as fk
from fedkin.report.page import write
from fedkin.runs.command_folder import CommandFolder

ODD = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    '"><svg onload=alert(1)>',
    "[/x][bold]",
    "../../etc/passwd",
    "\u202egnp.exe",
    "a\u2028b\u0085c",
    "x" * 10_000,
)
PLAIN = tuple(f"site {i}" for i in range(len(ODD)))
DRAW = np.random.default_rng(0)
SAMPLES = [(DRAW.normal(size=(12, 3)), np.arange(12) % 3) for _ in ODD]


def compared(names: tuple[str, ...], labels: tuple[str, ...], folder: Path) -> Any:
    clients = {name: (x, np.array(labels)[y]) for name, (x, y) in zip(names, SAMPLES, strict=True)}
    return fk.compare(["fedmcsa", "pfedre_aligned"], fk.from_clients(clients), rounds=2, folder=folder)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same comparison twice: with odd names of clients and classes, and with plain ones."""
    place = tmp_path_factory.mktemp("runs")
    return {
        "odd": compared(ODD, ODD[:3], place / "odd"),
        "plain": compared(PLAIN, PLAIN[:3], place / "plain"),
    }


class Seen(HTMLParser):
    """Counts the elements of a page, and the names of their attributes, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_the_page_has_the_elements_of_a_plain_one(both: dict[str, Any]) -> None:
    odd, plain = (Seen(write(both[name].folder).read_text()) for name in ("odd", "plain"))
    assert odd.handlers == plain.handlers == []
    for tag in ("script", "img", "iframe", "object", "link", "style", "meta", "form"):
        assert odd.tags[tag] == plain.tags[tag], tag


def test_the_page_stays_small(both: dict[str, Any]) -> None:
    """A name of 10,000 letters is not repeated in full wherever a client is drawn."""
    odd, plain = (write(both[name].folder).stat().st_size for name in ("odd", "plain"))
    assert odd < plain + 2_000_000


def test_the_terminal_shows_markup_as_it_is(fedkin: Any) -> None:
    frames = [
        pd.DataFrame(x, columns=list("abc")).assign(label=y, client=name)
        for name, (x, y) in zip(ODD, SAMPLES, strict=True)
    ]
    pd.concat(frames).to_parquet("odd.parquet")
    outcome = fedkin("compare", "fedmcsa", "--data", "./odd.parquet", "--rounds", "2", "--out", "here")
    assert outcome.code == 0, outcome.err
    shown = outcome.out + outcome.err
    assert "[/x][bold]" in shown
    assert "\u202e" not in shown, "it would turn the rest of the line round"
    assert "\x1b" not in shown
    assert len(shown) < 200_000
    assert fedkin("data", "show", "./odd.parquet").code == 0


@pytest.mark.parametrize("ending", ["csv", "md", "tex"])
def test_tables_in_files_have_a_row_for_each_client(both: dict[str, Any], ending: str, tmp_path: Path) -> None:
    made = [both[name].export_clients(tmp_path / f"{name}.{ending}").read_text() for name in ("odd", "plain")]
    assert len(made[0].split("\n")) == len(made[1].split("\n"))
    if ending == "csv":
        found = pd.read_csv(tmp_path / "odd.csv", keep_default_na=False)
        assert set(found["client"]) == set(ODD)


def test_folders_of_what_if_stay_inside(tmp_path: Path) -> None:
    for name in ODD:
        place = CommandFolder(tmp_path).what_if([name]).path
        assert place.resolve().is_relative_to(tmp_path.resolve() / "what-if")
        assert len(place.name) < 200


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_are_no_text(name: str) -> None:
    clients = {name: SAMPLES[0], "other": SAMPLES[1]}
    with pytest.raises(fk.BadInput, match="is no text"):
        fk.from_clients(clients)
