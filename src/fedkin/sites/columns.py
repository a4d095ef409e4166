"""What a site tells of a column of its table, and what sites with such columns agree on.

A site looks at its training rows only. It tells the name and the kind of a column, whether values are missing, and:

    number, date    whether it varies; of a number also whether its values look like ids
    category        its frequent categories, and whether there are others, which are not told
    empty           nothing: there are no values
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkin.data.columns import CONSTANT, EMPTY, ID, ROWS, checked_category, kind_of, like_an_id
from fedkin.data.fitting import CATEGORIES, categories
from fedkin.sites.told import Told, most

if TYPE_CHECKING:
    import pandas as pd

Column = dict[str, Any]
WORDS = {"number": "a number", "date": "a date", "category": "text"}  # the kinds of columns that have values
LISTED = 6  # names in a sentence


def told_column(column: pd.Series, asked: bool) -> Column:
    """Return what the server is told of a column. `asked` says that the site named it as a feature."""
    found = kind_of(column)
    empty = {"name": found.name, "kind": "empty", "missing": True}
    if found.kind == "left out":
        return empty
    value = found.read(column)
    known = value[[one is not None for one in value] if found.kind == "category" else ~np.isnan(value)]
    if not len(known):
        return empty
    told: Column = {"name": found.name, "kind": found.kind, "missing": len(known) < len(value)}
    if found.kind == "category":
        checked = checked_category(found, value)
        several = checked.kind == "category" or checked.said == CONSTANT  # else it is names, or other free text
        frequent, rare = categories(known.tolist()) if several else ([], len(known))
        return told | {"categories": frequent, "other": rare > 0}
    unique, dense = like_an_id(known) if found.kind == "number" and not asked else (False, False)
    return told | {"varies": bool((known != known[0]).any()), "unique": unique, "dense": dense}


def well_formed(columns: Any) -> bool:
    """Whether a site told of its columns in the form in which `told_column` does it."""
    return isinstance(columns, list) and len(columns) > 0 and all(map(_well_formed, columns))


def _well_formed(column: Any) -> bool:
    if not isinstance(column, dict) or not isinstance(column.get("name"), str):
        return False
    listed = column.get("categories", [])
    named = isinstance(listed, list) and all(isinstance(one, str) for one in listed)
    return column.get("kind") in (*WORDS, "empty") and isinstance(column.get("missing"), bool) and named


def misfits(told: Told) -> dict[str, str]:
    """Return why sites do not fit by their columns: one is of another kind than elsewhere, or none is known elsewhere.

    What most sites have is right; of as many, what was told first.
    """
    wrong: dict[str, str] = {}
    have = by_site(told)
    for name in names_of(told):
        kinds = {site: {"kind": mine[name]["kind"]} for site, mine in have.items() if name in mine}
        kinds = {site: one for site, one in kinds.items() if one["kind"] != "empty"}
        right = most(kinds, "kind") if kinds else None
        others = listed([site for site, one in kinds.items() if one["kind"] == right])
        for site, one in kinds.items():
            if one["kind"] != right:
                here, there = WORDS[one["kind"]], WORDS[str(right)]
                sentence = (
                    f"Its column '{name}' is {here}, and at {others} it is {there}; make it the same, or drop it."
                )
                wrong.setdefault(site, sentence)
    known = Counter(name for mine in have.values() for name in mine)
    shared = {name for name, sites in known.items() if sites > 1} or set(next(iter(have.values()), {}))
    for site, mine in have.items():
        if not shared & set(mine):
            wrong.setdefault(site, f"It has none of the columns of the other sites: {listed(sorted(shared))}.")
    return wrong


def by_site(told: Told) -> dict[str, dict[str, Column]]:
    """Return the columns of each site by their names."""
    return {site: {column["name"]: column for column in one["columns"]} for site, one in told.items()}


def names_of(told: Told) -> list[str]:
    """Return the names of all columns, in the order in which they were told first."""
    return list(dict.fromkeys(column["name"] for one in told.values() for column in one["columns"]))


def agreed_columns(told: Told, standardise: str) -> list[Column]:
    """Return what becomes of each column that some site has. A column that a site lacks counts as missing there."""
    have, rows = by_site(told), {site: int(one["sizes"]["train"]) for site, one in told.items()}
    nothing = {"kind": "empty", "missing": True}
    return [
        _agreed(name, {site: mine.get(name, nothing) for site, mine in have.items()}, rows, standardise)
        for name in names_of(told)
    ]


def _agreed(name: str, told: Told, rows: Mapping[str, int], standardise: str) -> Column:
    """Return what becomes of one column: its kind, its features' names, and the words for the user."""
    have = {site: one for site, one in told.items() if one["kind"] != "empty"}
    gaps = [site for site, one in told.items() if one["missing"]]
    agreed: Column = {"name": name, "kind": "left out", "missing": bool(gaps), "categories": [], "other": False}
    if not have:
        return agreed | {"said": EMPTY}
    kind = most(have, "kind")
    where = f"; missing at {listed(gaps)}" if gaps else ""
    if kind == "category":
        named, other = union(have)
        if not named:
            return agreed | {"said": "left out, none of its values is frequent at a site"}
        if len(named) == 1 and not other and not gaps:
            return agreed | {"said": CONSTANT}
        words = f"{len(named):,} {'category' if len(named) == 1 else 'categories'}: {listed(named)}"
        words += ", rare ones together as other" if other else ""
        return agreed | {"kind": kind, "categories": named, "other": other, "said": words + where}
    if not gaps and not any(one.get("varies") for one in have.values()):
        return agreed | {"said": f"{CONSTANT} at each site"}
    if kind == "number" and _is_id(name, have, sum(rows[site] for site in have)):
        return agreed | {"said": "left out, unique"}
    how = "" if standardise == "none" else ", standardised"
    return agreed | {"kind": kind, "said": f"{kind}{how}{where}{', filled with the median' if gaps else ''}"}


def union(told: Told) -> tuple[list[str], bool]:
    """Return the categories that are frequent at some site, sorted, and whether there are others.

    Of too many, those that are frequent at most sites stay.
    """
    sites = Counter(category for one in told.values() for category in set(one.get("categories", [])))
    other = any(one.get("other") for one in told.values())
    if len(sites) + other > CATEGORIES:
        first = sorted(sites, key=lambda category: (-sites[category], category))
        return sorted(first[: CATEGORIES - 1]), True
    return sorted(sites), other


def _is_id(name: str, told: Told, rows: int) -> bool:
    """Whether a number is an id: different in each row of a site, and called so or nearly consecutive at each."""
    every = list(told.values())
    called = ID.search(name) is not None or all(one.get("dense") for one in every)
    return rows >= ROWS and called and all(one.get("unique") for one in every)


def features_of(columns: Sequence[Column], formats: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the features that agreed columns give, as `data.preparation` has them. `formats` are those of dates."""
    features: list[dict[str, Any]] = []
    for column in columns:
        name, kind = column["name"], column["kind"]
        if kind in ("number", "date"):
            features.append({"column": name, "is": kind} | ({"format": formats[name]} if name in formats else {}))
        if kind == "category":
            features += [{"column": name, "is": "category", "value": one} for one in column["categories"]]
            features += [{"column": name, "is": "other", "values": column["categories"]}] if column["other"] else []
        if kind in WORDS and column["missing"]:
            features.append({"column": name, "is": "missing"})
    return features


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them; of many the first, and how many more there are."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more:,} more" if more > 0 else "")
