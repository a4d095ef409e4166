"""The wrong changes that `mutations.py` tries: each as source text before and after, and the tests to catch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A wrong change. `before` may name several ways to write the line, of which the source has one, and `after` then
    has as many. `tests` are paths below tests/, and after -k the words of pytest's option of that name; paths that do
    not exist are left out, and without any that exists the words are looked for in all tests."""

    name: str
    before: str | tuple[str, ...]
    after: str | tuple[str, ...]
    tests: str

    def changes(self) -> list[tuple[str, str]]:
        if isinstance(self.before, str) and isinstance(self.after, str):
            return [(self.before, self.after)]
        return list(zip(self.before, self.after, strict=True))


RESUME = "runs -k resume and not killed"
STATISTICS = "runs -k statistics"
VERDICT = "runs -k verdict"
MEASURED = "test_metrics.py"
RECORDED = "runs/test_measures.py"
FLAMBY = "data/test_heart_flamby.py"

PARTS = [
    Mutation("prox-sign", "(self.towards, -self.pull)", "(self.towards, self.pull)", "golden train -k prox"),
    Mutation("prox-sign-plain", "carry[name], -rate * factor)", "carry[name], rate * factor)", "equivalence -k prox"),
    Mutation("prox-no-gradient", '("model", "centre", self.lam', '("model", "model", self.lam', "golden train -k prox"),
    Mutation("momentum-not-at-rest", "tree.zeros(carry[self.model])", "carry[self.model]", "golden train"),
    Mutation("rate-decay-early", "self.rate_decay ** (round - 1)", "self.rate_decay ** round", "golden train -k rate"),
    Mutation("moreau-judged-by-w", 'return mine["theta"]', 'return mine["model"]', "golden train -k pfedme or moreau"),
    Mutation(
        "ditto-restarts", 'start if self.restart else mine["personal"]', "start", "golden train -k ditto or two_streams"
    ),
    Mutation(
        "maml-judged-by-w",
        "added(w, f.grad(w, batch), -self",
        "added(w, w, 0 * self",
        "golden train -k perfedavg or maml",
    ),
    Mutation("maml-hessian", "(a - b) / (2 * e)", "(a - b) / e", "golden train -k perfedavg or maml"),
    Mutation("fedmix-picks-its-own", "np.where(at < first, at, at + last - first)", "at", "golden train -k fedmix"),
    Mutation("fedmix-slope", "lam * (1 - lam) * slope", "lam * slope", "golden train -k fedmix"),
    Mutation(
        "scaffold-control-lost", 'added(mine["control"], change)', 'zeros(mine["control"])', "golden train -k scaffold"
    ),
    Mutation("scaffold-server-control", "float(kept.sum()) / task.n", "1.0", "golden train -k scaffold"),
    Mutation("median", "values[(n - 1) // 2] + values[n // 2]", "values[n // 2] + values[n // 2]", "collaborate"),
    Mutation("trimmed-mean", "values[b : n - b]", "values[b:]", "collaborate -k robust or trimmed"),
    Mutation("fedmcsa-softmax-axis", "counted.sum(1, keepdim=True)", "counted.sum(0, keepdim=True)", "collaborate"),
    Mutation(
        "fedacs-not-strict",
        "(s > delta)",
        "(s >= delta)",
        "golden collaborate -k fedacs",
    ),
    Mutation("fedmcsa-attention", "self.sigma * (near - top)", "-self.sigma * (near - top)", "golden -k fedmcsa"),
    Mutation(
        "fedmcsa-mean-by-size", "kept * sizes.double().to(kept.device)", "kept", "golden collaborate -k mcsa or mean"
    ),
    Mutation("heurfedamp-self-weight", "(1 - self.self_weight) * others", "others", "golden collaborate"),
    Mutation("oracle-reversed", "(~task.irrelevant[reply.ids])", "(task.irrelevant[reply.ids])", "test_round.py keep"),
    Mutation("fedamp-derivative", "torch.exp(-x / sigma) / sigma", "torch.exp(-x / sigma)", "collaborate"),
    Mutation("attention-alpha", "alpha * mine + (1 - alpha)", "(1 - alpha) * mine + alpha", "select -k attention"),
    Mutation("schedule-early", "(round - 1) * self.levels // rounds", "round * self.levels // rounds", "select"),
    Mutation("dismiss-at-half", '2 * counted > slot["judged"]', '2 * counted >= slot["judged"]', "select -k dismiss"),
    Mutation(
        "active-without-root", 'reply.report["size"].sqrt()', 'reply.report["size"]', "select -k valuation or active"
    ),
    Mutation("shapley-forgets", "self.alpha * phi[reply.ids] +", "phi[reply.ids] +", "select -k shapley"),
    Mutation("krum-largest", ".cpu().argsort(stable=True)", ".cpu().argsort(stable=True, descending=True)", "keep"),
    Mutation("relevance-minority", "(0, cut) if 2 * cut >= m", "(0, cut) if 2 * cut < m", "keep -k relevance"),
    Mutation("relevance-unsorted", "dummies.double().sort(2).values", "dummies.double()", "keep -k relevance"),
    Mutation("inversion-uphill", "steps if literal else -rate * steps", "steps if literal else rate * steps", "keep"),
    Mutation("alignment-reversed", "1 - (updates * way)", "1 + (updates * way)", "keep -k alignment"),
]

