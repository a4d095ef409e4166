"""One HTML page that says what a run or a comparison found: the answer first, then the numbers, then the pictures.

The page is whole in itself: plotly.js lies in it once, and its content policy forbids loading anything from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from fedkin.compare import LOCAL
from fedkin.results import charts, files, kin, metrics, published
from fedkin.results.study import Entry, Study, studied
from fedkin.results.table import percent
from fedkin.results.words import (
    DEFINITIONS,
    SHOWN,
    by_size,
    cautions,
    headline,
    lede,
    listed,
    points,
    progress,
    score,
    shares,
    size,
)

STATISTICS = {"last": "last", "last10": "last 10", "best": "best", "validated": "by validation"}
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
    maps: dict[str, str] = {}
    sections = [top(study), beside(study), table(study)]
    sections += [part(study, figures) for part in (curves, gains, selected)]
    sections += [learned(study, figures, maps), settings(study), definitions()]
    stored = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    weights = ",".join(f"{json.dumps(name)}: {text}" for name, text in maps.items()).replace("<", "\\u003c")
    shown = f'<script type="application/json" id="kin">{{{weights}}}</script>\n' if maps else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(study.folder.resolve().name)}: fedkin report</title>
<style>{charts.STYLE}</style>
</head>
<body>
<main>
{"".join(sections)}
</main>
<script type="application/json" id="figures">{stored}</script>
{shown}<script>{get_plotlyjs()}</script>
<script>{charts.SCRIPT}{charts.maps() if maps else ""}</script>
</body>
</html>
"""


def section(title: str, *content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(content)}</section>\n"


def note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""


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
    sizes = study.clients.get("train")
    seeds = list(dict.fromkeys(trial.seed for trial in study.trials))
    every = resolved["evaluate_every"]
    return {
        "Data": (str(data.get("name", data.get("given"))), f"partition: {partition}" if partition else ""),
        "Clients": (f"{resolved['clients']:,}", f"{min(sizes):,} to {max(sizes):,} training samples" if sizes else ""),
        "Model": (str(about["model"]), f"{resolved['parameters']:,} parameters"),
        "Rounds": (f"{max(trial.asked for trial in study.trials):,}", ""),
        "Seeds": (f"{len(seeds)}", ", ".join(map(str, seeds))),
        "Scored": (
            "every round" if every == 1 else f"every {every} rounds",
            "" if every == 1 else "and after the last",
        ),
    }


def choice(name: str, label: str, options: dict[str, str]) -> str:
    """Buttons of which one is pressed; nothing to choose, nothing shown."""
    if len(options) < 2:
        return ""
    buttons = "".join(
        f'<label><input type="radio" name="{name}" value="{escape(value)}"{" checked" if i == 0 else ""}>'
        f"<span>{escape(text)}</span></label>"
        for i, (value, text) in enumerate(options.items())
    )
    return f'<fieldset class="choice"><legend>{escape(label)}</legend>{buttons}</fieldset>'


def chip(study: Study, name: str) -> str:
    colour = charts.styles(list(study.entries), LOCAL)[name][0]
    return f'<i class="chip" style="background:{colour}"></i>{escape(name)}'


Column = tuple[str, str, Callable[[str, dict[str, Any]], str]]  # group, title, HTML of a method's cell


def columns(study: Study) -> list[Column]:
    """The table's columns after the method."""
    found: list[Column] = []
    for kind in study.kinds:
        for average in ("micro",) if kind == "test" else metrics.AVERAGES:
            found.append((f"{kind}, %", average, lambda _, s, k=kind, a=average: statistics_cell(s, k, a)))  # type: ignore[misc]
    if study.against:
        for word in ("better", "worse"):
            found.append(("against alone", f"{word} off", lambda name, _, w=word: share_cell(study, name, w)))  # type: ignore[misc]
        found.append(("against alone", "verdict", lambda name, _: verdict_cell(study, name)))
    own = study.judged  # of each client, unless it is of the common test set
    for key, title in (("std_clients", "std"), ("worst10", "worst tenth")) if own != "test" else ():
        group = f"{own} over clients, %"
        found.append((group, title, lambda _, s, k=key: percent(s["fairness"].get(own, {}).get(k))))  # type: ignore[misc]
    found.append(("cost, a seed", "uploads", lambda _, s: f"{s['cost']['uploads']:,.0f}"))
    found.append(("cost, a seed", "exchanged", lambda _, s: size(s["cost"]["bytes_up"] + s["cost"]["bytes_down"])))
    found.append(("cost, a seed", "seconds", lambda _, s: f"{s['time']['total_s']:,.1f}"))
    return found


def statistics_cell(summary: dict[str, Any], kind: str, average: str) -> str:
    """Every statistic, of which the page shows the one chosen."""
    return "".join(f'<span class="{name}">{score(summary, kind, average, name)}</span>' for name in STATISTICS)


