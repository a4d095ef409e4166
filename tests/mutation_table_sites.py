"""The wrong changes that `mutations.py` tries in what clients on other machines need: sites, their engine, Flower."""

from __future__ import annotations

from mutation_table import Mutation

FAULTS, REFUSALS, GOING_ON = "sites/test_faults.py", "sites/test_refusals.py", "sites/test_going_on.py"
MEETING, AGREE, GRID = "sites/test_meeting.py", "sites/test_sites_agree.py", "flower/test_grid.py"
STRATEGY, NOISED = "flower/test_strategy.py", "flower/test_strategy_privacy.py"
SIMULATED = "flower/test_simulated.py"

SITES = [
    Mutation(
        "late-answer-believed", "if answer.to != request.id: raise", "if False:\n        raise", f"{FAULTS} -k in_time"
    ),
    Mutation("another-name-believed", "if answer.site != name:", "if False:", f"{FAULTS} -k weight_0"),
    Mutation("large-upload-counts", "mine > largest * usual > 0", "mine < 0", f"{FAULTS} -k weight_0"),
    Mutation("refused-once-and-for-all", "if NOT_LET_IN not in last:", "if True:", "federation/test_site_joins.py"),
    Mutation("asks-for-ever", "now > self.refused + AGAIN", "now < 0", "federation/test_site_joins.py"),
    Mutation("takes-part-twice", 'files.locked(kept / "logs")', "files.alone(kept)", "federation/test_site_joins.py"),
    Mutation(
        "dead-run-blocks-the-next",
        "require(there or active or not",
        "require(there or not",
        "federation/test_follow.py",
    ),
    Mutation("late-in-flowers-words", "late if is_late(reply) else", "", f"{GRID} -k time_is_over"),
    Mutation("asked-once-at-the-end", "again = last and", "again = False and", f"{FAULTS} -k run_ends"),
    Mutation(
        "any-name-for-a-key",
        "if self.registered and keys.get(node) != answer.site:",
        "if False:",
        f"{GRID} -k belongs",
    ),
    Mutation("clipped-to-the-limit", "scaled(good[number], usual / mine)", "good[number]", f"{FAULTS} -k shortened"),
    Mutation("clipped-unsaid", "log.clipped = list(reply.clipped)", "log.clipped = []", f"{FAULTS} -k shortened"),
    Mutation("large-model-shown", "why |= seen.why", "pass", f"{FAULTS} -k weight_0"),
    Mutation(
        "upload-of-another-shape",
        "fits = value.shape == wanted.shape and value.dtype == wanted.dtype",
        "fits = True",
        f"{FAULTS} -k weight_0",
    ),
    Mutation(
        "goes-on-from-what-never-arrived",
        "self.kept.read(held,",
        "self.kept.read(max(held, *self.kept.rounds(), 0),",
        f"{FAULTS} -k in_time",
    ),
    Mutation(
        "bad-site-moves-on",
        "for number in [number for number in found if number not in why]:",
        "for number in list(found):",
        f"{FAULTS} -k weight_0",
    ),
    Mutation(
        "scores-in-a-message-of-their-own",
        "self.expected = order, looks",
        "self.expected = None",
        f"{FAULTS} -k one_exchange",
    ),
    Mutation(
        "versions-gone-too-early",
        "[*self.saved, list(self.version)][-MOST:]",
        "[list(self.version)] * MOST",
        f"{GOING_ON} -k damaged",
    ),
    Mutation("versions-for-ever", 'found["safe"] = self.saved[0][number]', "pass", f"{GOING_ON} -k no_more"),
    Mutation("anybody-goes-on", 'same = bytes(proof).hex() == one["proof"]', "same = True", f"{GOING_ON} -k place"),
    Mutation("lost-folder-unsaid", "kept.check(held)", "pass", f"{GOING_ON} -k lost"),
    Mutation("parts-of-any-module", "allowed = not colon or any(", "allowed = True or any(", REFUSALS),
    Mutation("paths-from-a-server", "and RUN.fullmatch(value) is not None", "", f"{REFUSALS} -k path"),
    Mutation("models-by-path", 'named = spec.partition(":")[0] in models.MODELS', "named = True", REFUSALS),
    Mutation("private-models-shown", "require(slot == self.part.shared,", "require(True,", REFUSALS),
    Mutation("numbered-by-arrival", "for name in natural_order(found)", "for name in found", MEETING),
    Mutation("two-of-one-name", 'found[answer.site]["proof"] != said["proof"]', "False", MEETING),
    Mutation("check-sum-without-secret", "blake2b(digest_size=16, key=key)", "blake2b(digest_size=16)", MEETING),
    Mutation("check-sum-keyed-by-what-is-told", "self.samples.digest(key)", "self.samples.digest(proof)", MEETING),
    Mutation("batches-of-another", "numbers=torch.tensor([number])", "numbers=torch.tensor([0])", f"{AGREE} -k fedavg"),
    Mutation("liar-takes-the-name", "elif self.proofs.setdefault(answer.site, proof) != proof:", "elif False:", GRID),
    Mutation(
        "reply-of-another-node",
        "waiting.pop(reply.metadata.reply_to_message_id, None)",
        "waiting.pop(next(iter(waiting)), None)",
        GRID,
    ),
    Mutation("own-client-for-any-method", "check_plain(method)", "pass", STRATEGY),
    Mutation(
        "one-model-for-all-nodes",
        'else one["model"] for i, one in sent.items()',
        'else next(iter(sent.values()))["model"] for i, one in sent.items()',
        STRATEGY,
    ),
    Mutation("batches-of-a-place", '"number": self.numbers[number]}', '"number": number}', f"{SIMULATED} -k numbers"),
    Mutation("slots-stay-at-sites", "self.take(ids, round)", "pass", f"{SIMULATED} -k are_stacked"),
    Mutation("sites-begin-anew", "self.ledger.version[number] = BEGIN", "pass", f"{SIMULATED} -k exactly"),
    Mutation(
        "goes-on-without-a-client", "order), everyone=True)", "order), everyone=False)", f"{SIMULATED} -k without"
    ),
    Mutation(
        "simulated-without-noise",
        "if self.guard is None or not len(reply.ids):",
        "if True:",
        f"{SIMULATED} -k noise",
    ),
    Mutation(
        "slots-of-the-dead",
        "if folder not in (self.folder, self.slots.folder):",
        "if False:",
        f"{SIMULATED} -k exactly",
    ),
    Mutation("jobs-of-actors", "alone = busy is None or", "alone = True or", f"{SIMULATED} -k sentence"),
    Mutation(
        "pooled-on-nodes", "require( not experiment.method.train.pools,", "require(True,", f"{SIMULATED} -k sentence"
    ),
    Mutation("strategy-without-noise", '"dp": None if privacy is None else str(privacy)', '"dp": None', NOISED),
    Mutation("own-app-with-noise", 'require(privacy is None, f"{theirs}', 'require(True, f"{theirs}', NOISED),
    Mutation("strategy-counts-nothing", "self.releases[self.nodes.released(records)] += 1", "pass", NOISED),
    Mutation("every-node-asked", "if answer.reason.startswith(ANOTHER):", "if False:", f"{STRATEGY} -k one_node"),
    Mutation(
        "space-of-a-wrapped-method",
        "return experiment.method if experiment.dp is None else unprotected(experiment.method)",
        "return experiment.method",
        "tuning/test_tune.py -k noise",
    ),
    Mutation(
        "waits-for-a-stopped-run",
        "if not part.object_available and self.tasks.waits():",
        "if False:",
        "federation/test_worker.py",
    ),
]