ENGINES = [
    Mutation("finished-client-goes-on", "sum(count > first for count in steps)", "len(steps)", "engines equivalence"),
    Mutation("short-batch-as-full", '/ batch["weight"].sum(1, keepdim=True)', '/ batch["weight"].shape[1]', "engines"),
    Mutation("padding-trained-on", "np.arange(width) < count[:, None]", "np.arange(width) <= count[:, None]", "golden"),
    Mutation("short-batch-dropped", "epochs * -(-sizes // batch)", "epochs * (sizes // batch)", "core -k batches"),
    Mutation("batch-with-repeats", "np.where(seen, last, pick)", "pick", "core -k batches"),
    Mutation("batches-without-seed", "rng.keys(self.seed, name", "rng.keys(0, name", "equivalence engines -k seed"),
    Mutation("batches-alike-every-round", '"batches", round, who', '"batches", 1, who', "engines -k keyed"),
    Mutation("batches-alike-for-all", '"batches", round, who', '"batches", round, 0 * who', "engines -k keyed"),
    Mutation(
        "dropout-alike-for-all",
        '"dropout", work.round, work.ids[live].numpy()',
        '"dropout", work.round, 0 * work.ids[live].numpy()',
        "equivalence engines",
    ),
    Mutation(
        "replies-out-of-order",
        "at = torch.searchsorted(ids, some)\n",
        "at = torch.arange(len(some))\n",
        "equivalence engines",
    ),
    Mutation(
        "pull-without-a-gradient-lost",
        "torch._foreach_mul_(list(into.values()), keep)\n        for",
        "pass\n        for",
        "train -k moreau",
    ),
    Mutation(
        "broken-slots-written",
        "all(0).cpu()",
        "all(0).cpu() | True",
        "test_round.py engines parts -k broken or nonsense",
    ),
    Mutation("padding-evaluated", "(hit & block.live).sum(1)", "hit.sum(1)", "engines -k evaluation"),
    Mutation(
        "recv-before-mixing",
        'if "model" not in sent.own or not got.any():',
        "if True:",
        "test_round.py parts engines -k mixing or mixed or kinds",
    ),
    Mutation(
        "recv-after-training",
        "if watcher is not None: watcher.sent(state, half.order.sent) "
        'with log.timed("train_s", "training steps"): '
        "reply = (engine.train_together if method.train.pools else engine.train)(*half.order)",
        "reply = engine.train(*half.order)\n"
        "    log.seconds['train_s'] = 0.0\n"
        "    if watcher is not None:\n        watcher.sent(state, half.order.sent)",
        "test_round.py -k mixed",
    ),
    Mutation(
        "unselected-upload",
        "ids if method.collaborate.gives.replies",
        "trainers if method.collaborate.gives.replies",
        "test_round.py parts -k everyone or uploads",
    ),
    Mutation(
        "looking-trains", "round + 1, keep=False", "round + 1, keep=True", "test_round.py parts equivalence -k looking"
    ),
    Mutation(
        "nan-uploads-count", "good &= tree.finite(model).cpu()", "good &= True", "test_round.py parts -k nonsense"
    ),
    Mutation("downloads-once", "shared[0] * len(sent.ids) + own[0]", "shared[0] + own[0]", "test_round.py parts"),
]

