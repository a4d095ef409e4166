"""What sites agree on before round 1, and who takes part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedkin.errors import BadInput
from fedkin.runs.facts import versions
from fedkin.sites.table_agreement import agree_on_tables, table_lines
from fedkin.sites.told import Agreement, Told, most


def agree(introductions: Told) -> Agreement:
    """Return what these sites agree on, and why others of them do not fit, a sentence each.

    Where sites differ, most of them are right; of as many, those with the first name.
    """
    here, wrong = versions()["fedkin"], {}
    for name, one in introductions.items():
        if one.get("fedkin") != here:
            wrong[name] = f"It runs fedkin {one.get('fedkin')}, and the server {here}; install the same version."
    data = {name: one.get("data") for name, one in introductions.items() if name not in wrong}
    told = {name: one for name, one in data.items() if isinstance(one, dict) and counts(one)}
    untold = "It does not say how many samples it has, or it has none to train on."
    wrong |= dict.fromkeys(data.keys() - told.keys(), untold)
    kind = most(told, "kind")
    if kind not in KINDS:
        raise BadInput(f"Nobody here knows how sites with samples of the kind '{kind}' agree; install the same fedkin.")
    others = {name: one for name, one in told.items() if one.get("kind") != kind}
    wrong |= {name: f"Its samples are {one.get('kind')}, those of others {kind}." for name, one in others.items()}
    agreed, more = KINDS[kind]({name: one for name, one in told.items() if name not in others})
    return {"kind": kind} | agreed, wrong | more


def agree_on_arrays(told: Told) -> Agreement:
    """Samples have one shape and one task. There are as many classes, or words, as the site with the most has."""
    shape, task = most(told, "shape"), most(told, "task")
    wrong = {}
    for name, one in told.items():
        if one.get("shape") != shape:
            wrong[name] = f"Its samples have the shape {one.get('shape')}, those of others {shape}."
        elif one.get("task") != task:
            wrong[name] = f"Its samples are to {one.get('task')}, those of others to {task}."
        elif (one.get("vocabulary") is None) != (most(told, "vocabulary") is None):
            wrong[name] = "Either its samples are texts or those of others are, and not both."
    fit = [one for name, one in told.items() if name not in wrong]
    words = [one["vocabulary"] for one in fit if one["vocabulary"] is not None]
    classes = max(one["classes"] for one in fit)
    return {"shape": shape, "task": task, "classes": classes, "vocabulary": max(words, default=None)}, wrong


# how sites agree on samples of each kind
KINDS: dict[str, Callable[[Told], Agreement]] = {"arrays": agree_on_arrays, "table": agree_on_tables}


def agreement_lines(agreed: dict[str, Any]) -> list[str]:
    """Return what the people at the server should read of the agreement: of tables a line for each column."""
    return table_lines(agreed) if agreed["kind"] == "table" else []


def counts(one: dict[str, Any]) -> bool:
    """Whether a site says how many samples it has in each split, and has some to train on."""
    sizes = one.get("sizes")
    if not isinstance(sizes, dict) or not isinstance(one.get("digest"), str):
        return False
    return all(isinstance(size, int) and size >= 0 for size in sizes.values()) and sizes.get("train", 0) > 0
