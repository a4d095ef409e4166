"""The wrong changes that `mutations.py` tries in what keeps runs from damage, and users from other people's runs."""

from __future__ import annotations

from mutation_table import Mutation

OUTSIDE = "faults/test_outside_the_folder.py"
OWN = "faults/test_own_data_never_silently_wrong.py"
PAIRS = "conformance/test_every_pair.py -k control or train-collaborate"
DIVERGING = "faults/test_diverging.py core/test_tree.py -k engines or diverged"
SIGNALS = "faults/test_signals_and_limits.py"
ODD = "faults/test_odd_invocations.py"
DAMAGE = "faults/test_damage.py"
OTHERS = "faults/test_folders_of_others.py"
NO_FILES = "faults/test_no_files.py"

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
    Mutation("clients-merge", "require(client not in parts,", "require(True,", OWN),
    Mutation("files-merge", "require(other == file.name,", "require(True,", OWN),
    Mutation("label-as-a-feature", "check_different([name.strip() for name in names], path.name)", "pass", OWN),
    Mutation("any-size-of-numbers", "require(most <= LARGEST,", "require(True,", OWN),
    Mutation("inexact-labels", 'require(task == "regress" or most < EXACT, inexact)', "pass", OWN),
    Mutation("models-nobody-sends", "require(not lacking,", "require(True,", PAIRS),
    Mutation("models-nobody-uploads", "require(not unknown,", "require(True,", PAIRS),
    Mutation("only-finite-counts", "dim=1) <= LARGEST", "dim=1) < torch.inf", DIVERGING),
    Mutation(
        "another-order-of-adding", "shrink * w, model), gradient, -rate)", "w, model), gradient, -rate)", DIVERGING
    ),
    Mutation("no-signal-to-end", "STOPS = (signal.SIGINT, signal.SIGTERM)", "STOPS = (signal.SIGINT,)", SIGNALS),
    Mutation("any-size-of-models", "require(size <= free(),", "require(True,", SIGNALS),
    Mutation("memory-unsaid", "if need <= there:", "if True:", SIGNALS),
    Mutation("python-itself-is-called", "require(not isbuiltin(found), sentence)", "pass", f"{ODD} -k dict"),
    Mutation("markup-in-names", "markup=False, emoji=False", "markup=True, emoji=False", f"{ODD} -k markup"),
    Mutation("any-count", "require(whole and least <= value <= most, sentence)", "pass", f"{ODD} -k odd_invocation"),
    Mutation("words-that-are-no-text", "require(not odd,", "require(True,", f"{ODD} -k odd_invocation"),
    Mutation("any-number-of-clients", "require(need <= free(),", "require(need <= 10**19,", f"{ODD} -k synthetic"),
    Mutation("damage-believed", "!= expected:", "== []:", f"{DAMAGE} -k said or shown"),
    Mutation("seals-believed", "value[SEAL] != seal_of(found)", "False", f"{DAMAGE} -k half-digit or whole-digit"),
    Mutation("appended-believed", "[name]).hexdigest() != digest:", "[name]) is None:", f"{DAMAGE} -k half-flipped"),
    Mutation("pipes-are-read", 'raise Damaged(f"{path} is damaged: it is no file")', "pass", f"{NO_FILES} -k pipe"),
    Mutation(
        "pipes-are-replaced",
        'require(path.is_file() or not path.exists(), f"{path} is no file, so',
        'require(True, f"{path} is no file, so',
        f"{NO_FILES} -k replaced",
    ),
    Mutation(
        "experiments-from-pipes",
        'require(path.is_file() or not path.exists(), f"{path} is no file; give',
        'require(True, f"{path} is no file; give',
        f"{NO_FILES} -k experiment",
    ),
    Mutation(
        "any-checkpoint-is-believed",
        "about = schema.read(schema.CheckpointSaid, path)",
        "about = manifest.unsealed(files.read_json(path), path)",
        f"{NO_FILES} -k checkpoint",
    ),
    Mutation("every-failure-is-the-run's", "if not vouched(run):", "if True:", f"{OTHERS} -k vouch"),
    Mutation("no-failure-is-the-run's", "if not vouched(run):", "if False:", f"{OTHERS} -k vouch"),
    Mutation("a-lock-in-the-way", "any(one.name != LOCK for one", "any(True for one", f"{NO_FILES} -k begin"),
    Mutation("half-federations-stay", "rmtree(folder.path, ignore_errors=True)", "pass", f"{NO_FILES} -k federation"),
    Mutation("links-to-themselves", 'str(error).startswith("Symlink loop")', "False", f"{ODD} -k itself"),
]
