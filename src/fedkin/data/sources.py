"""Finds named datasets in folders or on the Hugging Face hub, reads them, decodes them once and caches the result.

`datasets.load_dataset` reads both folders and hub ids. Folders are tried first: each entry of `FEDKIN_DATA` may have a
folder `namespace/name`. `Federation.source` records which source was used.
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

SECONDS = 5  # to wait for the hub's first answer; without this limit a missing network is noticed after minutes


@dataclass(frozen=True)
class Source:
    """One place where a dataset may be found."""

    id: str
    folder: Path | None  # None: the source is on the hub

    @property
    def kind(self) -> str:
        return "folder" if self.folder else "hub"

    def cache_file(self, name: str) -> Path:
        """The cache file of the dataset `name` from this source.

        A folder's file depends on the folder's content. A hub id has one file for ever, so that later runs use the
        data that the id had when it was first decoded.
        """
        if self.folder is None:
            return cache.path(name, self.id, "hub")
        files = [file for file in self.folder.rglob("*") if file.is_file()]
        return cache.path(name, self.id, cache.fingerprint(files, self.folder))


def roots() -> list[Path]:
    """The folders in `FEDKIN_DATA`."""
    return [Path(entry) for entry in os.environ.get("FEDKIN_DATA", "").split(os.pathsep) if entry]


def candidates(entry: Entry) -> list[Source]:
    """All places where the dataset may be found: first the folders that exist, then the hub ids."""
    found = [Source(id, root / id) for id in entry.sources for root in roots() if (root / id).is_dir()]
    return found + [Source(id, None) for id in entry.hub_ids]


def offline_source(entry: Entry) -> Source | None:
    """The first source that needs no network: a folder, or a hub id whose data is in the cache."""
    local = (source for source in candidates(entry) if source.folder or source.cache_file(entry.name).exists())
    return next(local, None)


def read_samples(entry: Entry, progress: bool = True) -> Samples:
    """The dataset's samples from the first folder, else from hub data in the cache, else from the hub."""
    local = offline_source(entry)
    refusals: list[str] = []
    for source in [local] if local else candidates(entry):
        try:
            stored = _cached_or_decoded(entry, source, progress)
        except Unreachable as refusal:
            refusals.append(str(refusal))
            continue
        return _as_samples(entry, source, *stored)
    places = ", ".join(str(root) for root in roots()) or "FEDKIN_DATA, which is not set"
    raise BadInput(
        f"The dataset '{entry.name}' was not found: no folder {' or '.join(entry.sources)} in {places}, and the hub "
        f"did not give it ({'; '.join(refusals)}); set FEDKIN_DATA to a folder that holds {entry.sources[0]}."
    )


def _cached_or_decoded(entry: Entry, source: Source, progress: bool) -> cache.Stored:
    """The tensors and notes in the cache. If they are not there, decode the source and write them to the cache."""
    file = source.cache_file(entry.name)
    stored = cache.load(file)
    if stored is not None:
        return stored
    stored = _decode(entry, source, progress)
    try:
        cache.save(file, *stored)
        return cache.load(file) or stored  # the memory map, so that the decoded copy can be freed
    except OSError as refusal:  # a full or read-only disk must not stop the run
        print(f"Not cached, so {entry.name} is decoded again next time: {refusal}", file=sys.stderr)
        return stored


def _as_samples(entry: Entry, source: Source, tensors: dict[str, Tensor], notes: dict[str, str]) -> Samples:
    """The samples that these cached tensors and notes hold."""
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
        labels=entry.labels,
    )


class Unreachable(Exception):
    """The hub cannot be reached or does not know the id."""


def _decode(entry: Entry, source: Source, progress: bool) -> cache.Stored:
    """Read the source and decode its splits 'train' and 'test', in this order."""
    with _open_splits(entry, source) as (splits, notes):
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
def _open_splits(entry: Entry, source: Source) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """The splits of a source, by name, and notes about them.

    `datasets` copies a folder's tables before it reads them. The copy is deleted at the end, because fedkin's cache
    holds the decoded tensors.
    """
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
    """The splits in a folder. `copies` is where `datasets` may write its own files."""
    import datasets

    where = f"The folder {folder} of the dataset '{entry.name}'"
    require(any(file.is_file() for file in folder.rglob("*")), f"{where} is empty.")
    try:
        return dict(datasets.load_dataset(str(folder), cache_dir=copies))
    except Exception as refusal:  # `datasets` raises the errors of many readers, and all mean the same here
        raise BadInput(f"{where} could not be read, it may be truncated: {_first_line(refusal)}") from refusal


def _from_hub(id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The splits of a hub dataset, and a note of its revision.

    The hub is first asked once and with a timeout, because `load_dataset` tries again for minutes without a network.
    """
    import datasets
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    revision = None
    try:
        revision = HfApi().dataset_info(id, timeout=SECONDS).sha
    except OfflineModeIsEnabled:
        pass  # the user asked for it; then `datasets` can only use its own cache
    except Exception as refusal:  # any error, httpx's or the hub's, means that the hub did not answer
        raise Unreachable(f"{id}: {_first_line(refusal)}") from refusal
    reasons = []
    # older hub datasets are scripts, which `datasets` no longer runs; the hub has a converted copy of them
    for tried in (revision, "refs/convert/parquet"):
        try:
            return dict(datasets.load_dataset(id, revision=tried)), {"revision": json.dumps(revision)}
        except Exception as refusal:  # any error means that this revision cannot be read
            reasons.append(_first_line(refusal))
    raise Unreachable(f"{id}: {reasons[0]}")


def _first_line(refusal: BaseException) -> str:
    """The first line of the deepest cause's message, without its full stop."""
    deepest = refusal
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    return (str(deepest).strip().splitlines() or [type(deepest).__name__])[0].rstrip(".")
