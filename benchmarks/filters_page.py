"""The tables of docs/papers/robust.md, made from the lines that `filters.py` wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "papers" / "robust.md"
BEGIN, END = "<!-- filters -->", "<!-- end of filters -->"
ORDER = ("everyone", "alignment", "alignment 2.5", "L1", "Multi-Krum", "relevance", "z-scores", "robust", "oracle")
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


def table(
    lines: Sequence[Line], rows: dict[str, Callable[[Line], bool]], name: str, filters: Sequence[str], ends: str = ""
) -> str:
    """A row of each group of games, a column of each filter, and how many games a cell is the mean of."""
    head = ["| |", *(f" {column} |" for column in filters), " games |"]
    text = ["".join(head), "|---|" + "---:|" * (len(filters) + 1)]
    for row, belongs in rows.items():
        some = complete([line for line in lines if belongs(line)], filters)
        if some:
            cells = [shown(mean([line for line in some if line["filter"] == column], name)) for column in filters]
            number = sum(line["filter"] == filters[0] for line in some)
            text.append(f"| {row} | " + " | ".join(cells) + f" | {number} |")
    return "\n".join(text) + ends


def tables(lines: Sequence[Line]) -> str:
    """All tables of the page."""
    lines = [line for line in lines if "refused" not in line]
    kinds = list(dict.fromkeys(line["kind"] for line in lines if line["kind"] != "none"))
    by_kind = {kind: (lambda line, kind=kind: line["kind"] == kind) for kind in kinds}
    all_kinds = {"all attacks": lambda line: line["kind"] != "none"}
    usual = [column for column in ORDER if column not in ("relevance", "oracle")]
    judges = ["alignment", "L1", "z-scores", "robust"]
    clean = {
        f"{data}, Dirichlet {alpha}, {'all' if part == 1 else 'two fifths'}": (
            lambda line, at=(data, alpha, part): (
                line["kind"] == "none" and (line["data"], line["alpha"], line["part"]) == at
            )
        )
        for data in ("mnist", "fashion_mnist", "heart")
        for alpha in (0.1, 0.5)
        for part in (1.0, 0.4)
    }
    shares = {
        f"{100 * share:.0f} % irrelevant": (lambda line, share=share: line["share"] == share)
        for share in (0, 0.1, 0.3, 0.4)
    }
    where = {
        f"{data}, Dirichlet {alpha}": (
            lambda line, at=(data, alpha): line["kind"] != "none" and (line["data"], line["alpha"]) == at
        )
        for data in ("mnist", "fashion_mnist", "heart")
        for alpha in (0.1, 0.5)
    }
    parts = [
        "**Test accuracy by attack**, mean over all games that all these filters have played.\n",
        table(lines, by_kind | all_kinds, "test", [*usual, "oracle"]),
        "\n**Test accuracy by data**, over all attacks.\n",
        table(lines, where, "test", [*usual, "oracle"]),
        "\n**With inversion** (MNIST and heart with MLR, all clients, 10 and 30 % irrelevant): test accuracy.\n",
        table(lines, by_kind | all_kinds, "test", [*usual[:-1], "relevance", "robust", "oracle"]),
        "\n**False alarms**: the share of relevant clients' updates that did not count, over all rounds. Multi-Krum\n"
        "leaves out as many as it is told, here 40 % of the replies.\n",
        table(lines, shares, "alarms", usual[1:]),
        "\n**False alarms where nobody is irrelevant**, by data and by who takes part.\n",
        table(lines, clean, "alarms", usual[1:]),
        "\n**Found**: the share of irrelevant clients' updates that did not count, over all rounds.\n",
        table(lines, by_kind | all_kinds, "found", usual[1:]),
        "\n**AUC** of the scores in the last round.\n",
        table(lines, by_kind | all_kinds, "auc", judges),
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
