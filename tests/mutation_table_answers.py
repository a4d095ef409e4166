"""The wrong changes of the answers for each site that `mutations.py` tries."""

from __future__ import annotations

from mutation_table import Mutation

BOOTSTRAP = "answers/test_bootstrap.py"
AUDIT = "answers/test_audit.py"

ANSWERS = [
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
    Mutation(
        "local-of-another",
        "(-budgets[train], train != local().train, repr(train))",
        "0",
        "comparison/test_budgets.py",
    ),
]
