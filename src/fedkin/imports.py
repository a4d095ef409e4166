"""Imports what users wrote, by 'module:attribute'; what goes wrong there is one sentence with the file and the line.

The folder one stands in is importable. It is looked in last, so that a file in it never takes the place of a library.

The folder of a run may come from somebody else. What it names is imported only if the user trusts it (`named_in`).
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from importlib import import_module, invalidate_caches
from inspect import getsourcefile, getsourcelines, isbuiltin
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from fedkin.errors import BadInput, require, shown

LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
OWN = str(Path(__file__).parent)
EVERYTHING = Path("/").resolve()
TRUSTED: set[Path] = set()  # folders whose modules may be imported, with all that lies in them
READ: ContextVar[Path | None] = ContextVar("read", default=None)  # the folder whose names are being read


def importable() -> None:
    """Make the folder one stands in importable, here and in processes that are started from here."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def trust(folder: Path = EVERYTHING) -> None:
    """Let modules be imported that this folder names, and those of folders in it."""
    TRUSTED.add(folder.resolve())


@contextmanager
def named_in(folder: Path | None) -> Iterator[None]:
    """Let the block read what a folder names. Modules are imported only if the user trusts the folder."""
    token = READ.set(folder)
    try:
        yield
    finally:
        READ.reset(token)


def check_trusted(what: str) -> None:
    """Refuse to import a module that is named by a folder which the user does not trust."""
    folder = READ.get()
    if folder is None:
        return
    place = folder.resolve()
    known = any(one in TRUSTED for one in (place, *place.parents))
    advice = "if you know whose it is, add --trust (in Python, fk.load(folder, trust=True))"
    require(known, f"{folder} names {what}, and importing that runs code of its author; {advice}.")


def imported(path: str, what: str) -> Any:
    """Return what 'package.module:attribute' names; `what` says what it is meant to be, as in 'The method'."""
    name, _, attribute = path.partition(":")
    words = all(word.isidentifier() for word in [*name.split("."), *attribute.split(".")])
    require(words, f"{what} {shown(path)} should look like module:attribute.")
    module = user_module(name, f"{what} '{path}'")
    found: Any = module
    for word in attribute.split("."):
        if not hasattr(found, word):
            near = get_close_matches(word, [known for known in dir(found) if not known.startswith("_")], n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else "."
            raise BadInput(
                f"{what} '{path}' cannot be imported: {getattr(module, '__file__', None) or name} has no '{word}'{hint}"
            )
        found = getattr(found, word)
    sentence = f"{what} '{path}' is a {type(found).__name__} of Python itself; give a class or a function of yours."
    require(not isbuiltin(found), sentence)
    return found


def user_module(name: str, what: str) -> ModuleType:
    """Return the module of this name; `what` is what it is imported for, and begins the sentence of an error."""
    check_trusted(f"the module '{name}'")
    importable()
    top = name.partition(".")[0]
    invalidate_caches()  # the file may be younger than Python's list of the folder
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise failed(what, error) from error
        where = f"stand in the folder of {top}.py, or install it"
        raise BadInput(f"{what} cannot be imported: there is no module '{error.name}'; {where}.") from None
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise failed(what, error) from error
    there = Path(getattr(sys.modules[top], "__file__", None) or "").resolve()
    for file in (Path(f"{top}.py").resolve(), Path(top, "__init__.py").resolve()):
        sentence = f"{what} is looked for in {there}, which is installed; rename {file} to have it imported."
        require(not file.is_file() or file == there, sentence)
    return module


def called(function: Callable[[], Any], what: str) -> Any:
    """Return what a function of the user's gives; `what` begins the sentence if it fails."""
    try:
        return function()
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise failed(what, error) from error


def failed(what: str, error: BaseException) -> BadInput:
    """Return the sentence for an error in a user's code: where it is and what was raised."""
    place = place_of(error)
    said = " ".join(str(getattr(error, "msg", None) or error).split()) or "it gave no reason"
    words = said if isinstance(error, BadInput) else f"{type(error).__name__}: {said}"
    return BadInput(f"{what} fails{f' in {place}' if place else ''}: {words.rstrip('.')}.")


def of_user(error: Exception) -> BadInput | None:
    """Return the sentence for an error that was raised in code of the user's, a network or a part; else None."""
    if isinstance(error, BadInput) or not place_of(error):
        return None
    found = failed("Your code", error)
    vmapped = "data-dependent" in str(error) or "vmap" in str(error)
    return BadInput(f"{found} With --engine plain one client is trained after another.") if vmapped else found


def place_of(error: BaseException) -> str:
    """Return the file and line of the user's own code where an error was raised; '' where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    outside = (*(folder for folder in LIBRARIES if folder), OWN, "<")
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(outside)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else ""


def defined_at(thing: object) -> str:
    """Return the file and line at which a function or a class is written, in brackets; '' where nobody knows."""
    try:
        return f" ({getsourcefile(thing)}, line {getsourcelines(thing)[1]})"  # type: ignore[arg-type]
    except (TypeError, OSError):
        return ""
