"""How the arms of a comparison are written.

An arm is a name (`fedprox`), a file of an experiment or of a method (`mine.toml`), or an import path of a
method or of a function that returns one (`mymodule:my_method`). Settings follow, each after an `@`:

    fedprox@train.lam=1@select.count=5      one arm with two settings
    fedprox@train.lam=0.1,1,10              a sweep: three arms
    fedprox@lam=0.1,1@eta=0.01,0.02         two sweeps: four arms, one for each pair
    attn@select.fraction=Listed@select.fraction.fractions=[0.1,0.2]     in brackets it is one value, a list
"""

from __future__ import annotations

import re
from pathlib import Path

from fedkin.errors import require
from fedkin.runs.settings import split

SETTING = re.compile(r"@(?=[A-Za-z_][\w.]*=)")  # an @ that begins a setting
FILE = re.compile(r"(?P<base>.+\.(?:toml|json))(?:@(?P<rest>.*))?")


def is_file(base: str) -> bool:
    """Whether a target is built on a file, by its ending."""
    return Path(base).suffix in (".toml", ".json")


def target_parts(target: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return what a target is built on, and its settings: the path and all values of each."""
    file = FILE.fullmatch(target)
    base, rest = (file["base"], file["rest"]) if file else target.partition("@")[::2]
    if not file and "@" in target and not rest:
        rest = "@"  # nothing follows the @, which is refused below
    if not rest:
        return base, []
    first, *pieces = SETTING.split(f"@{rest}")
    require(not first, f"In '{target}' an @ is followed by a setting, as in fedprox@train.lam=1.")
    return base, [(path, values(text, target)) for path, text in map(split, pieces)]


def values(text: str, target: str) -> list[str]:
    """Return the values of a setting: separated by commas, of which those in brackets or quotes do not count."""
    found, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == '"'
        depth += 0 if quoted else (sign in "[{") - (sign in "]}")
        if sign == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += sign
    for value in found:
        another = re.match(r"\s*[A-Za-z_][\w.]*=", value)
        require(not another, f"In '{target}' write an @ before each setting: fedprox@train.lam=1@select.count=5.")
        require(value.strip(), f"In '{target}' a value is missing; a sweep is written as fedprox@train.lam=0.1,1,10.")
    return [value.strip() for value in found]
