"""The files that fuzzed commands are given: whole ones, odd ones, and mutations of both."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_values import SCRIPT
from hypothesis import strategies as st

RAN = "it-ran"  # made beside the folder of a case by code that nobody asked to run
EVIL = f"import pathlib; pathlib.Path('../{RAN}').touch()\ndef net(shape, classes):\n    raise ValueError('called')\n"
NETS = """
import torch
from torch import nn

five = 5

def method():
    return five

class Good(nn.Sequential):
    def __init__(self, shape, classes):
        size = 1
        for one in shape:
            size *= one
        super().__init__(nn.Flatten(), nn.Linear(size, max(classes, 1)))

class Lazy(nn.Sequential):
    def __init__(self, shape, classes):
        super().__init__(nn.Flatten(), nn.LazyLinear(classes))

class Raises(Good):
    def forward(self, x):
        raise KeyError("mine")

class Exits(nn.Module):
    def __init__(self, shape, classes):
        raise SystemExit(4)

class Branches(Good):
    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else -super().forward(x)

class Counts(Good):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return super().forward(x)

class Nan(Good):
    def forward(self, x):
        return super().forward(x) * float("nan")

class Texts(Good):
    def forward(self, x):
        return "text"

class Wrong(Good):
    def forward(self, x):
        return super().forward(x)[..., :1, None]

class Huge(Good):
    def __init__(self, shape, classes):
        super().__init__(shape, classes)
        self.more = nn.Parameter(torch.zeros(10**12))

class Deep(Good):
    def forward(self, x):
        return self.forward(x)
"""
DEEP = "[" * 100_000 + "]" * 100_000
TEXTS = {
    "raises.py": "raise ValueError('no')\n",
    "exits.py": "import sys; sys.exit(3)\n",
    "syntax.py": "def f(:\n",
    "nets.py": NETS,
    "evil.py": EVIL,
    "file.txt": "text\n",
    "deep.json": f'{{"method":{DEEP}}}',
    "deep.toml": f"a={DEEP}",
    "experiment.json": '{"method": "fedavg", "data": {"name": "digits", "clients": 3}, "rounds": 2}',
    "experiment.toml": 'method = "fedavg"\nrounds = 2\n[data]\nname = "digits"\nclients = 3\n',
    "latin.toml": b'method = "fedavg"\nrounds = 2 # \xe4\n',
    "empty.csv": "",
    "empty.npz": "",
    "empty.json": "",
}
ODD_JSON: tuple[Any, ...] = (None, "", 0, -1, 1.5, 1e308, -1e-320, 10**30, True, [], {}, [[]], [None], {"is": "SGD"})
ODD_JSON += ("../../there", "..", SCRIPT, "x" * 10_000, "[/x]", "a\0b", "evil:net", "nan", "null", "\u202e", 2**63, "1")
CELLS = (
    "",
    "0",
    "1",
    "-1",
    "nan",
    "inf",
    "1e400",
    "1,5",
    "1.5",
    "x",
    "NA",
    '"',
    "=1+1",
    "ä",
    "0x1",
    "1e-320",
    " ",
    SCRIPT,
)
CELLS += ("\0", "2020-01-01", "9" * 400, "true", "[/x]", "1e30", "1e31", "0010")
HEADS = (
    "x0",
    "x1",
    "label",
    "client",
    "label",
    "",
    "Unnamed: 0",
    " label ",
    "x" * 300,
    "[/x]",
    "client\0",
    "seed",
    SCRIPT,
)
DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(24, 3)), np.arange(24) % 2
SITES = np.array(["north", "south", "west"] * 8)
ARRAYS: tuple[dict[str, Any], ...] = (
    {"x": X, "y": Y, "client": SITES},
    {"x": np.float64(3), "y": np.float64(1)},
    {"x": X + 0j, "y": Y, "client": SITES},
    {"x": X, "y": Y.astype("m8[s]"), "client": SITES},
    {"x": X, "y": np.array(["2020-01-01", "nat"] * 12, dtype="M8[D]"), "client": SITES},
    {"x": X[:0], "y": Y[:0], "client": SITES[:0]},
    {"x": X.reshape(24, 3, 1, 1, 1), "y": Y, "client": SITES},
    {"x": X[:, :0], "y": Y, "client": SITES},
    {"x": X * np.nan, "y": Y, "client": SITES},
    {"x": X, "y": np.arange(24), "client": np.arange(24)},
    {"x": X, "y": Y * 0, "client": SITES},
    {"x": X, "y": Y * 10**18, "client": SITES},
    {"x": X, "client": SITES},
    {"y": Y},
    {},
    {"x": X.astype("f2"), "y": Y.astype("u1"), "client": SITES.astype("S")},
    {"x": X, "y": Y, "client": np.array([b"\xff", b"\x00"] * 12)},
    {"x": X.astype(">f8"), "y": Y.astype(">i2"), "client": SITES},
    {"x": np.ones((24, 2, 2), bool), "y": Y, "client": SITES},
    {"x": np.array([None, 1] * 12, dtype=object), "y": Y},
    {"x/../../y": X, "y": Y},
)


class Evil:
    """Runs code where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(f"../{RAN}"),)


