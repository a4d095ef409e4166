"""The tables of docs/papers/rivals.md and of docs/papers/kin.md, made from the lines that `ranking.py` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from ranking_methods import ABLATIONS, FEDERATIONS, LAYERED, METHODS

from fedkin.methods.titles import title
from fedkin.runs.verdict import BETTER, WORSE, side, verdicts

PAPERS = Path(__file__).parent.parent / "docs" / "papers"
RIVALS, KIN = PAPERS / "rivals.md", PAPERS / "kin.md"
BASELINES = ("kin", "kin1", "local", "fedavg", "fedavg_prior")
Line = dict[str, Any]
Table = dict[str, dict[int, Line]]  # the lines of one federation by method and data seed


def by_federation(lines: Iterable[Line]) -> dict[str, Table]:
    """The lines of each federation, in the order in which it was played."""
    found: dict[str, Table] = {}
    for line in lines:
        found.setdefault(line["federation"], {}).setdefault(line["method"], {})[line["seed"]] = line
    order = [*FEDERATIONS, *found]
    return {name: found[name] for name in dict.fromkeys(order) if name in found}


def complete(table: Table, methods: Sequence[str]) -> Table:
    """Those of these methods that were played on all data seeds of kin and of training alone."""
    seeds = set(table.get("kin", {})) & set(table.get("local", {}))
    return {
        name: {seed: table[name][seed] for seed in sorted(seeds)}
        for name in methods
        if seeds and seeds <= set(table.get(name, {}))
    }


def named(method: str) -> str:
    others = {"local": "training alone", "kin1": title("kin_light")}
    return others.get(method, title(method))


def means(lines: dict[int, Line]) -> np.ndarray:
    return np.array([line["macro"] for line in lines.values()])  # (data seeds,)


def shown(values: Sequence[float] | np.ndarray) -> str:
    """A mean and a standard deviation in %."""
    spread = f" ± {100 * stdev(map(float, values)):.1f}" if len(values) > 1 else ""
    return f"{100 * fmean(map(float, values)):.1f}{spread}"


def ranks(table: Table) -> dict[str, float]:
    """The rank of each method by its mean, the best 1; equal ones share the mean of their ranks."""
    mean = {method: float(means(lines).mean()) for method, lines in table.items()}
    above = {name: sum(other > value for other in mean.values()) for name, value in mean.items()}
    same = {name: sum(other == value for other in mean.values()) for name, value in mean.items()}
    return {name: above[name] + (same[name] + 1) / 2 for name in mean}


def against(table: Table, other: str) -> dict[str, dict[str, Any]]:
    """The verdict on each method against another one; all of a federation are corrected together.

    Each data seed is a block with one number, the mean gain over its clients, as in `fedkin compare --data-seeds`.
    """
    gains = {name: (means(lines) - means(table[other]))[:, None] for name, lines in table.items() if name != other}
    return verdicts(gains, {name: list(table[name]) for name in gains})


def worse_off(lines: dict[int, Line], alone: dict[int, Line]) -> float:
    """The share of clients, over data seeds, that lose more against training alone than its standard error."""
    found: list[np.ndarray] = []
    for seed, line in lines.items():
        p, q, n = (np.array(of) for of in (line["clients"], alone[seed]["clients"], line["test"]))
        found.append((q - p > np.sqrt((p * (1 - p) + q * (1 - q)) / np.maximum(n, 1)))[n > 0])
    return float(np.concatenate(found).mean())


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    line = "| " + " | ".join(head) + " |"
    return "\n".join([line, "|---|" + "---:|" * (len(head) - 1), *("| " + " | ".join(row) + " |" for row in rows)])


def ranking(tables: dict[str, Table]) -> str:
    """The section of rivals.md."""
    full = {name: found for name, table in tables.items() if (found := complete(table, METHODS))}
    if not full:
        return "Nothing has been played yet."
    rank = {name: ranks(table) for name, table in full.items()}
    judged = {name: against(table, "kin") for name, table in full.items()}
    of = {method: [rank[name][method] for name in full if method in rank[name]] for method in METHODS}
    order = sorted((method for method in METHODS if of[method]), key=lambda method: fmean(of[method]))
    marks = {BETTER: " +", WORSE: " −"}

    def cell(method: str, name: str) -> str:
        if method not in full[name]:
            return "-"
        mark = marks.get(side(judged[name][method]["verdict"]), "") if method != "kin" else ""
        text = shown(means(full[name][method]))
        return (f"**{text}**" if rank[name][method] < 2 else text) + mark

    where = [
        f"{fmean(of[method]):.1f}" + (f" of {len(of[method])}" if len(of[method]) < len(full) else "")
        for method in order
    ]
    first = [[named(m), *(cell(m, name) for name in full), at] for m, at in zip(order, where, strict=True)]
    second = [
        [named(m), *(f"{100 * worse_off(full[f][m], full[f]['local']):.0f}" if m in full[f] else "-" for f in full)]
        for m in order
        if m != "local"
    ]
    return "\n\n".join(
        [
            about(full),
            "**Accuracy in %**, mean over clients, then mean ± standard deviation over data seeds; in bold is the "
            "best mean. "
            "+ and − are clearly better and worse than kin; all others are tied with it. The last column is the "
            "mean of "
            "the ranks in the federations that a method can play.",
            markdown(["", *full, "mean rank"], first),
            "**Against kin**: paired by data seed, each of which is one block with one number, the mean gain over "
            "its clients "
            "([statistics](../statistics.md)), corrected after Holm over the methods of a federation. "
            "A few seeds show large differences only.",
            markdown(["", "clearly worse than kin", "tied", "clearly better"], compared(judged)),
            "**Worse off than alone beyond noise**: the share of clients in % whose accuracy is below what training "
            "alone (tuned too) "
            "reaches on the same test samples by more than sqrt((p (1 - p) + q (1 - q)) / n), the standard error of "
            "a difference of two "
            "independent shares p and q of n test samples. Two runs that differ by chance alone would have up to 16 %.",
            markdown(["", *full], second),
        ]
    )


def about(full: dict[str, Table]) -> str:
    """What was played, and who was left out."""
    lines = [line for table in full.values() for each in table.values() for line in each.values()]
    trials = " or ".join(str(number) for number in sorted({line["trials"] for line in lines}))
    seeds = ", ".join(str(seed) for seed in sorted({line["seed"] for line in lines}))
    small = [name for name in full if name in FEDERATIONS and FEDERATIONS[name].network == "mlr"]
    without = (
        f" {', '.join(map(named, LAYERED))} need two layers and are left out of {' and '.join(small)}." if small else ""
    )
    return (
        f"Each method had {trials} trials of its default space ([tuning](../tuning.md)) on data seed 0, by "
        f"validation samples, "
        f"and was played with the best of them on data seeds {seeds}, on which nothing was chosen. The light kin, "
        "`kin_light`, trains four models where kin trains twelve. "
        "All clients take part in all rounds with the same steps, also "
        "those that train alone; "
        "methods with more than one model take these steps with each." + without
    )


def compared(judged: dict[str, dict[str, dict[str, Any]]]) -> list[list[str]]:
    rows = []
    for name, found in judged.items():
        sides = {method: side(one["verdict"]) for method, one in found.items()}
        worse = [named(method) for method, which in sides.items() if which == WORSE]
        better = [named(method) for method, which in sides.items() if which == BETTER]
        tied = [named(method) for method, which in sides.items() if which not in (WORSE, BETTER)]
        rows.append([name, *(", ".join(some) or "none" for some in (worse, tied, better))])
    return rows


def of_kin(tables: dict[str, Table]) -> str:
    """The section of kin.md."""
    full = {name: found for name, table in tables.items() if (found := complete(table, METHODS))}
    if not full:
        return "Nothing has been played yet."
    rows = [[named(m), *(shown(means(full[f][m])) if m in full[f] else "-" for f in full)] for m in BASELINES]
    rows.append(["the best other method", *(best_other(table) for table in full.values())])
    text = [
        "Accuracy in %, tuned methods, on data seeds that had no part in it ([all methods, and "
        "how](rivals.md#the-ranking)).",
        markdown(["", *full], rows),
    ]
    parts = {
        name: found
        for name, table in tables.items()
        if any(one in table for one in ABLATIONS) and (found := ablated(table))
    }
    if parts:
        judged = {name: against(table, "kin") for name, table in parts.items()}
        lost = [
            [variant, *(difference(judged[name].get(variant), parts[name]) for name in parts)]
            for variant in ABLATIONS
            if any(variant in table for table in parts.values())
        ]
        text += [
            "**Without one of its parts**, with the settings chosen for kin: points gained over kin (of data seeds, "
            "mean and 95 % interval), "
            "clearly so in bold (corrected after Holm over the table's column). Without alone there is no guard "
            "either; without prior is "
            "`strength=0`; without kin nobody mixes with anybody and a third of the models is not trained.",
            markdown(["", *parts], lost),
        ]
    return "\n\n".join(text)


def ablated(table: Table) -> Table:
    """kin and its ablations, on the data seeds on which all of them were played."""
    names = [name for name in ("kin", *ABLATIONS) if name in table] if "kin" in table else []
    seeds = set.intersection(*(set(table[name]) for name in names)) if names else set()
    return {name: {seed: table[name][seed] for seed in sorted(seeds)} for name in names} if seeds else {}


def difference(found: dict[str, Any] | None, table: Table) -> str:
    if found is None:
        return "-"
    ends = [found["low"], found["high"]]
    interval = "" if None in ends else f" ({100 * ends[0]:+.1f} to {100 * ends[1]:+.1f})"
    text = f"{100 * found['gain']:+.2f}{interval}"
    return f"**{text}**" if side(found["verdict"]) in (BETTER, WORSE) else text


def best_other(table: Table) -> str:
    """The method with the highest mean of those that are no row of kin's table."""
    others = {name: means(lines) for name, lines in table.items() if name not in BASELINES}
    if not others:
        return "-"
    name = max(others, key=lambda one: float(others[one].mean()))
    return f"{shown(others[name])} ({named(name)})"


def put(page: Path, mark: str, text: str, runs: int) -> None:
    """Put a text between the two marks of a page."""
    old, begin, end = page.read_text(), f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    if begin not in old or end not in old:
        raise SystemExit(f"{page.name} has no place for a ranking: {begin} and {end}.")
    first, last = old.index(begin) + len(begin), old.index(end)
    said = f"Made from {runs:,} runs in [docs/results/ranking](../results/ranking) by "
    said += "`python benchmarks/ranking.py --page`; "
    page.write_text(f"{old[:first]}\n{said}do not edit by hand.\n\n{text}\n{old[last:]}")


def write_pages(lines: Sequence[Line], rivals: Path = RIVALS, kin: Path = KIN) -> None:
    tables = by_federation(lines)
    put(rivals, "ranking", ranking(tables), len(lines))
    put(kin, "kin", of_kin(tables), len(lines))
