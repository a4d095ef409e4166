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
SIZES = "faults/test_sizes.py"
RECOVERY = "faults/test_recovery.py"
NAMES = "faults/test_names_of_others.py"
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
    Mutation("models-nobody-uploads", "require(not unknown, f", "require(True, f", PAIRS),
    Mutation("only-finite-counts", "dim=1) <= LARGEST", "dim=1) < torch.inf", DIVERGING),
    Mutation(
        "another-order-of-adding", "shrink * w, model), gradient, -rate)", "w, model), gradient, -rate)", DIVERGING
    ),
    Mutation("no-signal-to-end", "STOPS = (signal.SIGINT, signal.SIGTERM)", "STOPS = (signal.SIGINT,)", SIGNALS),
    Mutation("any-size-of-models", "require(size <= free(),", "require(True,", SIGNALS),
    Mutation("memory-unsaid", "if total <= there:", "if True:", f"{SIZES} -k hardly"),
    Mutation("any-memory", "require(total <= MUCH * there, said)", "pass", f"{SIZES} -k hardly or before_it_begins"),
    Mutation(
        "built-before-weighed",
        "memory.advice(method.name, needs(experiment, federation, size_in(experiment, federation, least, scored)))",
        "pass",
        f"{SIZES} -k not_built",
    ),
    Mutation("jobs-alone", "require(jobs == 1 or sum(most) <=", "require(True or sum(most) <=", f"{SIZES} -k together"),
    Mutation("uploads-forgotten", '"round": (down + up) * size.model', '"round": 0', f"{SIZES} -k hardly or expected"),
    Mutation("peak-of-all-runs", 'file.write("5")', "pass", f"{SIZES} -k anew"),
    Mutation("memory-unmeasured", '"measured": machine.peak()', '"measured": 1', f"{SIZES} -k shown or expected"),
    Mutation(
        "any-table-is-read", "require(need <= there, f", "require(True, f", f"{SIZES} -k table or archive or files"
    ),
    Mutation(
        "any-batch-is-tried", "min(train.batch, max(1, len(federation.train.rows)))", "train.batch", f"{SIZES} -k harm"
    ),
    Mutation("any-number-of-layers", "require(len(words) <= DEEPEST,", "require(True,", f"{SIZES} -k layers"),
    Mutation("locks-through-links", 'os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb")', 'os.O_CREAT, 0o666), "rb")', OUTSIDE),
    Mutation("any-number-of-arms", "require(number <= MANY, f", "require(True or number, f", f"{SIZES} -k arms"),
    Mutation("manifests-lead-elsewhere", "not all(map(inside, found))", "False", f"{RECOVERY} -k elsewhere"),
    Mutation(
        "checkpoints-of-any-shape",
        "schema.read(schema.CheckpointSaid, path)",
        "files.read_json(path)",
        f"{RECOVERY} -k shape",
    ),
    Mutation("damage-stays", "folder.reopen(damaged)", "pass", f"{RECOVERY} -k made_again or computed"),
    Mutation("presets-not-mended", "mend(runs, warn) options", "options", f"{RECOVERY} -k presets"),
    Mutation("methods-unchecked", ', *sorted(self.path.glob("*/summary.json"))]', "]", f"{RECOVERY} -k summaries"),
    Mutation("terminals-obey", "visible(text, also=", "str(text or ", f"{NAMES} -k terminal"),
    Mutation("names-no-file-can-hold", 'if not is_text("".join(names)):', "if False:", f"{NAMES} -k no_text"),
    Mutation("python-itself-is-called", "require(not isbuiltin(found), sentence)", "pass", f"{ODD} -k dict"),
    Mutation("markup-in-names", "markup=False, emoji=False", "markup=True, emoji=False", f"{ODD} -k markup"),
    Mutation("any-count", "require(whole and least <= value <= most, sentence)", "pass", f"{ODD} -k odd_invocation"),
    Mutation("words-that-are-no-text", "require(is_text(word),", "require(True,", f"{ODD} -k odd_invocation"),
    Mutation("any-number-of-clients", "require(need <= free(),", "require(need <= 10**19,", f"{ODD} -k synthetic"),
    Mutation("damage-believed", "(path)] != expected:", "(path)] == []:", f"{DAMAGE} -k said or shown"),
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
        'require(not path.exists() or path.is_file(), f"{path} is no file; give',
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
    Mutation(
        "stopped-runs-believed",
        "so_far.checked(path, name, self.checkpoints())",
        "path",
        "faults/test_damage.py -k stopped_run",
    ),
    Mutation(
        "damaged-checkpoints-stay",
        "if round_of(path) > round]:  # damaged: else it was taken",
        "if False]:",
        "faults/test_recovery.py -k checkpoint_before",
    ),
]
