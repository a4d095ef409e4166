"""One HTML page that says what a run or a comparison found: the answer first, then the numbers, then the pictures.

The page needs no other file: plotly.js lies in it once, and its content policy forbids loading anything from elsewhere.
It allows its own scripts by their digests, so that nothing in a name or a number of a run can become a script.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from pathlib import Path

from plotly.offline import get_plotlyjs

from fedkin.report import scripts
from fedkin.report.charts.style import Figure
from fedkin.report.html import Section
from fedkin.report.sections.accuracies import accuracies
from fedkin.report.sections.all_metrics import all_metrics
from fedkin.report.sections.costs import costs
from fedkin.report.sections.curves import curves
from fedkin.report.sections.definitions import definitions
from fedkin.report.sections.gains import gains
from fedkin.report.sections.header import header
from fedkin.report.sections.opinions import opinions
from fedkin.report.sections.privacy import privacy
from fedkin.report.sections.settings import settings
from fedkin.report.sections.sites import sites
from fedkin.report.sections.targets import targets
from fedkin.report.sections.training import training
from fedkin.report.sections.who_learns_from_whom import who_learns_from_whom
from fedkin.report.sections.who_was_selected import who_was_selected
from fedkin.report.sections.whose_updates_counted import whose_updates_counted
from fedkin.report.study import Study, studied
from fedkin.runs.command_folder import CommandFolder

SECTIONS = (
    header,
    sites,
    accuracies,
    all_metrics,
    costs,
    privacy,
    targets,
    curves,
    training,
    gains,
    who_was_selected,
    opinions,
    whose_updates_counted,
    who_learns_from_whom,
    settings,
    definitions,
)
ANY_SCRIPT = "'unsafe-inline'"
POLICY = f"default-src 'none'; script-src {ANY_SCRIPT}; style-src 'unsafe-inline'; img-src data: blob:"


def write(folder: Path) -> Path:
    """Write `report.html` into the folder of a run or a comparison, finished or not; returns its path."""
    return CommandFolder(folder).write_page(page(studied(folder)))


def page(study: Study) -> str:
    found = list(sections(study).values())
    stores = merged(found)
    main = "".join(section.html for section in found)
    texts = "".join(store(name, texts) for name, texts in stores.items())
    return shell(f"{study.name}: fedkin report", POLICY, scripts.style(), main, texts, scripts.script(list(stores)))


def sections(study: Study) -> dict[str, Section]:
    """The sections that have something to show, by the names of the functions that make them."""
    return {make.__name__: section for make in SECTIONS if (section := make(study))}


def shell(title: str, policy: str, style: str, main: str, stores: str, script: str) -> str:
    """A page that is whole in itself, with plotly.js in it; the policy names its two scripts."""
    own = [text.replace("\r\n", "\n") for text in (get_plotlyjs(), script)]
    policy = policy.replace(ANY_SCRIPT, " ".join(map(named_script, own)), 1)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
{main}
</main>
{stores}<script>{own[0]}</script>
<script>{own[1]}</script>
</body>
</html>
"""


def named_script(text: str) -> str:
    """A script as a content policy names it: by its digest."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def merged(sections: list[Section]) -> dict[str, dict[str, str]]:
    """What the scripts read, as JSON texts by id: first the figures, then the stores that these sections have."""
    figures: dict[str, Figure] = {name: figure for section in sections for name, figure in section.figures.items()}
    stores = {"figures": {name: json.dumps(figure, allow_nan=False) for name, figure in figures.items()}}
    for section in sections:
        for name, texts in section.data.items():
            stores[name] = stores.get(name, {}) | dict(texts)
    return {name: texts for name, texts in stores.items() if texts or name == "figures"}


def store(id: str, texts: Mapping[str, str]) -> str:
    """A script element that holds JSON by id."""
    inner = ",".join(f"{json.dumps(name)}:{text}" for name, text in texts.items()).replace("<", "\\u003c")
    return f'<script type="application/json" id="{id}">{{{inner}}}</script>\n'