def share_cell(study: Study, name: str, word: str) -> str:
    return f"{100 * study.against[name][word]:.0f} %" if name in study.against else "-"


def verdict_cell(study: Study, name: str) -> str:
    """Only a win is marked."""
    verdict = escape(study.against[name]["verdict"]) if name in study.against else "-"
    return f'<b class="win">{verdict}</b>' if name in study.winners else verdict


def table(study: Study) -> str:
    wanted = columns(study)
    groups = list(dict.fromkeys(group for group, _, _ in wanted))
    widths = {group: sum(other == group for other, _, _ in wanted) for group in groups}
    over = "".join(f'<th colspan="{widths[group]}" scope="colgroup">{escape(group)}</th>' for group in groups)
    under = "".join(f'<th scope="col"{edge(wanted, i)}>{escape(wanted[i][1])}</th>' for i in range(len(wanted)))
    rows = "".join(row(study, entry, wanted) for entry in study.entries.values())
    scored = [values for s in study.summaries.values() for kind in s["accuracy"].values() for values in kind.values()]
    options = {name: text for name, text in STATISTICS.items() if any(values[name] is not None for values in scored)}
    several = any(len(entry.done) > 1 for entry in study.entries.values())
    explained = ["Accuracies are means over seeds ± their standard deviation." if several else "Of one seed."]
    explained += [last_ten(study)]
    last = ["over clients"] * (study.judged != "test") + ["against alone"] * bool(study.against)
    explained += [f"Columns {listed(last, 'and')} are of the last round."] if last else []
    explained += ["Only a tested win over training alone is marked."] if study.against else []
    return section(
        "Methods side by side" if len(study.entries) > 1 else "Accuracy and cost",
        choice("statistic", "Rounds", options),
        f'<div class="wide"><table id="comparison" data-shows="{SHOWN}">'
        f'<thead><tr><th rowspan="2" scope="col">method</th>{over}</tr><tr>{under}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>",
        note(" ".join(explained)),
    )


def last_ten(study: Study) -> str:
    """Which rounds 'last 10' means here, for with seldom scoring they reach far back."""
    trial = next((entry.done[0] for entry in study.entries.values() if entry.done), None)
    rounds = [line["round"] for line in trial.lines if "accuracy" in line][-10:] if trial else []
    if not rounds:
        return ""
    return f"'Last 10' here is the mean of {len(rounds)} scored rounds, from {rounds[0]} to {rounds[-1]}."


def edge(wanted: list[Column], i: int) -> str:
    """Marks the first column of a group, which gets a little air."""
    return ' class="first"' if i == 0 or wanted[i][0] != wanted[i - 1][0] else ""


def row(study: Study, entry: Entry, wanted: list[Column]) -> str:
    done, total = len(entry.done), len(entry.trials)
    some = f" <small>{done} of {total} seeds</small>" if 0 < done < total else ""
    head = f'<th scope="row">{chip(study, entry.name)}{some}</th>'
    if entry.summary is None:
        return f'<tr>{head}<td class="none" colspan="{len(wanted)}">no seed is finished</td></tr>'
    cells = "".join(f"<td{edge(wanted, i)}>{wanted[i][2](entry.name, entry.summary)}</td>" for i in range(len(wanted)))
    return f"<tr>{head}{cells}</tr>"


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
        '<div id="curves" class="chart"></div>',
        note(f"{seeds} A method that has no such model has no line. Click a method's name to hide it."),
    )


def fixed(name: str, value: str) -> str:
    """A choice already made, for the script."""
    return f'<input type="radio" name="{name}" value="{escape(value)}" checked hidden>'


def gains(study: Study, figures: dict[str, charts.Figure]) -> str:
    """Every client against itself alone; without Local nothing can be said, and that is said."""
    title = "Is it worth joining?"
    if LOCAL not in study.entries:
        text = "Local was not run, so nothing here says whether clients gain by joining; 'fedkin compare' adds it."
        return section(title, note(text))
    if len(study.entries) == 1:
        return section(title, note("Only training alone was run; 'fedkin compare' sets methods beside it."))
    if not study.gains:
        return section(title, note("No seed is finished and scored both by Local and by another method: no gains yet."))
    means = {name: np.round(100 * found.mean(0), 9) for name, found in study.gains.items()}
    known = ~np.isnan(np.stack(list(means.values()))).any(0)
    missing = int((~known).sum())
    span = charts.span_of([found[known] for found in means.values()])
    explained = "Each client's accuracy after local training in the last round, minus what it reaches alone, in "
    explained += (
        "percentage points, mean over seeds; all panels have one scale. Point at a client for its name and size."
    )
    mute = "client has no test samples and is" if missing == 1 else "clients have no test samples and are"
    explained += f" {missing} {mute} left out." if missing else ""
    panels = [panel(study, name, i, known, span, figures) for i, name in enumerate(means)]
    return section(title, note(explained), *panels, every_client(study, means))


