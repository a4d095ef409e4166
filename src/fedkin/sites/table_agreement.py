"""How sites with tables agree: on what is predicted, on classes, and on the union of their columns and categories."""

from __future__ import annotations

from typing import Any

from fedkin.data.prepare import column_lines
from fedkin.data.target import LARGEST
from fedkin.sites.columns import agreed_columns, features_of, listed, misfits, well_formed
from fedkin.sites.told import Agreement, Told, most

ALIKE = {  # what must be the same at all sites, and how a sentence calls it
    "task": "Its target is to {}, that of others to {}; say the site's 'task', or correct its target.",
    "target": "Its column to predict is called '{}', that of others '{}'; rename it, or say another 'target-column'.",
    "standardise": "Its 'standardise' is '{}', that of others '{}'; say the same.",
    "labelled": "Its classes are {}, those of others {}; write them the same way.",
}


def agree_on_tables(told: Told) -> Agreement:
    """Columns and categories are those of all sites together, and so are classes."""
    sayings = {name: one for name, one in told.items() if well_formed(one.get("columns")) and labels_told(one)}
    wrong = dict.fromkeys(told.keys() - sayings.keys(), "It does not say what its columns and its classes are.")
    sayings = {name: one | {"labelled": labelled(one)} for name, one in sayings.items()}
    for field, sentence in ALIKE.items():
        right = most(sayings, field)
        odd = {name: one.get(field) for name, one in sayings.items() if one.get(field) != right}
        wrong |= {name: sentence.format(value, right) for name, value in odd.items()}
        sayings = {name: one for name, one in sayings.items() if name not in odd}
    more = misfits(sayings)
    fit = {name: one for name, one in sayings.items() if name not in more}
    agreed = {field: most(fit, field) for field in ("task", "target", "standardise")}
    labels, classes = classes_of(fit) if agreed["task"] == "classify" else ([], 1)
    columns = agreed_columns(fit, agreed["standardise"])
    shape = [len(features_of(columns, {}))]
    named = labels or [str(number) for number in range(classes)]
    how = "" if agreed["standardise"] == "none" else ", standardised"
    said = f"to predict, {classes:,} classes: {listed(named)}" if agreed["task"] == "classify" else f"to predict{how}"
    columns.append({"name": agreed["target"], "kind": "target", "said": said})
    return agreed | {"labels": labels, "classes": classes, "columns": columns, "shape": shape, "vocabulary": None}, (
        wrong | more
    )


def labels_told(one: dict[str, Any]) -> bool:
    """Whether a site tells its classes, all as whole numbers or all as texts; to regress it has none."""
    labels = one.get("labels")
    if not isinstance(labels, list) or not isinstance(one.get("target"), str):
        return False
    alike = any(all(type(label) is kind for label in labels) for kind in (int, str))
    return alike and bool(labels) == (one.get("task") == "classify")


def labelled(one: dict[str, Any]) -> str:
    """Return what the classes of a site are."""
    return "numbers" if one["labels"] and isinstance(one["labels"][0], int) else "texts"


def classes_of(told: Told) -> tuple[list[str], int]:
    """Return the names of all sites' classes, sorted, and their number; class numbers from 0 on have no names."""
    labels = sorted({label for one in told.values() for label in one["labels"]})
    if labels[0] == 0 and labels[-1] < LARGEST:
        return [], labels[-1] + 1
    return [str(label) for label in labels], len(labels)


def table_lines(agreed: dict[str, Any]) -> list[str]:
    """Return a line for each column: what the sites agree to make of it."""
    lines = column_lines(agreed["columns"])
    width = max(len(name) for name, _ in lines)
    return ["What sites agree on:", *(f"  {name:<{width}}  {words}" for name, words in lines)]