def npz(arrays: dict[str, Any]) -> bytes:
    opened = io.BytesIO()
    np.savez(opened, **arrays)
    return opened.getvalue()


def mutated(content: bytes, edits: list[tuple[float, str]]) -> bytes:
    """Return the content with small changes, each at a place between 0 and 1."""
    for place, how in edits:
        at = int(place * max(len(content) - 1, 0))
        head, one, tail = content[:at], content[at : at + 1], content[at + 1 :]
        content = {
            "flip": head + bytes(byte ^ 1 << (at % 8) for byte in one) + tail,
            "cut": head,
            "insert": head + b"\xff\x00[" + one + tail,
            "repeat": head + (one + tail[:50]) * 2 + tail,
            "zero": head + bytes(min(64, len(tail))) + tail[64:],
            "drop": head + tail[20:],
        }[how]
    return content


EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(["flip", "cut", "insert", "repeat", "zero", "drop"])), max_size=3
)


def leaves(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to everything in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([way] if way else []), *(found for key, one in inner for found in leaves(one, (*way, key)))]


def changed(value: Any, place: float, new: Any, how: str) -> Any:
    """Return a JSON value in which one thing is another, gone, or called otherwise."""
    ways = leaves(value)
    if not ways:
        return new
    *above, last = ways[int(place * (len(ways) - 1))]
    found = value = json.loads(json.dumps(value))
    for key in above:
        found = found[key]
    if how == "gone":
        del found[last]
    elif how == "renamed" and isinstance(found, dict):
        found[str(new)[:50]] = found.pop(last)
    else:
        found[last] = new
    return value


CHANGES = st.tuples(st.floats(0, 1), st.sampled_from(ODD_JSON), st.sampled_from(["new", "new", "gone", "renamed"]))


@st.composite
def odd_file(draw: Any, ending: str, whole: Callable[[str], bytes]) -> bytes:
    """Draw the content of an odd file with this ending; `whole` gives that of a file without fault."""
    if ending in ("csv", "tsv") and draw(st.booleans()):
        heads = draw(st.lists(st.sampled_from(HEADS), min_size=1, max_size=6))
        row = st.lists(st.sampled_from(CELLS), min_size=len(heads) - 1, max_size=len(heads) + 1)
        rows = draw(st.lists(row, max_size=8)) * 3
        mark = draw(st.sampled_from([",", ";", "\t", "|"]))
        text = "\n".join(mark.join(cells) for cells in [heads, *rows])
        return text.encode(draw(st.sampled_from(["utf-8", "utf-16", "latin-1", "utf-8-sig"])), "replace")
    if ending in ("jsonl", "ndjson"):
        line = st.fixed_dictionaries({name: st.sampled_from(ODD_JSON) for name in ("x0", "x1", "label", "client")})
        return "\n".join(json.dumps(one) for one in draw(st.lists(line, max_size=9)) * 3).encode()
    if ending in ("pt", "npz", "pkl") and draw(st.integers(0, 9)) == 0:
        return pickle.dumps(Evil())
    if ending in ("npz", "pt"):
        return mutated(npz(draw(st.sampled_from(ARRAYS))), draw(st.just([]) | EDITS))
    if ending in ("json", "toml") and draw(st.booleans()):
        value = json.loads(whole("json"))
        for change in draw(st.lists(CHANGES, min_size=1, max_size=2)):
            value = changed(value, *change)
        return json.dumps(value).encode() if ending == "json" else as_toml(value).encode()
    return mutated(whole(ending), draw(EDITS))


def as_toml(value: Any) -> str:
    """Return a JSON object as TOML, as far as it has words for it."""
    if not isinstance(value, dict):
        return json.dumps(value)
    plain = [f"{json.dumps(name)} = {json.dumps(one)}" for name, one in value.items() if not isinstance(one, dict)]
    inner = [f"[{json.dumps(name)}]\n{as_toml(one)}" for name, one in value.items() if isinstance(one, dict)]
    return "\n".join([*plain, *inner])


def make(folder: Path, name: str, whole: Path) -> None:
    """Make what a case calls by this name: one of `TEXTS`, or a thing that is no file."""
    path = folder / name
    if name in TEXTS:
        text = TEXTS[name]
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    elif name.startswith("pipe"):
        os.mkfifo(path)
    elif name.startswith("folder"):
        path.mkdir()
    elif name == "loop.csv":
        path.symlink_to(name)
    elif (whole / name).is_dir():
        shutil.copytree(whole / name, path)
    elif (whole / name).exists():
        shutil.copy(whole / name, path)
