"""Draws cases for the fuzzer: a command of fedkin with its words, the files that these name, and a run to harm."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import click
import typer
from fuzz_files import CHANGES, EDITS, TEXTS, changed, make, mutated, odd_file
from fuzz_values import FITTING, METHOD_WORDS, ODD_METHODS, PLACES, pools_of
from fuzz_values import TEXTS as ODD_TEXTS
from hypothesis import strategies as st

from fedkin.command.app import app
from fedkin.runs import manifest

NAMED = (*TEXTS, "pipe.csv", "pipe.json", "pipe", "folder.csv", "folder.json", "folder", "loop.csv", "sites")
NAMED += ("table.csv", "table.npz", "table.parquet")
ENDINGS = ("csv", "csv", "tsv", "npz", "npz", "parquet", "xlsx", "jsonl", "ndjson", "json", "toml", "pt", "pkl")
RUNS = ("whole", "half", "tuned", "model", "study")
ON_RUNS: dict[str, tuple[str, ...]] = {  # commands that are given the folder of a run, and which they are made for
    **dict.fromkeys(("report", "check", "run", "compare", "watch"), ("whole", "half", "whole")),
    **dict.fromkeys(("export", "predict", "join", "what-if"), ("whole",)),
    "tune": ("tuned",),
    "federation status": ("study",),
}
# How often each command is drawn. A server and a site are only ever given what is no federation, or they would serve.
DRAWN = ("run",) * 8 + ("compare",) * 4 + ("data show",) * 5 + ("methods", "methods", "preset", "tune", "tune")
DRAWN += ("export", "predict", "predict", "join", "what-if", "check", "report", "watch", "data list", "federation init")
DRAWN += ("federation status", "federation serve", "federation site", "federation run", "federation demo")
NEVER = ("--open", "--help", "--version", "--ray-address", "--actors")  # a browser, a cluster, and what ends at once
SUMS = (manifest.SEAL, "digests", "drawn")
WRITES = ("--out", "--save", "--results", "--export", "--export-clients", "--export-pairs")  # not to devices, nor above
OF_TABLES = ("--client-column", "--target-column", "--features", "--drop", "--standardise", "--task")
FIXED: dict[str, dict[str, str | None]] = {  # what these are told, unless an odd value takes its place
    "run": {"--rounds": "2"},
    "compare": {"--rounds": "2"},
    "tune": {"--rounds": "2", "--trials": "2"},
    "preset": {"--read": None},
    "export": {"--out": "made", "--client": "north"},
    "federation init": {"--sites": "a,b"},
    "federation demo": {"--sites": "9"},
}


@dataclass(frozen=True)
class Harm:
    """What is wrong with the folder of a run: with which file of it, and how."""

    file: float  # which of its files, from 0 to 1
    how: str
    change: tuple[float, Any, str] = (0.0, None, "new")
    edits: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Case:
    """The words after `fedkin`, the odd files that they name, and the run with its harms, if there is one."""

    words: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...] = ()
    run: str = ""
    harms: tuple[Harm, ...] = ()

    def make(self, folder: Path, whole: Path) -> None:
        """Make the files of the case."""
        folder.mkdir()
        shutil.copy(whole / "table.csv", folder.parent)  # which the runs were made of
        for name in NAMED:
            if any(Path(name).stem in word for word in (*self.words, self.run)):
                make(folder, name, whole)
        make(folder, "evil.py", whole)
        for name, content in self.files:
            (folder / name).write_bytes(content)
        if self.run:
            shutil.copytree(whole / "runs" / self.run, folder / "here", symlinks=True)
            for harm in self.harms:
                inflict(folder / "here", harm)


def inflict(folder: Path, harm: Harm) -> None:
    """Harm the folder of a run: change what a file of JSON says, with a new seal or without check sums; or its bytes;
    or put something else in its place."""
    how, _, more = harm.how.partition(" ")
    every = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    chosen = [path for path in every if path.suffix in (".json", ".jsonl")] if how == "changed" else every
    if not chosen:
        return
    path = chosen[int(harm.file * (len(chosen) - 1))]
    content = path.read_bytes()
    path.unlink()
    if how == "changed":
        path.write_bytes(changed_json(content, harm, sealed=more == "sealed"))
    elif how == "mutated":
        path.write_bytes(mutated(content, list(harm.edits)))
    elif how == "linked":
        path.symlink_to("../../outside/kept.csv")
    elif how == "piped":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    if more == "unsealed":
        forget(folder)


def changed_json(content: bytes, harm: Harm, sealed: bool) -> bytes:
    """Return JSON, or one line of several, in which something is changed; as it was where an earlier harm left none."""
    lines = content.splitlines() if b"\n{" in content else [content]
    at = int(harm.change[0] * (len(lines) - 1))
    try:
        value = changed(json.loads(lines[at]), *harm.change)
    except ValueError:
        return content
    if sealed and isinstance(value, dict) and manifest.SEAL in value:
        value = manifest.sealed({name: one for name, one in value.items() if name != manifest.SEAL})
    lines[at] = json.dumps(value).encode()
    return b"\n".join(lines) + b"\n"


def forget(folder: Path) -> None:
    """Take the check sums away, as far as the harm left JSON that can be read."""
    for path in folder.rglob("*.json"):
        if path.name == manifest.MANIFEST:
            path.unlink()
        elif path.is_file():
            with suppress(ValueError, AttributeError):
                stored = json.loads(path.read_text())
                path.write_text(json.dumps({name: one for name, one in stored.items() if name not in SUMS}))


HOW = ("changed unsealed",) * 8 + ("changed sealed",) * 3 + ("mutated unsealed",) * 3
HOW += ("mutated", "gone", "gone unsealed", "linked", "piped", "folder")
HARM = st.builds(Harm, st.floats(0, 1), st.sampled_from(HOW), CHANGES, EDITS.map(tuple))


@cache
def commands() -> dict[str, Any]:
    """Return every command of fedkin, by its words."""

    def walked(found: Any, way: tuple[str, ...]) -> dict[str, Any]:
        inner = getattr(found, "commands", None)
        if inner is None:
            return {" ".join(way): found}
        return {name: one for word, deeper in inner.items() for name, one in walked(deeper, (*way, word)).items()}

    return walked(typer.main.get_command(app), ())


@st.composite
def cases(draw: Any, whole: Path) -> Case:
    """Draw a case."""
    return Drawing(draw, draw(st.randoms(use_true_random=True)), whole).case()


@dataclass
class Drawing:
    """A case that is being drawn. Values are Hypothesis's; which command and which options is drawn evenly."""

    draw: Any
    luck: Random
    whole: Path
    files: dict[str, bytes] = field(default_factory=dict)

    def case(self) -> Case:
        luck = self.luck
        if luck.random() < 0.04:  # words of any kind
            quick = [name for name in commands() if not name.startswith("federation ")]
            words = [self.word() for _ in range(luck.randrange(6))]
            return Case((*luck.choice(quick).split(), *words))
        on_run = luck.random() < 0.45
        name = luck.choice(list(ON_RUNS) if on_run else DRAWN)
        words = [*name.split(), *self.arguments(name, on_run), *self.options(name, on_run)]
        if luck.random() < 0.02:
            words.insert(luck.randint(1, len(words)), self.word())
        run = luck.choice(ON_RUNS[name] * 5 + RUNS) if on_run else ""
        harms = [self.draw(HARM) for _ in range(luck.choice([1, 1, 1, 0, 2]))] if run else []
        return Case(tuple(words), tuple(sorted(self.files.items())), run, tuple(harms))

    def word(self) -> str:
        pools = (ODD_TEXTS, ODD_TEXTS, PLACES, list(FITTING), [self.draw(st.text(max_size=12))])
        return str(self.luck.choice(self.luck.choice(pools)))

    def odd_name(self, *endings: str) -> str:
        ending = self.luck.choice(endings)
        content = self.draw(odd_file(ending, lambda kind: self.whole.joinpath(f"table.{kind}").read_bytes()))
        self.files[f"odd.{ending}"] = content
        return f"./odd.{ending}"

    def arguments(self, name: str, on_run: bool) -> list[str]:
        """Draw the words of a command that are no options."""
        luck, said = self.luck, []
        for parameter in commands()[name].params:
            word = parameter.name
            if not isinstance(parameter, click.Argument):
                continue
            if on_run and word in ("target", "targets", "folder"):
                said.append("here")
            elif word in ("target", "targets") or (word == "name" and name == "methods"):
                said += luck.choices(METHOD_WORDS, k=luck.choice([1, 1, 2, 3]) if parameter.nargs < 0 else 1)
                if luck.random() < 0.25:
                    chosen = luck.choice([*ODD_METHODS, *["odd.json", "odd.toml"] * 4, self.word()])
                    said[-1] = self.odd_name(chosen[4:]) if chosen.startswith("odd.") else chosen
            elif word == "folder":
                said.append("new" if name == "federation init" and luck.random() < 0.6 else self.word())
            elif word == "table":
                chosen = luck.choice(["table.csv", "table.npz", "odd", "odd", luck.choice(PLACES)])
                said.append(self.odd_name(*ENDINGS) if chosen == "odd" else chosen)
            elif name == "preset":
                said.append(luck.choice(["heart/*", "list", "fedmcsa/table2", "adafl/*", self.word()]))
            else:  # of data show
                chosen = luck.choice([*FITTING["--data"], *["odd"] * 5, luck.choice(PLACES)])
                said.append(self.odd_name(*ENDINGS) if chosen == "odd" else chosen)
        return said

    def options(self, name: str, on_run: bool) -> list[str]:
        """Draw options: some that fit, and often one that hardly does."""
        luck = self.luck
        known = {max(one.opts, key=len): one for one in commands()[name].params if isinstance(one, click.Option)}
        known = {word: one for word, one in known.items() if word not in NEVER}
        said: dict[str, str | None] = dict(FIXED.get(name, {}))
        if name in ("run", "compare", "tune") and on_run:
            said = {"--resume": None}
            known = {word: known[word] for word in ("--rounds", "--jobs", "--export", "--json") if word in known}
        elif name in ("run", "compare", "tune"):
            said["--data"] = luck.choice(["digits", "digits", "synthetic", "./table.csv", "odd"])
            said |= {"--clients": "3"} if said["--data"] in ("digits", "synthetic") else {}
            said["--data"] = self.odd_name(*ENDINGS) if said["--data"] == "odd" else said["--data"]
        own = str(said.get("--data") or "./").startswith("./")
        fits = [word for word in known if own or word not in OF_TABLES]
        few = [0, 1, 2] if on_run else [0, 1, 1, 2, 3]
        for word in luck.sample(fits, min(len(fits), luck.choice(few))):
            said[word] = None if known[word].is_flag else luck.choice(FITTING.get(word, ("1",)))
        for word in luck.sample(sorted(known), min(len(known), luck.choice([0, 0, 1] if on_run else [0, 1, 1, 2]))):
            kind = known[word].type.name
            said[word] = None if known[word].is_flag else self.odd_value(word, kind)
        return [part for word, value in said.items() for part in ([word] if value is None else [word, value])]

    def odd_value(self, word: str, kind: str) -> str:
        """Draw a word that hardly fits an option."""
        pools = pools_of(word, kind)
        found = str(self.luck.choice(self.luck.choice(pools))) if self.luck.random() < 0.8 else self.word()
        if word == "--sites" and len(found) < 9 and found.strip().isdecimal() and int(found) in (2, 3, 4):
            return "1"  # or the demo would begin
        outside = found.startswith("/dev") or ".." in found or "d/d/" in found
        return "out" if word in WRITES and outside else found
