"""The style and the scripts of the page: the files of `assets/`, with the constants that scripts share with charts."""

from __future__ import annotations

import json
from importlib.resources import files

from fedkin.report.charts.style import COUNTED, LOST, NAMED, SCALES, faint


def asset(name: str) -> str:
    """The text of a file in `assets/`, after a line break."""
    return "\n" + files("fedkin.report").joinpath("assets", name).read_text(encoding="utf-8")


def style() -> str:
    return asset("style.css")


def script(stores: list[str]) -> str:
    """The script of a page that has these stores of data: what every page needs, then what draws each store."""
    text = asset("page.js")
    if "sites" in stores:
        text += asset("sites.js")
    if "rounds" in stores:
        shades = {"NAMED_ROWS": NAMED, "COUNTED": opacities(COUNTED), "LOST": opacities(LOST)}
        text += constants(shades) + asset("who_was_selected_cells.js") + asset("who_was_selected.js")
    if "kin" in stores:
        text += constants({"NAMED": NAMED, **{name: even_scale(tones) for name, tones in SCALES.items()}})
        text += asset("who_learns_from_whom_cells.js") + asset("who_learns_from_whom.js")
    return text + "drawn(document.body);\n"


def constants(values: dict[str, object]) -> str:
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())


def opacities(tone: str) -> list[list[object]]:
    """A colour scale from transparent to the full colour. The smallest value above zero can already be seen."""
    return [[0, faint(tone, 0)], [1e-6, faint(tone, 0.14)], [1, faint(tone, 1)]]


def even_scale(tones: tuple[str, ...]) -> list[list[object]]:
    """A colour scale with these tones at even distances."""
    return [[i / (len(tones) - 1), tone] for i, tone in enumerate(tones)]
