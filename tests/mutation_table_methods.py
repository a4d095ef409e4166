"""The wrong changes that `mutations.py` tries in batches, mixtures and filters of single methods."""

from __future__ import annotations

from mutation_table import Mutation

DITTO = "methods -k ditto"
MESSAGES = "golden -k message"
WHOLE = "gram(stacked, list(stacked))"

METHODS = [
    Mutation("epochs-shared-out", "epochs * -(-sizes // batch)", "epochs * -(-sizes // batch) // 2 + 1", "core golden"),
    Mutation("streams-of-a-step-alike", 'f"{purpose} {b + 1}"', "purpose", DITTO),
    Mutation("ditto-shares-a-stream", "own_streams = True", "own_streams = False", DITTO),
    Mutation("fedamp-weighs-whole-models", "distances(gram(stacked, tensors))", f"distances({WHOLE})", MESSAGES),
    Mutation("heurfedamp-weighs-whole-models", "cosines(gram(stacked, each))", f"cosines({WHOLE})", MESSAGES),
    Mutation("official-draws-batches", ', sampler="cyclic")', ")", "golden/test_fedmcsa.py -k official"),
    Mutation("first-line-without-n", "self.tau / len(products)", "self.tau", "golden/test_fedmcsa.py"),
    Mutation(
        "labels-not-fitted", 'y if soft is None else dummies["y"].softmax(-1)', "y", "golden keep -k pfedre or label"
    ),
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