def panel(
    study: Study, name: str, i: int, known: np.ndarray, span: tuple[float, float], figures: dict[str, charts.Figure]
) -> str:
    """One method: its clients sorted by gain, and their gain against their size."""
    found = study.gains[name]
    mean = np.round(100 * found.mean(0), 9)
    ids = np.flatnonzero(known)
    names = [str(study.clients["names"][k]) for k in ids]
    texts = [hover(study, found, int(k)) for k in ids]
    figures[f"bars-{i}"] = charts.bars(mean[ids], texts, names, span)
    pictures, sized = f'<div id="bars-{i}" class="chart"></div>', ""
    if "train" in study.clients:
        sizes = np.array(study.clients["train"])[ids]
        figures[f"sizes-{i}"] = charts.scatter(mean[ids], sizes, texts, span)
        pictures += f'<div id="sizes-{i}" class="chart"></div>'
        sized = by_size(study, found.mean(0))
    said = escape(" ".join([shares(study, name), sized, effort(study.entries[name], len(known))]))
    return f'<article><h3>{chip(study, name)}</h3><p>{said}</p><div class="pair">{pictures}</div></article>'


def effort(entry: Entry, n: int) -> str:
    """Being alone means training every round; a method that trains fewer clients is compared at less work."""
    share = float(selection(entry, n).mean())
    if entry.done[0].run.experiment["method"]["trains"] == "everyone" or share == 1:
        return ""
    return f"A client trains in {100 * share:.0f} % of the rounds here, alone in all of them."


def hover(study: Study, found: np.ndarray, k: int) -> str:
    """What pointing at a client says."""
    name = f"<b>client {escape(str(study.clients['names'][k]))}</b>"
    size = f"<br>{study.clients['train'][k]:,} training samples" if "train" in study.clients else ""
    seeds = ", ".join(points(value, 1) for value in found[:, k])
    return f"{name}{size}<br>gain {points(found[:, k].mean())} points" + (
        f"<br>by seed: {seeds}" if len(found) > 1 else ""
    )