RUNS = [
    Mutation(
        "checkpoint-no-collaborate",
        "getattr(state, name) for name in SLOTS}",
        "getattr(state, name) for name in SLOTS[:2]}",
        RESUME,
    ),
    Mutation("slots-not-restored", "self.engine.restore(found.private)", "pass", RESUME),
    Mutation(
        "resume-cuts-nothing",
        "self.recorder.cut(found.lengths, found.state.round, found.drawn)",
        "self.recorder.lengths = found.lengths",
        RESUME,
    ),
    Mutation("resume-repeats-a-round", 'State(about["round"], *', 'State(about["round"] - 1, *', RESUME),
    Mutation(
        "fingerprint-no-labels", "[federation.y, federation.x[::step],", "[federation.x[::step],", "data -k truth"
    ),
    Mutation("constant-by-nothing", "np.where(deviation > 0, deviation + TINY, 1.0)", "deviation + TINY", FLAMBY),
    Mutation("flamby-fitted-on-all", "frame.iloc[mine]", "frame", FLAMBY),
    Mutation(
        "table-fitted-on-all-rows",
        "federation.train.rows.numpy(), federation.train.start.tolist()",
        "federation.test.rows.numpy(), federation.test.start.tolist()",
        "data -k preparation",
    ),
    Mutation(
        "site-scaled-by-all",
        'if standardise == "all": sites =',
        "if True: sites =",
        "data -k preparation",
    ),
    Mutation("indicator-forgotten", "if missing else []", "if False else []", "data -k preparation"),
    Mutation("checksum-not-compared", "checksum(path) != expected", "not path.exists()", RESUME),
    Mutation("half-line-believed", 'split("\\n")[:-1]', 'split("\\n")', "report -k partial"),
    Mutation(
        "last10-of-the-first", '"last10": float(np.mean(values[-10:', '"last10": float(np.mean(values[:10', STATISTICS
    ),
    Mutation("validated-by-test", "np.argmax(checks)", "np.argmax(values)", STATISTICS),
    Mutation(
        "worst-tenth-is-best", "values[: max(1, len(values) // 10)]", "values[-max(1, len(values) // 10) :]", STATISTICS
    ),
    Mutation("target-met-below", "/ WINDOW > target", "/ WINDOW >= target", STATISTICS),
    Mutation(
        "macro-is-micro",
        "float(values[have].mean())",
        "float(score.correct.sum() / score.count.sum())",
        "engines",
    ),
    Mutation("cost-from-round-1", "before.get(name, 0) + sum(", "sum(", "golden select train -k counted"),
    Mutation("better-is-worse", '"better": float((known > 0)', '"better": float((known < 0)', VERDICT),
    Mutation("irrelevant-gain", "np.where(irrelevant, np.nan, gained)", "gained", "runs -k gain"),
    Mutation(
        "gain-of-another-seed",
        "gain(run, runs[other][key])",
        "gain(run, next(iter(runs[other].values())))",
        "comparison -k gains or conclusions",
    ),
    Mutation(
        "seeds-in-one-folder",
        'name = f"seed-{seed}" + (',
        'name = "seed-0" + (',
        "command comparison -k writes or gains",
    ),
    Mutation("settings-of-others", "if only_fitting and not has(part, path):", "if False:", "command -k settings"),
    Mutation(
        "local-of-another",
        "(-budgets[train], train != local().train, repr(train))",
        "0",
        "comparison/test_budgets.py",
    ),
    Mutation("data-of-the-run-before", " or experiment.data != self.data", "", "comparison -k data"),
    Mutation(
        "cadence-of-its-own", "experiment.evaluate_every or every", "setup.evaluate_every", "comparison -k cadence"
    ),
    Mutation("newer-format-believed", "isinstance(found, int) and found <= SEGMENTED", "True", "runs -k folder"),
    Mutation(
        "stop-not-heard",
        "any(answer is False for answer in answers)",
        "False",
        "runs -k callback",
    ),
    Mutation("part-unchecked", "check_fields(self) self.check()", "self.check()", "test_fields.py"),
    Mutation(
        "wrapper-forgets",
        "return self.base.needs\n\n    def init",
        "return Needs()\n\n    def init",
        "test_needs.py select",
    ),
]

