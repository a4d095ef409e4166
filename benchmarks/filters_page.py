"""The tables of docs/papers/robust.md, made from the lines that `filters.py` wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "papers" / "robust.md"
BEGIN, END = "<!-- filters -->", "<!-- end of filters -->"
ATTACKED = ("everyone", "alignment, paper's rule", "alignment", "L1", "robust", "oracle")
CLEAN = ("alignment, paper's rule", "alignment", "L1", "Multi-Krum", "robust")
JUDGES = ("alignment, paper's rule", "alignment", "L1", "robust")
HEADS = {"alignment, paper's rule": "alignment", "alignment": "alignment, gap 3"}  # as lines and as the page call them
Line = dict[str, Any]


def mean(lines: Sequence[Line], name: str) -> float | None:
    """The mean over those lines that have this number; None where none has it."""
    values = [line[name] for line in lines if line.get(name) is not None]
    return fmean(values) if values else None


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if value >= 0.995 else f"{value:.3f}".lstrip("0")


def complete(lines: Sequence[Line], filters: Sequence[str]) -> list[Line]:
    """The lines of those games that every one of these filters has played: others would compare unlike things."""
    keys = ("data", "alpha", "kind", "share", "part", "seed")
    by: dict[tuple[Any, ...], dict[str, Line]] = {}
    for line in lines:
        by.setdefault(tuple(line[key] for key in keys), {})[line["filter"]] = line
    return [line for found in by.values() if set(filters) <= set(found) for line in found.values()]


def table(lines: Sequence[Line], rows: dict[str, Callable[[Line], bool]], name: str, filters: Sequence[str]) -> str:
    """A row of each group of games, a column of each filter, and how many games a cell is the mean of."""
    head = ["| |", *(f" {HEADS.get(column, column)} |" for column in filters), " games |"]
    text = ["".join(head), "|---|" + "---:|" * (len(filters) + 1)]
    for row, belongs in rows.items():
        some = complete([line for line in lines if belongs(line)], filters)
        if some:
            cells = [shown(mean([line for line in some if line["filter"] == column], name)) for column in filters]
            number = sum(line["filter"] == filters[0] for line in some)
            text.append(f"| {row} | " + " | ".join(cells) + f" | {number} |")
    return "\n".join(text)


def tables(lines: Sequence[Line]) -> str:
    """All tables of the page."""
    lines = [line for line in lines if "refused" not in line]
    attacked = [line for line in lines if line["kind"] != "none"]
    kinds = list(dict.fromkeys(line["kind"] for line in attacked))
    by_kind = {kind: (lambda line, kind=kind: line["kind"] == kind) for kind in kinds}
    by_kind["all attacks"] = lambda line: True
    where = [(data, alpha) for data in ("fashion_mnist", "mnist", "heart") for alpha in (0.1, 0.5)]
    by_data = {
        f"{data}, Dirichlet {alpha}": (lambda line, at=(data, alpha): (line["data"], line["alpha"]) == at)
        for data, alpha in where
    }
    clean = {
        f"{data}, Dirichlet {alpha}, {told}": (
            lambda line, at=(data, alpha, part): (line["data"], line["alpha"], line["part"]) == at
        )
        for data, alpha in where
        for part, told in ((1.0, "all"), (0.4, "two fifths"))
    }
    shares = {
        f"{100 * share:.0f} % irrelevant, {told}": (
            lambda line, at=(share, part): (line["share"], line["part"]) == at and line["data"] != "heart"
        )
        for share in (0, 0.1, 0.3, 0.4)
        for part, told in ((1.0, "all"), (0.4, "two fifths"))
    }
    hard = [line for line in attacked if (line["data"], line["alpha"], line["part"]) == ("fashion_mnist", 0.1, 1.0)]
    images = [line for line in attacked if line["data"] != "heart"]
    most = [line for line in hard if line["share"] == 0.3]
    tenth = [line for line in hard if line["share"] == 0.1 and line["kind"].startswith("scale")]
    parts = [
        "**Fashion-MNIST, Dirichlet 0.1, all clients take part, 30 % irrelevant**: test accuracy.\n",
        table(most, by_kind, "test", (*ATTACKED, "z-scores")),
        "\n**The same with 10 % irrelevant.**\n",
        table(tenth, {kind: by_kind[kind] for kind in kinds if kind.startswith("scale")}, "test", ATTACKED),
        "\n**Images, all games by attack**: test accuracy.\n",
        table(images, by_kind, "test", ATTACKED),
        "\n**All games by data**: test accuracy over all attacks.\n",
        table(attacked, by_data, "test", ATTACKED),
        "\n**False alarms where nobody is irrelevant**: the share of updates that did not count, over all rounds.\n"
        "Multi-Krum leaves out as many as it is told, here 40 %.\n",
        table([line for line in lines if line["kind"] == "none"], clean, "alarms", CLEAN),
        "\n**What that costs**: test accuracy where nobody is irrelevant.\n",
        table([line for line in lines if line["kind"] == "none"], clean, "test", ("everyone", *CLEAN)),
        "\n**False alarms on images**: the share of relevant clients' updates that did not count, over all attacks.\n",
        table(lines, shares, "alarms", JUDGES),
        "\n**Found on images**: the share of irrelevant clients' updates that did not count, over all rounds.\n",
        table(images, by_kind, "found", JUDGES),
        "\n**AUC on images** of the scores in the last round.\n",
        table(images, by_kind, "auc", JUDGES),
        "\n**Heart by attack**: found, and below it false alarms.\n",
        table([line for line in attacked if line["data"] == "heart"], by_kind, "found", JUDGES),
        "",
        table([line for line in attacked if line["data"] == "heart"], by_kind, "alarms", JUDGES),
    ]
    return "\n".join(parts)


def write_page(lines: Sequence[Line]) -> None:
    """Put the tables between the two marks of the page."""
    text = PAGE.read_text()
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    played = sum("refused" not in line for line in lines)
    said = f"\nMade from {played:,} runs in [docs/results/filters](../results/filters) by "
    said += "`python benchmarks/filters.py --page`; do not edit by hand.\n\n"
    PAGE.write_text(text[:first] + said + tables(lines) + "\n" + text[last:])
