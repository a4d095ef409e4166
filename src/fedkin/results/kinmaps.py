"""Who learns from whom, as a section of the report; `kin` has the numbers."""

from __future__ import annotations

from html import escape

from fedkin.compare import LOCAL
from fedkin.results import charts, kin
from fedkin.results.pieces import chart, chip, choice, note, section
from fedkin.results.study import Entry, Study
from fedkin.results.words import progress

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
        if values := study.entries[name].numbers("collaborate", word):
            figures[f"{word}-{i}"] = charts.trend(values, title, colour, from_zero)
            places.append(chart(f"{word}-{i}", f"{name}: {title}, over the rounds"))
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
