"""The answers in sentences, as the terminal, the report and `print(found)` have them. They are read from JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fedkin import metrics
from fedkin.answers.site import ALONE, FEW, FEWEST_ROWS, JOIN, UNCLEAR
from fedkin.methods.titles import title

ORDER = (JOIN, ALONE, UNCLEAR, FEW)  # of verdicts in a list, the clear ones first
SHOWN = 20  # sites that a terminal lists


def number(value: float, percent: bool, signed: bool = False) -> str:
    """A gain as sentences have it: in points with one digit, or a plain number with three, with a proper minus."""
    text = f"{100 * value:+.1f}" if percent else f"{value:+.3g}"
    text = text if float(text) else text.lstrip("+-")
    return (text if signed else text.lstrip("+")).replace("-", "−")


def amount(metric: str, value: float) -> str:
    """A gain with its unit: '+7.4 points', '+2.0 points of ROC AUC', '+0.12 in R2'."""
    found = metrics.METRICS[metric]
    if found.percent:
        return number(value, True, True) + (" points" if metric == "accuracy" else f" points of {found.label}")
    better = "" if found.higher_is_better else "better by " if value >= 0 else "worse by "
    said = number(abs(value), False) if better else number(value, False, True)
    return f"{better}{said} in {found.label}"


def measured(site: dict[str, Any], metric: str) -> str:
    """The gain of the best method, its interval and the test rows."""
    percent = metrics.METRICS[metric].percent
    low, high = number(site["low"], percent), number(site["high"], percent)
    return f"{amount(metric, site['gain'])} (95 % interval {low} to {high}, {rows(site['rows'], site.get('rarer'))})"


def rows(count: int, rarer: int | None = None) -> str:
    """The number of test rows, and of those of rarer classes if they are few."""
    few = f", {rarer} of them of the rarer classes" if rarer is not None and rarer < FEWEST_ROWS else ""
    return f"{count:,} test row" + ("" if count == 1 else "s") + few


def sentence(site: dict[str, Any], metric: str) -> str:
    """The answer for one site."""
    name, verdict = called(site["site"]), site["verdict"]
    if site["method"] is None or (verdict == FEW and site["gain"] is None):
        return f"{name}: {FEW} ({rows(site['rows'], site.get('rarer'))})."
    check = " Check its labels first." if site["looks"] == "mislabelled" else ""
    if verdict == JOIN:
        kin = f" Kin: {together(site['kin'])}." if site["kin"] else ""
        more = f" But {title(site['better_alone'])} reaches more there." if site["better_alone"] else ""
        return f"{name}: join, with {title(site['method'])}: {measured(site, metric)}.{kin}{more}{check}"
    return f"{name}: {verdict}. Best: {title(site['method'])}, {measured(site, metric)}.{check}"


def called(name: str) -> str:
    """A site's name; a bare number is a client's number."""
    return f"Client {name}" if name.isdigit() else name


def together(names: Sequence[str], word: str = ",") -> str:
    """Several sites in few words: 'Hospitals 2, 5' for Hospital 2 and Hospital 5."""
    names = [called(name) for name in names]
    parts = [re.fullmatch(r"(.*\D)\s*(\d+)", name) for name in names]
    heads = {part.group(1).rstrip() if part else None for part in parts}
    if len(names) > 1 and len(heads) == 1 and None not in heads:
        return f"{heads.pop()}s {listed([part.group(2) for part in parts if part], word)}"
    return listed(names, word)


def listed(names: Sequence[str], word: str) -> str:
    """Names with commas between them, and before the last one a comma or the word."""
    if word == "," or len(names) < 2:
        return ", ".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def suspicions(answers: dict[str, Any]) -> list[str]:
    """Who looks mislabelled or different, and how many filters left them out; sites with the same count together."""
    said = []
    for looks in ("mislabelled", "different"):
        groups: dict[tuple[int, int], list[str]] = {}
        for site in answers["sites"]:
            if site["looks"] == looks:
                groups.setdefault((len(site["left_out_by"]), site["opinions"]), []).append(site["site"])
        for (count, of), names in sorted(groups.items(), reverse=True):
            one = len(names) == 1
            verb = "looks" if one else "look"
            rest = (
                "mislabelled"
                if looks == "mislabelled"
                else "different from the others, in its labels or its data"
                if one
                else "different from the others, in their labels or their data"
            )
            left = f"{count} filter{'s' if count != 1 else ''} of {of} left {'it' if one else 'them'} out"
            said.append(f"{together(names, 'and')} {verb} {rest}: {left}.")
    return said


def overview(answers: dict[str, Any]) -> str:
    """How many sites should do what: '9 of 12 sites: join; 2 stay alone; 1 with doubtful labels.'"""
    sites = answers["sites"]
    fit = [site for site in sites if site["looks"] != "mislabelled"]
    counts = {verdict: sum(site["verdict"] == verdict for site in fit) for verdict in ORDER}
    said = [
        f"{count} of {len(sites)} sites: {verdict}" if verdict == JOIN else f"{count} {verdict}"
        for verdict, count in counts.items()
        if count or verdict == JOIN
    ]
    said += [f"{len(sites) - len(fit)} with doubtful labels"] if len(fit) < len(sites) else []
    return "; ".join(said) + "."


def headline(answers: dict[str, Any]) -> str:
    """The answer of all sites in one line: for how many joining pays, and who looks mislabelled."""
    sites = answers["sites"]
    pays = sum(site["verdict"] == JOIN and site["looks"] != "mislabelled" for site in sites)
    of = f"{len(sites)} site" + ("" if len(sites) == 1 else "s")
    said = f"Joining pays for {pays} of {of}." if pays else f"Joining clearly pays for none of {of}."
    wrong = [site["site"] for site in sites if site["looks"] == "mislabelled"]
    return said + (f" {together(wrong, 'and')} {'looks' if len(wrong) == 1 else 'look'} mislabelled." if wrong else "")


def in_order(answers: dict[str, Any]) -> list[dict[str, Any]]:
    """The sites, suspicious ones first, then by how clear the answer is; otherwise as they are."""
    return sorted(answers["sites"], key=lambda site: (site["looks"] != "mislabelled", ORDER.index(site["verdict"])))


def lines(answers: dict[str, Any], most: int = SHOWN) -> list[str]:
    """Everything a terminal says first: the overview, who is suspicious, a sentence a site, and the notes."""
    sites = in_order(answers) if len(answers["sites"]) > most else answers["sites"]
    said = [overview(answers), *suspicions(answers)]
    said += [sentence(site, answers["metric"]) for site in sites[:most]]
    if len(sites) > most:
        said.append(f"... and {len(sites) - most} more sites; the report has them all.")
    return said + list(answers["notes"])
