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
        "export-leader-not-clear", 'if found.leader.get("best") else ""', 'if True else ""', "comparison -k exports"
    ),
    Mutation(
        "leader-of-one-seed",
        "if wins[first].get(name) == BETTER]",
        "if str(wins[first].get(name)).startswith(BETTER)]",
        "comparison -k conclusions",
    ),
    Mutation(
        "matched-of-another", "abs(trained(runs, MATCHED) / share - 1) <= NEAR", "True", "comparison -k conclusions"
    ),
    Mutation(
        "pool-recommended", "name == MATCHED or first_of(runs[name]).pools}", "name == MATCHED}", "methods -k pooled"
    ),
    Mutation("pool-of-one", "self.federation.together(ids)", "self.federation.together(ids[:1])", "golden -k pooled"),
    Mutation(
        "partition-counts-often",
        "[seed for seed, each in some.items() for _ in each]",
        "list(range(len(means[pair])))",
        "comparison -k data_seeds",
    ),
    Mutation("partition-not-moved", "seed=seed + place))", "seed=seed))", "comparison -k data_seeds"),
    Mutation("target-before-round-1", "else cost + before", "else cost", "runs/test_targets.py"),
    Mutation("ten-of-three", "int(min(10, -(-rounds // every)))", "10", "command -k small_things"),
    Mutation("toml-null-lost", "return None if value == NULL else value", "return value", "runs -k experiment_file"),
]

VERDICT, DIFFERENCE = "runs -k verdict", "runs/test_difference.py"

VERDICTS = [
    Mutation("verdict-reversed", "(BETTER if found.mean > 0", "(BETTER if found.mean < 0", VERDICT),
    Mutation(
        "one-seed-as-several", "(IN_THIS_SEED if found.blocks == 1", "(IN_THIS_SEED if found.blocks == 0", VERDICT
    ),
    Mutation(
        "verdict-not-corrected",
        '| {"p_holm": p, "verdict": called(one, p)}',
        '| {"p_holm": p, "verdict": called(one, one.p)}',
        VERDICT,
    ),
    Mutation(
        "seeds-not-seen", "((rows, grid.mean(1)), (columns, grid.mean(0)))", "((columns, grid.mean(0)),)", DIFFERENCE
    ),
    Mutation(
        "clients-not-seen", "((rows, grid.mean(1)), (columns, grid.mean(0)))", "((rows, grid.mean(1)),)", DIFFERENCE
    ),
    Mutation(
        "holm-not-stepwise", "min(1.0, (len(known) - rank) * known[i])", "min(1.0, len(known) * known[i])", DIFFERENCE
    ),
    Mutation(
        "irrelevant-averaged",
        '{"": ~irrelevant, "_all"',
        '{"": torch.ones_like(irrelevant), "_all"',
        "runs/test_relevant.py",
    ),
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
        "luckiest-seed", "(run.method, run.data_seed, run.seed", "(run.method, run.data_seed, -run.seed", "deploy"
    ),
]

PRESETS = [
    Mutation(
        "claims-unpaired",
        "dict(values) if isinstance(values, Mapping)",
        "dict(enumerate(values.values())) if isinstance(values, Mapping)",
        "presets/test_claims.py",
    ),
    Mutation("claim-by-one-seed", "if n < 2: return None, None", "if n < 2: return 0.0, 1.0", "presets/test_claims.py"),
    Mutation(
        "claim-contrary-uncorrected", "contrary * len(steps) < LEVEL", "contrary < LEVEL", "presets/test_claims.py"
    ),
    Mutation("splits-independent", "np.sqrt(1 / n + overlap)", "np.sqrt(1 / n)", "presets/test_claims.py"),
    Mutation(
        "target-of-nothing", "if self.over is not None and base is None: return None", "", "presets/test_readings.py"
    ),
    Mutation(
        "chosen-by-test",
        'line["accuracy"].get(f"{reading.kind}/validation", {})',
        'line["accuracy"].get(reading.kind, {})',
        "presets/test_readings.py",
    ),
    Mutation(
        "longer-run-is-the-same", 'LENGTH = ("rounds", "evaluate_every")', "LENGTH = ()", "reproduce -k told_apart"
    ),
]

TUNE, KILLED = "tuning/test_tune.py -k", "tuning/test_tune.py -k stopped_or_killed"

TUNING = [
    Mutation(
        "tuned-by-test",
        "test=validation, validation=None",
        "test=federation.test, validation=None",
        f"{TUNE} no_trial_scores",
    ),
    Mutation("trial-without-seed", "SeedSequence([self.budget.seed, number])", "SeedSequence()", KILLED),
    Mutation("begun-trial-forgotten", "if trial.number not in self.open:", "if False:", KILLED),
    Mutation("given-up-is-failed", "state=TrialState.PRUNED)", "state=TrialState.FAIL)", f"{TUNE} fall_behind"),
    Mutation("refused-counts", 'not trial.user_attrs.get("refused") for trial', "True for trial", f"{TUNE} refuses"),
    Mutation("tuned-maximised", '"maximize" if higher else "minimize"', '"maximize"', f"{TUNE} lower"),
    Mutation(
        "changed-but-tuned",
        "name=one.method.name) == one.method:",
        "name=one.method.name):",
        "comparison/test_tuned.py",
    ),
    Mutation("untuned-local", "same = met or [", "same = [", "comparison/test_tuned.py"),
    Mutation("budgets-alike", "len(set(budgets.values())) == 1", "budgets", "comparison/test_tuned.py"),
]

RUNS = [  # how often a run is scored, where its time goes, and what is quick about it
    Mutation("block-left-out", "width if at == some - 1 else", "", "core/test_tree.py"),
    Mutation("repeated-pick", "seen = (picks[:j] == pick).any(0)", "seen = picks[0] == pick", "core/test_batches.py"),
    Mutation(
        "files-left-open", "def ended(self, finished: bool) -> None: close(self.handles)", "", "runs/test_callbacks.py"
    ),
    Mutation(
        "batches-in-training", "self.watch.move(self.batch_seconds(), TRAINING, BATCHES)", "", "runs/test_profile.py"
    ),
    Mutation("seconds-charged-twice", "self.seconds[before] -= seconds", "", "runs/test_profile.py"),
    Mutation("pause-of-the-inner-row", "self.switch(outer)", "pass", "runs/test_profile.py"),
    Mutation("scored-once", "min(task.rounds // POINTS, round(8", "min(task.rounds, round(8", "runs/test_cadence.py"),
    Mutation(
        "cadence-changed-on-the-way",
        'experiment.evaluate_every or then.get("evaluate_every")',
        "experiment.evaluate_every",
        "runs -k cadence",
    ),
]

ABOVE_RUNS = [*COMPARISONS, *VERDICTS, *PRESETS, *ANSWERS, *DEPLOY, *TUNING, *RUNS]
