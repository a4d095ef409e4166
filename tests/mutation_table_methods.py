"""The wrong changes that `mutations.py` tries in batches, mixtures and filters of single methods."""

from __future__ import annotations

from mutation_table import Mutation

DITTO = "methods -k ditto"
MESSAGES = "golden -k message"
WHOLE = "gram(stacked, list(stacked))"
MATCHING = "keep/test_matching.py"

METHODS = [
    Mutation("epochs-shared-out", "epochs * -(-sizes // batch)", "epochs * -(-sizes // batch) // 2 + 1", "core golden"),
    Mutation("streams-of-a-step-alike", 'f"{purpose} {b + 1}"', "purpose", DITTO),
    Mutation("ditto-shares-a-stream", "own_streams = True", "own_streams = False", DITTO),
    Mutation("fedamp-weighs-whole-models", "distances(gram(stacked, tensors))", f"distances({WHOLE})", MESSAGES),
    Mutation("heurfedamp-weighs-whole-models", "cosines(gram(stacked, each))", f"cosines({WHOLE})", MESSAGES),
    Mutation("official-draws-batches", ', sampler="cyclic")', ")", "golden/test_fedmcsa.py -k official"),
    Mutation("first-line-without-n", "self.tau / len(products)", "self.tau", "golden/test_fedmcsa.py"),
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
]
