"""The wrong changes that `mutations.py` tries in batches, mixtures and filters of single methods."""

from __future__ import annotations

from mutation_table import Mutation

DITTO = "methods -k ditto"
MESSAGES = "golden -k message"
WHOLE = "gram(stacked, list(stacked))"
MATCHING = "keep/test_matching.py"
MANY = "collaborate/test_many_clients.py"

ROBUST = "keep/test_hard_to_fool.py golden/test_robust_filter.py"
ATTACKS = "data/test_attacks.py"

METHODS = [
    Mutation(
        "mean-ignores-sizes",
        'kept * reply.report["size"] if self.weights == "size" else kept if not weight.sum() > 0: return slot mean =',
        "kept\n        if not weight.sum() > 0:\n            return slot\n        mean =",
        "golden -k fedavg",
    ),
    Mutation(
        "robust-not-clipped", "known, updates = int((judged > 0).sum()), clipped(updates)", "known = len(ids)", ROBUST
    ),
    Mutation("robust-with-itself", "(mine.sum(0) - mine)", "mine.sum(0)", ROBUST),
    Mutation("robust-trusts-everybody", "mine = updates * trusted.to(updates)[:, None]", "mine = updates", ROBUST),
    Mutation("robust-without-low", "(1 - share) / (1 - self.low)", "0 * share", ROBUST),
    Mutation("robust-without-high", "share / self.high", "0 * share", ROBUST),
    Mutation("robust-without-large", "large = long / judged / self.large", "large = 0 * long / judged", ROBUST),
    Mutation(
        "robust-forgets",
        'straight = slot["straight"].index_add(0, ids, now)',
        'straight = slot["straight"].index_copy(0, ids, now * judged[ids])',
        ROBUST,
    ),
    Mutation("robust-leaves-all-out", "known // 2 if known >= FEWEST", "known // 1 if known >= FEWEST", ROBUST),
    Mutation("robust-judges-three", ">= FEWEST else 0", ">= 1 else 0", ROBUST),
    Mutation(
        "robust-forgets-suspects", 'worst(torch.where(slot["out"] > 0, torch.inf, large), most)', "large > 1", ROBUST
    ),
    Mutation("robust-median-of-all", "now[~out[ids]] if not out[ids].all() else now", "now", ROBUST),
    Mutation(
        "robust-usual-of-all-rounds",
        'usual = slot["usual"].index_add(0, ids, common.expand_as(now))',
        'usual = (slot["usual"] + common)',
        ROBUST,
    ),
    Mutation("robust-a-way-of-few", "int((strayed > 1).sum()) > most", "False", ROBUST),
    Mutation("robust-two-classes", "task.classes == OPPOSED or ", "", ROBUST),
    Mutation(
        "robust-whole-models",
        "name: task.model[name] for name in before}  # of the layers that were sent\n        came",
        "name: value for name, value in task.model.items()}\n        came",
        ROBUST,
    ),
    Mutation(
        "gap-without-effect", "if gap >= min_gap * deviation else torch.ones_like(mask)", "", "keep/test_alignment.py"
    ),
    Mutation("attack-scales-the-model", "(value - start).double()", "value.double()", ATTACKS),
    Mutation(
        "attack-on-what-is-scored",
        "attack = self.federation.attack if keep else None  # else",
        "attack = self.federation.attack  # else",
        ATTACKS,
    ),
    Mutation("attackers-learn-from-each-other", "good = ~bad & reply.finite()", "good = reply.finite()", ATTACKS),
    Mutation("attackers-learn-from-broken", "good = ~bad & reply.finite()", "good = ~bad", ATTACKS),
    Mutation("a-little-more", "mean - self.strength * deviation", "mean + self.strength * deviation", ATTACKS),
    Mutation(
        "attack-not-in-the-fingerprint", 'f"{federation.attack.kind} {federation.attack.strength}"', '""', ATTACKS
    ),
    Mutation(
        "target-takes-anybody", "np.argsort(-counts[shuffled, label]", "np.argsort(0 * counts[shuffled, label]", ATTACKS
    ),
    Mutation("attack-where-models-are-shown", "federation.attack is None or not method.needs.current", "True", ATTACKS),
    Mutation("apfl-mixture", "torch.lerp(b, a, beside", "torch.lerp(a, b, beside", "golden train -k apfl"),
    Mutation("apfl-alpha-ascends", "alpha - rate * (inner", "alpha + rate * (inner", "golden train -k apfl"),
    Mutation("apfl-alpha-never-learns", "not bool(first.any())", "True", "golden train -k apfl"),
    Mutation("epochs-shared-out", "epochs * -(-sizes // batch)", "epochs * -(-sizes // batch) // 2 + 1", "core golden"),
    Mutation("streams-of-a-step-alike", 'f"{purpose} {b + 1}"', "purpose", DITTO),
    Mutation("ditto-shares-a-stream", "own_streams = True", "own_streams = False", DITTO),
    Mutation("weighs-whole-models", "components(stacked, self.granular())", 'components(stacked, "model")', MESSAGES),
    Mutation("official-draws-batches", ', sampler="cyclic")', ")", "golden/test_fedmcsa.py -k official"),
    Mutation("first-line-without-n", "self.tau / len(kept)", "self.tau", "golden/test_fedmcsa.py"),
    Mutation(
        "labels-not-fitted",
        'dummies["y"].softmax(-1) if "y" in dummies else y',
        "y",
        "golden keep -k pfedre or label",
    ),
    Mutation("slope-without-bias", "torch.bmm(a, a.mT).add_(1)", "torch.bmm(a, a.mT)", MATCHING),
    Mutation("slope-without-bias-target", ", d).sub_(h, alpha=2)", ", d)", MATCHING),
    Mutation("slope-without-target-by-d", "on_d.baddbmm_(a, g.mT, alpha=-2)", "on_d", MATCHING),
    Mutation("slope-without-target-by-a", "on_a.baddbmm_(d, g, alpha=-2)", "on_a", MATCHING),
    Mutation("slope-of-many-without-pull", "torch.bmm(d, gap)", "0 * torch.bmm(d, gap)", MATCHING),
    Mutation("slope-of-many-without-bias", "torch.baddbmm(off, a, gap.mT)", "torch.bmm(a, gap.mT)", MATCHING),
    Mutation("slope-not-handed-along", "self.added(on_d, t, self.weight.mT)", "on_d", MATCHING),
    Mutation("slope-not-handed-back", "else pulls[1], d, self.weight", "else pulls[1], 0 * d, self.weight", MATCHING),
    Mutation("slope-without-loss", "a = through_softmax(p, t)", "a = 0 * through_softmax(p, t)", MATCHING),
    Mutation("slope-without-softmax", "slope - (p * slope).sum(-1, keepdim=True)", "slope", MATCHING),
    Mutation("slope-of-sum-not-mean", "t = t / k", "t = t / 1", MATCHING),
    Mutation("slope-by-labels-reversed", "return swapped(a), -t", "return swapped(a), t", MATCHING),
    Mutation("slope-through-closed-relu", "ops.threshold_backward(d, seen, 0)", "d", MATCHING),
    Mutation("slope-of-filters-not-along", "on_d.add_(self.convolved(t, self.weight))", "on_d", MATCHING),
    Mutation(
        "slope-of-filters-without-pull", "torch.cat([gap, weight], 1)", "torch.cat([0 * gap, weight], 1)", MATCHING
    ),
    Mutation(
        "slope-changes-the-model",
        ".repeat(1, x.shape[1], 1), x",
        ".expand(-1, x.shape[1], -1).contiguous(), x",
        MATCHING,
    ),
    Mutation("layers-not-handed-over", "layers=network.layers,", "layers=None,", MATCHING),
    Mutation("labels-without-softmax", 'dummies["y"].softmax(-1)', 'dummies["y"]', "golden keep -k pfedre or label"),
    Mutation(
        "alpha-falls-early", 'self.alpha_gamma * int(slot["rounds"])', "self.alpha_gamma", "golden/test_fedacs.py"
    ),
    Mutation("gradient-without-lambda", "(w - u) / rate", "w - u", "runs/test_gradient_norm.py"),
    Mutation(
        "gradient-of-a-block",
        "self.network.grad(model, batch), weight)",
        "self.network.grad(model, batch), 1.0)",
        "runs/test_gradient_norm.py",
    ),
    Mutation("gap-not-finite-written", '"gap": finite(gamma)', '"gap": gamma', "runs/test_gradient_norm.py"),
    Mutation("own-place-of-the-first-block", "mine.diagonal(at.start)", "mine.diagonal(0)", MANY),
    Mutation("similarities-held-in-a-square", "hold=self.neighbours is None", "hold=True", MANY),
    Mutation("a-second-square", "return of.held", "return of.held.clone()", MANY),
    Mutation("neighbours-without-oneself", "torch.where(mine, torch.inf, weights)", "weights", MANY),
    Mutation("neighbours-not-normalised", "found / total.clamp", "found / torch.ones_like(total).clamp", MANY),
    Mutation("dropped-weight-is-what-is-kept", "(weights.sum(1) - total[:, 0])", "total[:, 0]", MANY),
    Mutation(
        "quantile-trusts-its-sample", "if below <= first and len(ends) and last", "if last", "core/test_geometry.py"
    ),
    Mutation("quantile-forgets-what-is-below", "below + found[1", "found[1", "core/test_geometry.py"),
    Mutation("sketch-not-scaled", "dtype=torch.float64) / k**0.5", "dtype=torch.float64)", "core/test_geometry.py"),
    Mutation("sketch-scaled-twice", "/ k**0.5", "/ k", "core/test_geometry.py"),
    Mutation("sketch-without-seed", 'generator(seed, f"sketch', 'generator(0, f"sketch', MANY),
    Mutation("one-sketch-for-all-components", 'f"sketch/{component}"', '"sketch"', MANY),
    Mutation("sketch-of-updates-from-a-client", "tree.row(shorter[-1], 0)", "tree.row(shorter[0], 0)", MANY),
    Mutation(
        "square-of-weights-on-disk",
        "<= WHOLE else kin.largest(NEAREST)",
        "<= WHOLE else kin",
        "collaborate -k run_writes",
    ),
    Mutation("kin-of-many-drawn", "if of.crowded:", "if False:", "report/test_who_learns_from_whom.py"),
]
