"""Whose updates counted: how relevant each client seemed, how often it was left out, and whether that was right."""

from __future__ import annotations

from html import escape

from fedkin.report.charts.filtering import divergences, left_out, qualities
from fedkin.report.charts.style import Figure
from fedkin.report.findings.filtering import Filtering, filtering_of
from fedkin.report.findings.participation import mean_of
from fedkin.report.formats import whole_percent
from fedkin.report.html import Section, chart, chip, note, titled
from fedkin.report.study import Study
from fedkin.report.words import joined, listed, unfinished
from fedkin.runs.run import Run


def whose_updates_counted(study: Study) -> Section | None:
    """A panel a method that leaves updates out; None if there is none."""
    panels = []
    for i, (name, (run, one)) in enumerate(study.drawn.items()):
        if found := filtering_of(run, one):
            panels.append(panel(study, name, i, run, found))
    if not panels:
        return None
    text = "The server may find a client irrelevant to the task and leave its update out of the common model. "
    text += "Divergence says how little a client's updates are like those of the others: the larger, the less relevant "
    text += "it seems."
    html = titled("Whose updates counted", note(text), *(one.html for one in panels))
    return Section(html, {id: figure for one in panels for id, figure in one.figures.items()})


def panel(study: Study, name: str, i: int, run: Run, found: Filtering) -> Section:
    """One method, with the figures for which its run has numbers."""
    figures: dict[str, Figure] = {}
    places = []
    if found.divergence:
        figures[f"divergence-{i}"] = divergences(found)
        places.append(chart(f"divergence-{i}", f"{name}: how little each client's updates are like the others'"))
    if found.clients.kept is not None:
        figures[f"out-{i}"] = left_out(found)
        places.append(chart(f"out-{i}", f"{name}: share of rounds in which each client's update did not count"))
    if found.quality:
        figures[f"filter-{i}"] = qualities(found)
        places.append(chart(f"filter-{i}", f"{name}: precision, recall, F1 and AUC of the filter over the rounds"))
    html = (
        f"<article><h3>{chip(study, name)}</h3><p>{escape(spoken(found))}</p>{''.join(places)}"
        f"{note(remarks(run, found))}</article>"
    )
    return Section(html, figures)


def spoken(found: Filtering) -> str:
    said = [last_quality(found), often_left_out(found)]
    truth = found.clients.irrelevant
    if truth is not None and found.divergence:
        apart = [f"{float(mean_of(found.mean[mask])):.2f}" for mask in (truth, ~truth)]
        said.append(f"The mean divergence of irrelevant clients is {apart[0]}, of relevant ones {apart[1]}.")
    return joined(said)


def last_quality(found: Filtering) -> str:
    """How good the filter was in the last round of which that is known. The sentence has numbers of clients if it is
    known which clients are irrelevant."""
    if not found.quality:
        return ""
    clients = found.clients
    if clients.irrelevant is None and clients.known_irrelevant is not None:
        return "No client is irrelevant here: whoever is left out is left out wrongly."
    r = max(found.quality)
    quality = found.quality[r]
    when = "In the last round" if r == clients.rounds else f"In round {r:,}"
    known = {word: value for word in ("recall", "precision") if (value := quality.get(word)) is not None}
    parts = [f"a {word} of {whole_percent(value)}" for word, value in known.items()]
    said = "had " + (listed(parts, "and") if parts else "nothing to find")
    if clients.irrelevant is not None and clients.kept is not None:
        said = found_and_left_out(found, r)
    auc = quality.get("auc")
    return f"{when} the filter {said}{'' if auc is None else f'; AUC {auc:.3f}'}."


def found_and_left_out(found: Filtering, round: int) -> str:
    """How many irrelevant clients the filter found, and how many of the clients it left out were irrelevant."""
    caught, right = (whole_percent(found.quality[round].get(word)) for word in ("recall", "precision"))
    bad, out = found.verdicts(round)
    both = int((bad & out).sum())
    said = f"found {both:,} of {int(bad.sum()):,} irrelevant clients (recall {caught})"
    left = f"{both:,} of the {int(out.sum()):,} it left out were irrelevant (precision {right})"
    return said + (f", and {left}" if out.any() else "; it left nobody out")


def often_left_out(found: Filtering) -> str:
    """How many clients were left out in more than half of their rounds."""
    clients = found.clients
    if clients.kept is None:
        return ""
    often, truth = found.out > 0.5, clients.irrelevant
    number = int(often.sum())
    was = "was" if number == 1 else "were"
    said = f"{number:,} of {clients.n:,} clients {was} left out in more than half of the rounds with a reply"
    if truth is None:
        return f"{said}."
    right = int((often & truth).sum())
    wrong = f"{number - right:,}" if number > right else "none"
    return f"{said}: {right:,} of the {int(truth.sum()):,} irrelevant ones, and {wrong} of the others."


def remarks(run: Run, found: Filtering) -> str:
    said = [f"Seed {run.seed}.", unfinished(run)]
    if found.divergence:
        many = f"{len(found.divergence)} recorded rounds" if len(found.divergence) > 1 else "the one recorded round"
        said.append(f"Divergence is scaled to run from 0 to 1 in each round; bars: mean of {many}, dots: the last.")
    tall = max(len(ids) for ids in found.groups)
    said += [f"A bar or dot is the mean of up to {tall:,} clients, so that the page stays small." if tall > 1 else ""]
    wide = found.rounds_a_point
    return joined([*said, f"The filter's lines are means of {wide} rounds." if wide > 1 else ""])
