"""What the watch page is told of a folder: its sections, cut into pieces of which the page has most already."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from fedkin.errors import BadInput, require
from fedkin.report.html import Section
from fedkin.report.page import sections
from fedkin.report.study import Study, studied
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.files import Damaged
from fedkin.runs.run import Run
from fedkin.watch.progress import Progress, progress_of
from fedkin.watch.status import status

Signature = tuple[tuple[str, int, int], ...]  # name, size and time of every file that matters
SKIPPED = (".", "report.html", "checkpoints", "slots-")  # how names begin of what is no part of the page
POLL, SELDOM = 1000, 5000  # milliseconds to the page's next question, while something is played and while nothing is
FIRST = ("header", "sites", "curves", "who_was_selected", "who_learns_from_whom", "opinions", "whose_updates_counted")
OFTEN = 0.5  # seconds between two looks at the files, at least

# While a file is being replaced, or files of one run are of two different rounds, reading may fail in these ways. The
# page then shows what it showed before, and the next look succeeds.
UNSETTLED = (BadInput, Damaged, OSError, ValueError, KeyError, IndexError)


@dataclass(frozen=True)
class View:
    """The sections of the page in order, and their pieces: JSON texts by a check sum of what they say."""

    sections: list[dict[str, Any]] = field(default_factory=list)
    pieces: dict[str, str] = field(default_factory=dict)

    def with_first(self, name: str, section: Section) -> View:
        """The same with another section in front."""
        first = view_of({name: section})
        return View([*first.sections, *self.sections], first.pieces | self.pieces)

    def answer(self, have: Collection[str], about: dict[str, Any]) -> str:
        """What the page needs, as JSON: all sections by the names of their pieces, and the pieces it does not have."""
        new = ",".join(f'"{name}":{text}' for name, text in self.pieces.items() if name not in have)
        head = json.dumps(about | {"sections": self.sections}, separators=(",", ":"))
        return f'{head[:-1]},"pieces":{{{new}}}}}'


def moving_first(found: dict[str, Section]) -> dict[str, Section]:
    """The sections with those in front that change while runs are played."""
    return {name: found[name] for name in [*FIRST, *found] if name in found}


def view_of(found: dict[str, Section]) -> View:
    """Cut sections into pieces: the HTML of each, every figure, and every text that scripts read."""
    pieces: dict[str, str] = {}

    def piece(text: str) -> str:
        name = blake2b(text.encode(), digest_size=6).hexdigest()
        pieces[name] = text
        return name

    listed = []
    for name, section in found.items():
        stores = {"figures": {id: json.dumps(one, allow_nan=False) for id, one in section.figures.items()}}
        stores |= {store: dict(texts) for store, texts in section.data.items()}
        cut = {store: {id: piece(text) for id, text in texts.items()} for store, texts in stores.items()}
        listed.append({"name": name, "html": piece(json.dumps(section.html)), "stores": cut})
    return View(listed, pieces)


class Remembered:
    """Makes runs of their folders, and gives back the same one as long as its files, and what is said of it, are the
    same."""

    def __init__(self) -> None:
        self.known: dict[Path, tuple[object, Run]] = {}

    def __call__(self, folder: Path, *said: Any, **more: Any) -> Run:
        now = (signature(folder), said, more)
        before = self.known.get(folder)
        if before is None or before[0] != now:
            before = self.known[folder] = (now, Run(folder, *said, **more))
        return before[1]


def signature(folder: Path) -> Signature:
    """What would be different if a file in this folder had changed; files deeper inside do not count, their folders do.

    A file that is written anew gets another time, and so does the folder it lies in.
    """
    try:
        with os.scandir(folder) as entries:
            found = [(one.name, one.stat()) for one in entries if not one.name.startswith(SKIPPED)]
    except OSError:  # it is not there, or a file went away this moment
        return ()
    return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in found))


class Watched:
    """The folder that is watched. It is read again when its files have changed, in the threads of the server.

    Making the sections takes at most `share` of the time, so that a run in the same process is not slowed down. The
    page is `beside` a command if it ends with it. `doing` says what runs are doing within their rounds, by name, where
    somebody knows it.
    """

    def __init__(
        self,
        folder: Path,
        share: float = 0.3,
        beside: bool = False,
        doing: Callable[[], dict[str, str]] = dict,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.folder, self.share, self.beside, self.doing, self.clock = folder, share, beside, doing, clock
        self.lock, self.read = Lock(), Remembered()
        self.shown: object = None  # the signature of what `view` shows
        self.study: Study | None = None
        self.view = View()
        self.next = 0.0  # when the files may be looked at again
        self.asked = -1e9  # when the page last asked
        self.last = False  # whether this is the last answer, because the server ends with its command
        self.note = self.wrong = ""  # sentences under the status: of the command, and why the folder cannot be read

    def answer(self, have: Collection[str]) -> str:
        """What a page needs that has these pieces already."""
        with self.lock:
            self.asked = self.clock()
            if self.asked >= self.next:
                self.look()
            progress = self.progress()
            first = status(progress, self.folder.resolve().name, self.doing(), self.note or self.wrong)
            quiet = progress.state in ("finished", "stopped") and not self.beside
            about = {"state": progress.state, "title": self.folder.resolve().name, "last": self.last}
            about["wait"] = SELDOM if quiet else POLL
            return self.view.with_first("status", first).answer(have, about)

    def look(self) -> None:
        """Read the folder if anything in it has changed, and make the sections anew."""
        start = self.clock()
        self.next = start + OFTEN
        now = self.signature()
        if now == self.shown:
            return
        try:
            study = studied(self.folder, self.read, live=True)
            self.view, self.study, self.shown = view_of(moving_first(sections(study))), study, now
            self.wrong = ""
        except BadInput as error:
            self.wrong = str(error) if CommandFolder(self.folder).runs() else ""  # else it has not begun
        except UNSETTLED:
            pass
        took = self.clock() - start
        self.next = max(self.next, start + took / self.share)

    def signature(self) -> object:
        place = CommandFolder(self.folder)
        return signature(self.folder), [(run.path, signature(run.path)) for run in place.runs()]

    def progress(self) -> Progress:
        """How far the runs are that were read last."""
        place = CommandFolder(self.folder)
        named = [] if self.study is None else [(e.name, run) for e in self.study.entries.values() for run in e.runs]
        try:
            return progress_of(place, named, time.time())
        except UNSETTLED:
            return Progress((), at_work=True)

    def end(self, note: str) -> None:
        """Show the folder as it is now, and say that nothing more will come."""
        with self.lock:
            self.look()
            self.last, self.note = True, note


def check_watchable(folder: Path) -> None:
    """Refuse a folder that is something else than a run; one that is empty, or not there yet, may become a run."""
    require(not folder.exists() or folder.is_dir(), f"{folder} is a file; give the folder of a run.")
    place = CommandFolder(folder)
    if not folder.is_dir() or place.has_plan or place.runs():
        return
    inside = [str(path.parent) for path in sorted(folder.glob("*/plan.json"))]
    require(not inside, f"{folder} holds {len(inside)} runs; watch one of them: {', '.join(inside[:6])} ...")
    empty = all(path.name.startswith(".") for path in folder.iterdir())
    require(empty, f"{folder} is not a run of fedkin; give the folder that 'fedkin run' named.")