def every_client(study: Study, means: dict[str, np.ndarray]) -> str:
    """The same as numbers, for the client that looks for itself."""
    about = {word: study.clients[word] for word in ("train", "test") if word in study.clients}
    head = ["client", *about, *(f"{name}, points" for name in means)]
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    rows = []
    for k, name in enumerate(study.clients["names"]):
        cells = [f"{values[k]:,}" for values in about.values()]
        cells += ["-" if np.isnan(gains[k]) else points(gains[k] / 100) for gains in means.values()]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(str(name))}</th>{row}</tr>')
    return (
        "<details><summary>Every client's gain, as a table</summary>"
        f'<div class="wide tall"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def selected(study: Study, figures: dict[str, charts.Figure]) -> str:
    """Who took part how often; of methods that select everybody a sentence is enough."""
    n = len(study.clients["names"])
    found = {name: selection(entry, n) for name, entry in study.entries.items() if entry.done}
    everybody = [name for name, share in found.items() if (share == 1).all()]
    some = {name: share for name, share in found.items() if name not in everybody}
    said = f"{listed(everybody, 'and')}: every client in every round." if everybody else ""
    if not some:
        return section("Who was selected", note(said)) if said else ""
    names = [str(name) for name in study.clients["names"]]
    figures["selected"] = charts.selections(some, names, charts.styles(list(study.entries), LOCAL))
    text = "Share of rounds in which each client was selected, mean over seeds. Chance alone makes the line fall a "
    text += "little; a steep fall means that some clients are preferred. "
    return section("Who was selected", '<div id="selected" class="chart"></div>', note(text + said))


def selection(entry: Entry, n: int) -> np.ndarray:
    """The share of rounds in which each client was selected, mean over finished seeds."""  # (n,)
    counts = [np.bincount(np.concatenate(t.run.selected()), minlength=n) / len(t.lines) for t in entry.done]
    share: np.ndarray = np.mean(counts, axis=0)
    return share


TRENDS = {
    "self_weight": ("mean weight of a client's own model", True),
    "neighbours": ("others with a weight above 0.1 %", True),
    "threshold": ("similarity threshold", False),
}


def learned(study: Study, figures: dict[str, charts.Figure], maps: dict[str, str]) -> str:
    """Who learns from whom, of methods that give every client a mixture of its own; nothing where there is none."""
    found = {name: kin.kinship(entry) for name, entry in study.entries.items()}
    known = {name: one for name, one in found.items() if one}
    if not known:
        return ""
    articles = []
    for i, (name, one) in enumerate(known.items()):
        packed = kin.packed(one, kin.BUDGET // len(known))
        maps |= {f"kin-{i}": packed.text} if packed.text else {}
        drawn = drawing(one, packed, f"kin-{i}") if packed.text else ""
        shape = "kin one" if drawn and len(packed.components) == 1 else "kin"
        articles.append(
            f"<article><h3>{chip(study, name)}</h3><p>{escape(spoken(one))}</p>"
            f'<div class="{shape}">{drawn}{trends(study, name, i, figures)}</div>'
            f"{note(remarks(study.entries[name], one, packed))}</article>"
        )
    text = "Each row is a client; its colours say how much of the model it is given comes from which other client. "
    text += "The scale is logarithmic, so that small weights show. What is a client's own, often most of it, is orange."
    return section("Who learns from whom", note(text), *articles)


def trends(study: Study, name: str, i: int, figures: dict[str, charts.Figure]) -> str:
    """The method's numbers over the rounds, those that it has."""
    colour, _ = charts.styles(list(study.entries), LOCAL)[name]
    places = []
    for word, (title, from_zero) in TRENDS.items():
        if values := study.entries[name].collaboration(word):
            figures[f"{word}-{i}"] = charts.trend(values, title, colour, from_zero)
            places.append(f'<div id="{word}-{i}" class="chart"></div>')
    return f'<div class="trio">{"".join(places)}</div>' if places else ""


def spoken(one: kin.Kinship) -> str:
    """What the weights mean, and of which rounds that is said."""
    first, last = one.late[0], one.late[-1]
    when = f"round {last}" if first == last else f"rounds {first} to {last}"
    return f"{' '.join(kin.sentences(one))} (Seed {one.trial.seed}, {when}.)"


def drawing(one: kin.Kinship, packed: kin.Packed, place: str) -> str:
    """The panels with their slider and their legend."""
    n = len(one.clients["names"])
    most = max(len(one.stored[r].ids) for r in packed.rounds)
    some = any(len(one.stored[r].ids) < n for r in packed.rounds)
    views = {"all": "all clients", "selected": "those selected"}
    if n > kin.WHOLE or 4 * most < n:
        views = dict(reversed(views.items()))  # the first is shown first
    view = choice(f"{place}-view", "Show", views).replace('class="choice"', 'class="choice view"') if some else ""
    keys = f"<span>from another client</span>{charts.ramp(packed.low, packed.high)}"
    keys += f'<span><i style="background:{charts.gradient(charts.OWN)}"></i>its own, 0 to 100 %</span>'
    keys += '<span><i class="nothing"></i>nothing</span>'
    keys += "<span><i></i>not selected in this round</span>" if some else ""
    panels = [panel_of(one, packed, i) for i in range(min(kin.PANELS, len(packed.components)))]
    return (
        f'<div id="{place}" data-view="{next(iter(views))}"><div class="steps">{slider(packed)}</div>{view}'
        f'<div class="panels">{"".join(panels)}</div><div class="keys">{keys}</div></div>'
    )


def slider(packed: kin.Packed) -> str:
    """Over the stored rounds, at first on the last one."""
    last = len(packed.rounds) - 1
    moved = '<button type="button">Play</button>'
    moved += f'<input type="range" aria-label="stored round" min="0" max="{last}" value="{last}">'
    return f"{moved if last else ''}<output>round {packed.rounds[-1]}</output>"


def panel_of(one: kin.Kinship, packed: kin.Packed, i: int) -> str:
    """One component; where there are more than panels, each panel can be set to any of them."""
    names = [one.title(component) for component in packed.components]
    at = kin.spaced(range(len(names)), kin.PANELS)[i]
    head = escape(names[at])
    if len(names) > kin.PANELS:
        chosen = {at: " selected"}
        options = [f'<option value="{k}"{chosen.get(k, "")}>{escape(text)}</option>' for k, text in enumerate(names)]
        head = f'<select aria-label="{one.word}">{"".join(options)}</select>'
    body = '<small></small><div class="map"></div>'
    return f'<div class="panel" data-component="{at}"><h4>{head}</h4>{body}</div>'


def remarks(entry: Entry, one: kin.Kinship, packed: kin.Packed) -> str:
    """Of which seed, in which order, and what is missing."""
    said = [f"The map is of seed {one.trial.seed}." if packed.text else ""]
    said += [f"That seed is unfinished ({progress(one.trial)})." if one.trial.summary is None else ""]
    said += ["The lines are means over seeds." if len(entry.done or entry.trials) > 1 else ""]
    by_class = "Clients are ordered so that those with like shares of classes are side by side."
    by_number = "Clients are ordered by number, since their classes were not written down."
    said += [(by_number if one.labels is None else by_class) if packed.text else "", packed.note]
    return " ".join(text for text in said if text)


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
