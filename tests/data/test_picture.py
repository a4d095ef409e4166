import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from fedkin.data import Data, Federation, from_clients, load
from fedkin.data.division import table
from fedkin.data.picture import SHADES, draw
from fedkin.errors import BadInput

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def three() -> Federation:
    x = np.zeros((8, 1))
    return from_clients({"a<b": (x, [0] * 4 + [2] * 4), "b": (x[:2], [1, 1]), "none": (x[:0], [])}, test=0)


def test_counts_are_of_training_labels(three: Federation) -> None:
    assert three.label_counts().tolist() == [[4, 0, 4], [0, 2, 0]]
    digits = load(Data("digits", "iid", 7))
    assert digits.label_counts().sum(1).tolist() == digits.train.sizes.tolist()
    assert digits.label_counts().sum(0).tolist() == np.bincount(digits.y[digits.train.rows].numpy()).tolist()


def test_the_table_says_sizes_and_classes(three: Federation) -> None:
    lines = table(three)
    assert "2 clients, 3 classes" in lines[0]
    assert "min 2, median 5, max 8, sum 10; test 0" in lines[0]
    assert lines[1] == "training samples per client mean 5.0, sd 3.0; with those held out mean 5.0, sd 3.0, sum 10"
    assert lines[2] == "left out, without samples: 1 (none)"
    assert lines[4].split() == ["a<b", "8", "0", "4", ".", "4"]
    assert len({len(line) for line in lines[3:]}) == 1


def test_mean_and_deviation_count_what_is_held_out_too(tmp_path: Path) -> None:
    federation = load(Data("digits", "dirichlet:0.5", 6, validation=0.1))
    assert federation.validation is not None
    every = federation.train.sizes + federation.test.sizes + federation.validation.sizes
    said = table(federation)[1]
    assert f"with those held out mean {every.double().mean():,.1f}, sd {every.double().std(correction=0):,.1f}" in said
    assert f"sum {int(every.sum()):,}" in said
    assert said.removeprefix("training samples per client ") in draw(federation, tmp_path / "p.svg").read_text()


@pytest.mark.parametrize("clients", [1, 20, 500])
def test_the_picture_has_every_cell_once(tmp_path: Path, clients: int) -> None:
    federation = load(Data("digits", "iid", clients))
    root = ElementTree.parse(draw(federation, tmp_path / "deep" / "p.svg")).getroot()
    cells = sum(path.get("d", "").count("M") for path in root.iter(f"{SVG}path") if path.get("fill") in SHADES)
    assert cells == (federation.label_counts() > 0).sum() + len(SHADES)  # the legend
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert {"client", "class", "samples", "training", "test"} <= set(words)
    hints = [title.text for title in root.iter(f"{SVG}title")]
    assert len(hints) == clients + 1
    heights = {
        float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h", " ".join(p.get("d", "") for p in root.iter(f"{SVG}path")))
    }
    assert max(heights) < float(root.get("height", 0))


def test_names_are_escaped_and_html_stands_alone(three: Federation, tmp_path: Path) -> None:
    page = draw(three, tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "a&lt;b" in page
    assert "a<b" not in page
    assert not re.findall(r"(?:src|href)=", page)


def test_other_files_are_refused(three: Federation, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"\.svg or an \.html"):
        draw(three, tmp_path / "p.png")
