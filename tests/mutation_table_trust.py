"""The wrong changes that `mutations.py` tries in what keeps runs from damage, and users from other people's runs."""

from __future__ import annotations

from mutation_table import Mutation

OUTSIDE = "faults/test_outside_the_folder.py"
OTHERS = "faults/test_folders_of_others.py"

TRUST = [
    Mutation("links-followed", "require(not os.path.islink(link),", "require(True,", OUTSIDE),
    Mutation("names-lead-elsewhere", 'not value.startswith(".") and', "", OUTSIDE),
    Mutation("files-of-the-folder-taken", "and method.lower() not in TAKEN", "", OUTSIDE),
    Mutation("checkpoints-by-text", "key=lambda path: int(path.stem.removeprefix(start))", "key=str", OUTSIDE),
    Mutation("half-files-stay", 'for path in place.glob(".*.part"):', "for path in list[Path]():", OUTSIDE),
    Mutation("everybody-is-trusted", "known = any(one in TRUSTED for", "known = any(True for", OTHERS),
    Mutation("trusted-for-ever", "imports.TRUSTED.discard(imports.EVERYTHING)", "pass", OTHERS),
    Mutation("models-of-strangers", 'if models.is_imported(given.get("model", "mlr")):', "if False:", OTHERS),
    Mutation("seed-as-html", "{escape(str(begun[0].seed))}", "{begun[0].seed}", OTHERS),
    Mutation("any-script-runs", "policy.replace(ANY_SCRIPT,", 'policy.replace("",', OTHERS),
    Mutation("any-shape-is-believed", "validate(value)", "pass", f"{OTHERS} -k shape"),
]