METRICS = [
    Mutation(
        "balanced-over-all-classes",
        "by_class(seen.weights * seen.right) / seen.truth)",
        "by_class(seen.weights * seen.right) / seen.truth.clamp(min=1))",
        MEASURED,
    ),
    Mutation("auc-ties-lost", "mass.cumsum(2) - mass / 2", "mass.cumsum(2) - mass", MEASURED),
    Mutation("auc-own-pairs", "seen.truth.square() / 2", "0 * seen.truth", MEASURED),
    Mutation(
        "auc-saturates", "if two else (seen.log_p / EQUAL).round().mT", "if False else seen.log_p.exp().mT", MEASURED
    ),
    Mutation("f1-of-the-other-class", "each[:, 1] if", "each[:, 0] if", MEASURED),
    Mutation(
        "log-loss-infinite-forgotten",
        "torch.where(each.isfinite(), each, torch.inf)",
        "each.nan_to_num(0.0, 0.0)",
        MEASURED,
    ),
    Mutation("calibration-bins", "(sure * BINS).ceil()", "(sure * BINS).round()", MEASURED),
    Mutation("r2-around-zero", "(y - seen.mean(y)[:, None]).square()", "y.square()", MEASURED),
    Mutation("rmse-unit", "1.0 if seen.scale is None else seen.scale.double()", "1.0", MEASURED),
    Mutation("rmse-unit-in-a-run", '"rmse" in found and scale is not None', "False", "engines/test_numbers.py"),
    Mutation(
        "padding-counts",
        "torch.where(self.weights > 0, self.weights * each, 0.0)",
        "each.expand_as(self.weights)",
        MEASURED,
    ),
    Mutation("gain-turned", "theirs - other if self.higher_is_better else", "theirs - other if True else", MEASURED),
    Mutation("micro-unweighted", "(values[have] * count).sum()", "values[have].mean() * count.sum()", RECORDED),
    Mutation("best-loss-highest", "np.max(values) if higher else np.min(values)", "np.max(values)", RECORDED),
    Mutation("worst-loss-lowest", "values if higher_is_better else values[::-1]", "values", RECORDED),
    Mutation(
        "another-clients-rows", "cut = start[last] - start[first]", "cut = start[last] - start[first] - 1", RECORDED
    ),
    Mutation("squared-error-gradient", "d = 2 * (logits - y)", "d = logits - y", "engines/test_numbers.py"),
    Mutation(
        "class-weights-of-all",
        "present = (counts > 0).sum(1, keepdim=True)",
        "present = counts.shape[1]",
        "engines/test_class_weights.py",
    ),
    Mutation(
        "class-weights-ignored",
        '.gather(1, result["y"])',
        '.gather(1, result["y"]).clamp(1, 1)',
        "engines/test_class_weights.py",
    ),
    Mutation("predicted-by-the-network", 'ids, "test", method.train)', 'ids, "test")', "runs/test_predictions.py"),
    Mutation(
        "outputs-shuffled",
        "first[at][:, None] + block.columns",
        "first[:len(at)][:, None] + block.columns",
        "runs/test_predictions.py",
    ),
]

MUTATIONS = [*PARTS, *ENGINES, *RUNS, *METRICS]
