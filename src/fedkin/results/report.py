"""One HTML page that says what a run or a comparison found: the answer first, then the numbers, then the pictures.

The page is whole in itself: plotly.js lies in it once, and its content policy forbids loading anything from elsewhere.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from plotly.offline import get_plotlyjs

from fedkin.compare import LOCAL
from fedkin.results import charts, files, look, metrics, published
from fedkin.results.attendance import present
from fedkin.results.columns import costs, table
from fedkin.results.joining import gains
from fedkin.results.kinmaps import learned
from fedkin.results.pieces import chart, chip, choice, fixed, note, section
from fedkin.results.relevance import counted
from fedkin.results.scores import opinions
from fedkin.results.selection import selected
from fedkin.results.study import Study, studied
from fedkin.results.words import DEFINITIONS, cautions, headline, lede

KIND_LABELS = {"post": "after local training (post)", "global": "common model (global)"}
KIND_LABELS |= {"recv": "as received (recv)", "test": "common test set (test)"}
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write(folder: Path) -> Path:
    """Write `report.html` into the folder of a run or a comparison, finished or not; returns its path."""
    path = folder / "report.html"
    files.write(path, page(studied(folder)).encode())
    return path


def page(study: Study) -> str:
    figures: dict[str, charts.Figure] = {}
    rounds: dict[str, str] = {}
    maps: dict[str, str] = {}
    known = present(study)
    sections = [top(study), beside(study), table(study), costs(study)]
    sections += [curves(study, figures), gains(study, figures), selected(study, known, figures, rounds)]
    sections += [opinions(study, known, figures), counted(study, known, figures)]
    sections += [learned(study, figures, maps), settings(study), definitions()]
    drawn = {name: json.dumps(figure, allow_nan=False) for name, figure in figures.items()}
    stored = store("figures", drawn) + store("rounds", rounds) + store("kin", maps)
    script = look.SCRIPT + (look.rounds() if rounds else "") + (look.maps() if maps else "")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(study.folder.resolve().name)}: fedkin report</title>
<style>{look.STYLE}</style>
</head>
<body>
<main>
{"".join(sections)}
</main>
{stored}<script>{get_plotlyjs()}</script>
<script>{script}</script>
</body>
</html>
"""


def store(id: str, texts: dict[str, str]) -> str:
    """JSON by name, for the script to read; nothing of what only some pages have."""
    if not texts and id != "figures":
        return ""
    inner = ",".join(f"{json.dumps(name)}:{text}" for name, text in texts.items()).replace("<", "\\u003c")
    return f'<script type="application/json" id="{id}">{{{inner}}}</script>\n'


def top(study: Study) -> str:
    said = "".join(f"<p>{escape(text)}</p>" for text in lede(study))
    warned = "".join(f'<p class="caution">{escape(text)}</p>' for text in cautions(study))
    facts = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}<small>{escape(more)}</small></dd></div>"
        for k, (v, more) in what(study).items()
    )
    name = escape(study.folder.resolve().name)
    return (
        f'<header><p class="name">fedkin report · {name}</p><h1>{escape(headline(study))}</h1>'
        f'<div class="lede">{said}</div>{warned}<dl class="facts">{facts}</dl></header>\n'
    )


def what(study: Study) -> dict[str, tuple[str, str]]:
    """What was run: a word or a number, and a little more in small print."""
    about, resolved = study.experiment, study.experiment["resolved"]
    data = about["data"]
    partition = data.get("partition") or resolved.get("source", {}).get("partition")
    small = [
        f"{word}: {said}" for word, said in (("partition", partition), ("irrelevant", data.get("irrelevant"))) if said
    ]
    sizes = study.clients.get("train")
    seeds = list(dict.fromkeys(trial.seed for trial in study.trials))
    every = resolved["evaluate_every"]
    return {
        "Data": (str(data.get("name", data.get("given"))), "; ".join(small)),
        "Clients": (f"{resolved['clients']:,}", f"{min(sizes):,} to {max(sizes):,} training samples" if sizes else ""),
        "Model": (str(about["model"]), f"{resolved['parameters']:,} parameters"),
        "Rounds": (f"{max(trial.asked for trial in study.trials):,}", ""),
        "Seeds": (f"{len(seeds)}", ", ".join(map(str, seeds))),
        "Scored": (
            "every round" if every == 1 else f"every {every} rounds",
            "" if every == 1 else "and after the last",
        ),
    }


def beside(study: Study) -> str:
    """A preset's rows beside the published numbers."""
    return section("Beside the published numbers", published.html(study.preset)) if study.preset else ""


def curves(study: Study, figures: dict[str, charts.Figure]) -> str:
    found = study.kinds
    if not found:
        return section("Accuracy over the rounds", note("No round has been scored yet."))
    series = []
    for name, entry in study.entries.items():
        label = name if entry.done else f"{name} (unfinished)"
        for kind in found:
            for average in metrics.AVERAGES:
                if values := entry.values(kind, average):
                    series.append((name, label, f"{kind}/{average}", values))
    figures["curves"] = charts.curves(series, charts.styles(list(study.entries), LOCAL), f"{found[0]}/macro")
    which = choice("kind", "Which model", {kind: KIND_LABELS[kind] for kind in found}) or fixed("kind", found[0])
    averages = {"macro": "mean over clients (macro)", "micro": "over all samples (micro)"}
    one = all(len(entry.done) < 2 for entry in study.entries.values())
    seeds = "One seed, so no band." if one else "Line: mean over seeds; band: from the worst seed to the best."
    return section(
        "Accuracy over the rounds",
        f'<div class="choices">{which}{choice("average", "Average", averages)}</div>',
        chart("curves", "Accuracy over the rounds, a line a method"),
        note(f"{seeds} A method that has no such model has no line. Click a method's name to hide it."),
    )


def settings(study: Study) -> str:
    """The resolved experiment of each method, of its first seed that has begun."""
    blocks = []
    for name, entry in study.entries.items():
        begun = [trial for trial in entry.trials if (trial.folder / "experiment.json").exists()]
        if begun:
            text = escape(json.dumps(begun[0].run.experiment, indent=2))
            seed = f"<small>as run with seed {begun[0].seed}</small>"
            blocks.append(f"<details><summary>{chip(study, name)} {seed}</summary><pre>{text}</pre></details>")
    return section("Settings", *blocks)


def definitions() -> str:
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in DEFINITIONS.items())
    return section("What the words mean", f'<dl class="words">{words}</dl>')
