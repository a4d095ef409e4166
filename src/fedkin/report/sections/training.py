"""What the rounds say of training: the relevant clients' training loss, and PFedRe's gap and skew."""

from __future__ import annotations

from dataclasses import dataclass

from fedkin.report.charts.curves import number_curves
from fedkin.report.charts.style import Figure
from fedkin.report.html import Section, chart, note, styles, titled
from fedkin.report.study import Study, Values
from fedkin.report.words import listed


@dataclass(frozen=True)
class Shown:
    """A number that rounds record beyond scores: where it stands in a round's line, and what it is."""

    group: str
    word: str
    id: str
    title: str
    about: str
    middle: bool = False  # whether single values are so far off that the axis shows the middle of them


SHOWN = (
    Shown(
        "train",
        "relevant_loss",
        "relevant-loss",
        "training loss of the relevant clients",
        "Mean over the training samples of the clients that are known to be relevant, of the common model or, where a "
        "method has none, of each client's own. Irrelevant clients pull it up; a good filter does not let them.",
    ),
    Shown(
        "heterogeneity",
        "gap",
        "gap",
        "personal-global gap",
        "Gap: how much lower the clients' training losses are with their own models than with the common one, weighted "
        "by samples (PFedRe's definition 2).",
    ),
    Shown(
        "heterogeneity",
        "skew",
        "skew",
        "selection skew",
        "Skew: what the clients that counted lose by training from the common model in place of having their own one, "
        "divided by what all lose; 1 if who counts has nothing to do with it (PFedRe's definition 3). It is undefined "
        "where nobody loses anything, and far off shortly before; the axis shows the middle of the values, a double "
        "click all of them.",
        middle=True,
    ),
)


def training(study: Study) -> Section | None:
    """A picture a number, a line a method; None where no round records any."""
    figures: dict[str, Figure] = {}
    places = []
    for one in SHOWN:
        if series := lines_of(study, one):
            figures[one.id] = number_curves(series, styles(study), one.title, one.middle)
            places.append(chart(one.id, f"{one.title} over the rounds, a line a method") + note(one.about))
    if not figures:
        return None
    words = {"relevant-loss": "training loss of the relevant clients", "gap": "gap", "skew": "skew"}
    title = listed([word for id, word in words.items() if id in figures], "and")
    return Section(titled(f"{title[0].upper()}{title[1:]}", *places), figures)


def lines_of(study: Study, one: Shown) -> list[tuple[str, str, Values]]:
    """The methods that have a number, with its values by round: none in a round in which it is not defined."""
    found = []
    for name, entry in study.entries.items():
        values = entry.numbers(one.group, one.word)
        if values:
            run = next(run for run in entry.done or entry.runs if any(one.group in line for line in run.lines))
            rounds = [line["round"] for line in run.lines if one.group in line]
            label = name if entry.done else f"{name} (unfinished)"
            found.append((name, label, {r: values.get(r, []) for r in rounds}))
    return found
