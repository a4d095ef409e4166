"""Is it worth joining? The answer for each site, with a search box: verdict, method, gain, kin, and who left it out."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from fedkin import metrics
from fedkin.answers.sentences import ORDER, amount, called, number, overview, sentence, suspicions, together
from fedkin.methods.titles import title
from fedkin.report.html import Section, note, titled
from fedkin.report.study import Study

TITLE = "Is it worth joining?"
WIDTH, HEIGHT, EDGE = 190, 22, 6  # of the drawn interval, in pixels
FAR = 90  # the percentile of interval ends that the picture's scale reaches


def sites(study: Study) -> Section | None:
    """The section; nothing where there is no answer, because no method was compared with Local or not yet."""
    found = study.sites
    if not found:
        return None
    said = "".join(f"<p>{escape(text)}</p>" for text in [overview(found), *suspicions(found)])
    search = (
        '<p class="search"><label>Find a site <input type="search" id="site-search" autocomplete="off"></label> '
        '<output id="site-count"></output></p>'
    )
    html = titled(TITLE, f'<div class="lede">{said}</div>', search, table(found), note(explained(found)))
    return Section(html, data={"sites": {"count": str(len(found["sites"]))}})


def table(found: dict[str, Any]) -> str:
    """A row for each site."""
    gain = f"gain, {unit(found['metric'])}"
    heads = ["site", "answer", gain, "95 % interval", "method", "test rows", "kin"]
    heads += ["left out by"] if found.get("filters") else []
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    span = scale(found["sites"])
    rows = "".join(row(site, found, span) for site in found["sites"])
    inner = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide tall"><table id="site-table">{inner}</table></div>'


def row(site: dict[str, Any], found: dict[str, Any], span: float) -> str:
    metric, known = found["metric"], site["gain"] is not None
    percent = metrics.METRICS[metric].percent
    place = ORDER.index(site["verdict"])
    looks = f' <span class="suspect">looks {escape(site["looks"])}</span>' if site["looks"] else ""
    method = title(site["method"]) if site["method"] else "-"
    alone = f' title="against {escape(title(site["against"]))}"' if site["against"] else ""
    cells = [
        f'<td class="said"><span class="verdict-{place}">{escape(site["verdict"])}</span>{looks}</td>',
        f"<td>{escape(number(site['gain'], percent, True)) if known else '-'}</td>",
        f'<td class="drawn">{drawn(site, metric, span) if known else "-"}</td>',
        f'<td class="said"{alone}>{escape(method)}</td>',
        f"<td>{site['rows']:,}</td>",
        f'<td class="said">{escape(together(site["kin"])) if site["kin"] else "-"}</td>',
    ]
    if found.get("filters"):
        by = site["left_out_by"]
        text = f"{len(by)} of {site['opinions']} <small>{escape(', '.join(by))}</small>" if by else "nobody"
        cells.append(f'<td class="said">{text}</td>')
    said = escape(sentence(site, metric))
    return f'<tr title="{said}"><th scope="row">{escape(called(site["site"]))}</th>{"".join(cells)}</tr>'


def unit(metric: str) -> str:
    """The unit of a gain in a column's title."""
    found = metrics.METRICS[metric]
    if found.percent:
        return "points" if metric == "accuracy" else f"points of {found.label}"
    return found.label if found.higher_is_better else f"{found.label} (positive is better)"


def scale(every: list[dict[str, Any]]) -> float:
    """How far the pictures reach on either side of 0: one scale for all sites, which a few wide intervals leave."""
    usual = [site for site in every if site["gain"] is not None and site["looks"] != "mislabelled"]
    ends = [abs(site[word]) for site in usual for word in ("low", "high")]
    return max(float(np.percentile(ends, FAR)) if ends else 0.0, 1e-9)


def drawn(site: dict[str, Any], metric: str, span: float) -> str:
    """The interval as a small picture: a dot for the gain, whiskers to the ends, and a line at 0."""

    def x(value: float) -> float:
        return round(EDGE + (WIDTH - 2 * EDGE) * (min(max(value / span, -1.0), 1.0) + 1) / 2, 1)

    middle, low, high = HEIGHT / 2, x(site["low"]), x(site["high"])
    percent = metrics.METRICS[metric].percent
    label = f"{amount(metric, site['gain'])}, from {number(site['low'], percent)} to {number(site['high'], percent)}"
    ends = "".join(
        f'<line x1="{at}" y1="{middle - 4}" x2="{at}" y2="{middle + 4}"/>'
        if abs(value) <= span
        else f'<path d="M{at} {middle}l{-4 if at > x(0) else 4} -4v8z"/>'  # an arrow: the interval goes on
        for at, value in ((low, site["low"]), (high, site["high"]))
    )
    tone = "up" if site["low"] > 0 else "down" if site["high"] < 0 else "none"
    return (
        f'<svg class="interval {tone}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"<title>{escape(label)}</title>"
        f'<line class="zero" x1="{x(0)}" y1="0" x2="{x(0)}" y2="{HEIGHT}"/>'
        f'<line x1="{low}" y1="{middle}" x2="{high}" y2="{middle}"/>'
        f"{ends}"
        f'<circle cx="{x(site["gain"])}" cy="{middle}" r="4"/></svg>'
        f"<small>{escape(number(site['low'], percent))} to {escape(number(site['high'], percent))}</small>"
    )


def explained(found: dict[str, Any]) -> str:
    """How to read the table."""
    said = [
        "A gain is what the site's model reaches with this method beyond training alone with the same budget; the "
        "interval holds for all compared methods at once, so the best one may be picked. Point at a row for its "
        "sentence.",
        *found["notes"],
    ]
    if found.get("filters"):
        said.append(
            "Filters that were asked whether a site's updates and labels fit: " + ", ".join(found["filters"]) + ". "
            "A site looks mislabelled only if the other sites' models contradict its labels."
        )
    return " ".join(said)
