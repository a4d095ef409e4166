"""The wrong changes that `mutations.py` tries in comparisons, their tables and trackers, in answers and in exports."""

from __future__ import annotations

from mutation_table import Mutation

ARMS = "comparison -k arms"

COMPARISONS = [
    Mutation("arm-overruled", "any(own == path or own.startswith", "False and any(own == path or own.startswith", ARMS),
    Mutation("sweep-of-one", "for text in texts] for path, texts", "for text in texts[:1]] for path, texts", ARMS),
    Mutation("short-name-guessed", "require(len(found) < 2, f", "require(found or True, f", ARMS),
    Mutation("file-over-option", '("method", "methods", *said)', '("method", "methods")', ARMS),
    Mutation("arm-twice", "if other is not arm:", "if False:", ARMS),
    Mutation("library-replaced", "sys.path.append(here)", "sys.path.insert(0, here)", ARMS),
    Mutation("tracker-twice", "if record.round > self.writer.last:", "if record.round:", "track"),
    Mutation(
        "tracker-stops-a-run",
        "except Exception as error:  # whatever the other",
        "except KeyError as error:  # whatever the other",
        "track",
    ),
    Mutation(
        "export-best-reversed",
        ".max() if metric.higher_is_better",
        ".min() if metric.higher_is_better",
        "comparison -k exports",
    ),
    Mutation("ten-of-three", "int(min(10, -(-rounds // every)))", "10", "command -k small_things"),
    Mutation("toml-null-lost", "return None if value == NULL else value", "return value", "runs -k experiment_file"),
]

BOOTSTRAP = "answers/test_bootstrap.py"
AUDIT = "answers/test_audit.py"

ANSWERS = [
    Mutation("rarer-rows-ignored", "rows if rarer is None else rarer", "rows", "answers -k rarer"),
    Mutation(
        "choice-not-simultaneous",
        "(np.abs(deviation[:, varied]) / error[varied]).max(1)",
        "(np.abs(deviation[:, varied]) / error[varied])[:, 0]",
        BOOTSTRAP,
    ),
    Mutation("rows-counted-by-split", "alone - together", "0 * alone", BOOTSTRAP),
    Mutation("splits-not-drawn", "np.maximum(0.0, variance - by_rows)", "0.0 * variance", BOOTSTRAP),
    Mutation("few-rows-no-floor", "2 / (rows + 2) ** 2 if percent", "0.0 if percent", BOOTSTRAP),
    Mutation("split-ignored", 'f"split {number}" if number else "split"', '"split"', "comparison/test_splits.py"),
    Mutation("join-when-unclear", "if gain.low > 0:", "if gain.gain > 0:", "answers/test_site.py"),
    Mutation(
        "weak-local-flatters",
        "key=lambda name: reached[name]",
        "key=lambda name: gains[name].gain",
        "answers/test_site.py",
    ),
    Mutation("kin-is-oneself", "np.fill_diagonal(mean, 0.0)", "pass", "answers/test_kin.py"),
    Mutation("own-vote", "trusted & (np.arange(federation.n) != site)", "trusted", AUDIT),
    Mutation("unsure-is-wrong", "+ 2 * np.nan_to_num(found.error)", "", AUDIT),
    Mutation("minority-is-right", "if middle < AGREED:", "if False:", AUDIT),
    Mutation("filters-alone-accuse", "if CROSSED in out and len(out) > 1:", "if len(out) > 2:", AUDIT),
    Mutation("one-local-for-all", "if local.train == budget]", "if local.name == LOCAL]", "comparison/test_budgets.py"),
    Mutation("judged-by-post", "self.lam == 0 and not self.restart", "False", "answers/test_answer.py"),
    Mutation("diagonal-as-neighbour", "(above - m) // 2", "above // 2", "collaborate -k neighbours or meet"),
]

DEPLOY = [
    Mutation("model-of-another", "tree.row(models, client - int(ids[0]))", "tree.row(models, 0)", "runs -k made_again"),
    Mutation(
        "kin-by-test-rows",
        'loss = engine.score(tried, ids, "train", part)',
        'loss = engine.score(tried, ids, "test", part)',
        "deploy -k kin",
    ),
    Mutation("fitted-on-test-rows", "fit_site(how, encoded[train])", "fit_site(how, encoded)", "deploy -k prepared"),
    Mutation(
        "export-of-all-sites",
        '{"sites": {client: how["sites"][client]}}',
        '{"sites": how["sites"]}',
        "deploy -k other_sites",
    ),
    Mutation(
        "luckiest-seed", "key=lambda run: (run.method, run.seed", "key=lambda run: (run.method, -run.seed", "deploy"
    ),
]

ABOVE_RUNS = [*COMPARISONS, *ANSWERS, *DEPLOY]
