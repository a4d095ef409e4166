"""The datasets that live in folders or on the Hugging Face hub: found, read, decoded once, cached.

A folder and a hub id go the same way, `datasets.load_dataset`. Folders come first: every entry of `FEDKIN_DATA` is
looked through for `namespace/name`. What was used is recorded in `Federation.source`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from fedkin.data import cache, decode
from fedkin.data.catalogue import Entry
from fedkin.data.samples import Samples
from fedkin.errors import BadInput, require

SECONDS = 5  # to wait for the hub's first answer; without it a missing network is noticed after minutes only


@dataclass(frozen=True)
class Source:
    id: str
    folder: Path | None  # None: on the hub

    @property
    def kind(self) -> str:
        return "folder" if self.folder else "hub"

    def cached(self, name: str) -> Path:
        """Hub data is decoded once for good: what an id meant then is what a run can be repeated with."""
        if self.folder is None:
            return cache.path(name, self.id, "hub")
        files = [file for file in self.folder.rglob("*") if file.is_file()]
        return cache.path(name, self.id, cache.fingerprint(files, self.folder))


def roots() -> list[Path]:
    return [Path(entry) for entry in os.environ.get("FEDKIN_DATA", "").split(os.pathsep) if entry]


def sources(entry: Entry) -> list[Source]:
    """Folders that exist, in order, then the hub's ids."""
    found = [Source(id, root / id) for id in entry.sources for root in roots() if (root / id).is_dir()]
    return found + [Source(id, None) for id in entry.hub_ids]


def offline(entry: Entry) -> str | None:
    """The source that needs no network now, if there is one."""
    for source in sources(entry):
        if source.folder or source.cached(entry.name).exists():
            return source.id
    return None


def samples(entry: Entry, progress: bool = True) -> Samples:
    """From the first folder, else from what was decoded of the hub before, else from the hub."""
    candidates = sources(entry)
    local = [source for source in candidates if source.folder or source.cached(entry.name).exists()]
    refusals: list[str] = []
    for source in local[:1] or candidates:
        file = source.cached(entry.name)
        stored = cache.load(file)
        if stored is None:
            try:
                stored = _decoded(entry, source, progress)
            except Unreachable as refusal:
                refusals.append(str(refusal))
                continue
            try:
                cache.save(file, *stored)
                stored = cache.load(file) or stored  # the memory map, and let the decoded copy go
            except OSError as refusal:  # a full or read-only disk costs time, not the run
                print(f"Not cached, so {entry.name} is decoded again next time: {refusal}", file=sys.stderr)
        return _samples(entry, source, *stored)
    places = ", ".join(str(root) for root in roots()) or "FEDKIN_DATA, which is not set"
    raise BadInput(
        f"The dataset '{entry.name}' was not found: no folder {' or '.join(entry.sources)} in {places}, and the hub "
        f"did not give it ({'; '.join(refusals)}); set FEDKIN_DATA to a folder that holds {entry.sources[0]}."
    )


def _samples(entry: Entry, source: Source, tensors: dict[str, Tensor], notes: dict[str, str]) -> Samples:
    rows = json.loads(notes["rows"])
    train = int(rows["train"])
    count = sum(rows.values())
    owner: np.ndarray | None = None
    owners: tuple[str, ...] = ()
    if "owner" in tensors:
        owner = tensors["owner"].numpy()
        owners = tuple(tensors["owners"].numpy().tobytes().decode().split("\n"))
    about: dict[str, object] = {"kind": source.kind, "id": source.id, "rows": rows}
    for note in ("revision", "dropped"):
        if note in notes:
            about[note] = json.loads(notes[note])
    return Samples(
        x=decode.pixels(tensors, entry.pixels) if entry.kind == "images" else tensors["x"],
        y=tensors["y"],
        classes=entry.classes,
        official=train if train < count else None,
        owner=owner,
        owners=owners,
        ordered=entry.kind == "characters",
        vocabulary=int(notes["vocabulary"]) if "vocabulary" in notes else None,
        source=about,
    )


class Unreachable(Exception):
    """The hub cannot be reached or does not know the id."""


def _decoded(entry: Entry, source: Source, progress: bool) -> cache.Stored:
    with _opened(entry, source) as (splits, notes):
        where = f"The dataset '{entry.name}' ({source.kind} {source.folder or source.id})"
        for name, table in splits.items():
            missing = [column for column in entry.columns if column not in table.column_names]
            require(
                not missing,
                f"{where} lacks the column {' and '.join(missing)} in its split '{name}': expected "
                f"{', '.join(entry.columns)}, found {', '.join(table.column_names) or 'none'}.",
            )
        require("train" in splits, f"{where} has no split 'train', only {', '.join(splits)}.")
        ordered = {name: table for name, table in sorted(splits.items(), reverse=True) if name in ("train", "test")}
        try:
            tensors, more = decode.DECODERS[entry.kind](ordered, entry, progress)
        except (OSError, SyntaxError, TypeError) as refusal:  # what Pillow and pyarrow raise on bad content
            raise BadInput(f"{where} could not be decoded: {_first_line(refusal)}") from refusal
        except BadInput as refusal:
            raise BadInput(f"{where} {refusal}") from None
    return tensors, notes | more


@contextmanager
def _opened(entry: Entry, source: Source) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """The splits. A folder's tables are read through a copy that goes when we are done: the cache holds the tensors."""
    import datasets

    scratch = tempfile.TemporaryDirectory(prefix="fedkin-") if source.folder else nullcontext()
    shown = not datasets.are_progress_bars_disabled()
    with scratch as copies:
        try:
            datasets.disable_progress_bars()
            if source.folder is None:
                yield _from_hub(source.id)
            else:
                yield _from_folder(entry, source.folder, str(copies)), {}
        finally:
            if shown:
                datasets.enable_progress_bars()


def _from_folder(entry: Entry, folder: Path, copies: str) -> dict[str, Any]:
    import datasets

    where = f"The folder {folder} of the dataset '{entry.name}'"
    require(any(file.is_file() for file in folder.rglob("*")), f"{where} is empty.")
    try:
        return dict(datasets.load_dataset(str(folder), cache_dir=copies))
    except Exception as refusal:  # datasets raises whatever its readers do, and all of it means the same here
        raise BadInput(f"{where} could not be read, it may be truncated: {_first_line(refusal)}") from refusal


def _from_hub(id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Asked first, once and with a timeout: `load_dataset` alone tries again and again when there is no network."""
    import datasets
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    revision = None
    try:
        revision = HfApi().dataset_info(id, timeout=SECONDS).sha
    except OfflineModeIsEnabled:
        pass  # the user says so; then only what `datasets` has in its own cache can be had
    except Exception as refusal:  # httpx's, the hub's own: whatever it is, the hub did not answer
        raise Unreachable(f"{id}: {_first_line(refusal)}") from refusal
    reasons = []
    # older hub datasets are scripts, which `datasets` no longer runs; the hub keeps a converted copy of them beside
    for tried in (revision, "refs/convert/parquet"):
        try:
            return dict(datasets.load_dataset(id, revision=tried)), {"revision": json.dumps(revision)}
        except Exception as refusal:  # as above
            reasons.append(_first_line(refusal))
    raise Unreachable(f"{id}: {reasons[0]}")


def _first_line(refusal: BaseException) -> str:
    deepest = refusal
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    return (str(deepest).strip().splitlines() or [type(deepest).__name__])[0].rstrip(".")
