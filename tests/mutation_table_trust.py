"""The wrong changes that `mutations.py` tries in what keeps runs from damage, and users from other people's runs."""

from __future__ import annotations

from mutation_table import Mutation

OUTSIDE = "faults/test_outside_the_folder.py"

TRUST = [
    Mutation("links-followed", "require(not os.path.islink(link),", "require(True,", OUTSIDE),
    Mutation("names-lead-elsewhere", 'not value.startswith(".") and', "", OUTSIDE),
    Mutation("files-of-the-folder-taken", "and method.lower() not in TAKEN", "", OUTSIDE),
    Mutation("checkpoints-by-text", "key=lambda path: int(path.stem.removeprefix(start))", "key=str", OUTSIDE),
    Mutation("half-files-stay", 'for path in place.glob(".*.part"):', "for path in list[Path]():", OUTSIDE),
]
