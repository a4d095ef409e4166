"""The wrong changes that `mutations.py` tries in the direct competitors: graphs, clusters, some layers, mixtures."""

from __future__ import annotations

from mutation_table import Mutation

LAYERS = "golden/test_some_layers.py"
IFCA, FOMO, CFL = "golden/test_ifca.py", "golden/test_fedfomo.py", "golden/test_cfl.py"
GRAPH, DWA, SIM = "golden/test_pfedgraph.py", "golden/test_feddwa.py", "golden/test_pfedsim.py"

ALA = "golden/test_fedala.py"

RIVALS = [
    Mutation("blend-learns-the-wrong-way", "value - self.eta_a * slope[name]", "value + self.eta_a * slope[name]", ALA),
    Mutation("blend-without-its-slope", "slope[name] * apart[name]).clamp(0, 1)", "slope[name]).clamp(0, 1)", ALA),
    Mutation("blend-not-cut-off", "* apart[name]).clamp(0, 1)", "* apart[name])", ALA),
    Mutation("blend-forgets", '"blend": learnt}, {"model"', '"blend": mine["blend"]}, {"model"', ALA),
    Mutation("blend-of-the-first-layers", "by_layer[-(self.last or len(by_layer)) :]", "by_layer[: self.last]", ALA),
    Mutation("told-where-it-starts", "gives.start and not self.train.at_hand", "gives.start", ALA),
    Mutation("graph-prefers-the-unlike", "d = -torch.where(cosine", "d = torch.where(cosine", GRAPH),
    Mutation("graph-without-the-two", "d / (2 * self.lam)", "d / self.lam", GRAPH),
    Mutation(
        "graph-without-sizes",
        "share = torch.ones_like(kept) if sizes is None",
        "share = torch.ones_like(kept) if True",
        GRAPH,
    ),
    Mutation("simplex-off-by-one", "(falling.cumsum(1) - 1) / places", "falling.cumsum(1) / places", GRAPH),
    Mutation("turned-away", 'self.mu if self.sign == "away" else -self.mu', "self.mu", GRAPH),
    Mutation("turn-without-length", "- second.reshape(wide) * own", "- 0 * second.reshape(wide) * own", GRAPH),
    Mutation("ahead-is-where-it-is", "tree.added(models, moved), models]", "models, models]", DWA),
    Mutation(
        "ahead-of-the-wrong-update",
        'tree.update(sent.to(reply.ids)["model"], reply.upload["model"])\n        cache',
        'tree.update(reply.upload["model"], sent.to(reply.ids)["model"])\n        cache',
        DWA,
    ),
    Mutation("ahead-not-the-largest", "near >= least", "near <= least", DWA),
    Mutation("split-by-places", "cluster[reply.ids[leave]] = len(models)", "cluster[leave - at[0]] = len(models)", CFL),
    Mutation("single-linkage", "torch.minimum(near[a], near[b])", "torch.maximum(near[a], near[b])", CFL),
    Mutation("split-early", "int(rounds) > self.first", "int(rounds) >= self.first", CFL),
    Mutation(
        "halves-share-a-mean", "moved(models[c], updates, leave, weight)", "moved(models[c], updates, at, weight)", CFL
    ),
    Mutation("bodies-compared", 'head = chosen(stacked, "head")', 'head = chosen(stacked, "body")', SIM),
    Mutation("heads-mixed", "own if names == head else shares", "shares", SIM),
    Mutation("rows-not-of-unit-length", "flat / flat.norm(dim=2, keepdim=True).clamp(min=NOTHING)", "flat", SIM),
    Mutation("warm-up-forgotten", "if not self.common(slot, task):", "if True:", SIM),
    Mutation("rest-uploaded", "upload = returned(upload, sent) if keep else upload", "upload = upload", LAYERS),
    Mutation(
        "rest-of-the-first-model",
        'tree.rows(mine["model"], got) if "model" in mine',
        'tree.rows(mine["model"], got) if False',
        LAYERS,
    ),
    Mutation(
        "head-and-body-swapped",
        "for_head if name in head else ~for_head",
        "~for_head if name in head else for_head",
        LAYERS,
    ),
    Mutation(
        "head-has-all-few-steps", "(number // part.batches_per_step + 1)", "number // part.batches_per_step", LAYERS
    ),
    Mutation(
        "loss-of-some-layers",
        "in log.reply.upload and whole and",
        "in log.reply.upload and",
        "runs/test_diagnostics.py",
    ),
    Mutation(
        "clusters-not-scored",
        "if common is None and self.playing.finetunes:",
        "if False:",
        "flower/test_strategy.py -k ifca",
    ),
    Mutation("home-is-frozen-too", "return SGD(**self.alone())", "return self", LAYERS),
    Mutation(
        "clock-of-another-client",
        "(number // part.batches_per_step + 1) / steps",
        "(number // part.batches_per_step + 1) / steps.max()",
        LAYERS,
    ),
    Mutation(
        "the-worst-model-chosen", "losses.nan_to_num(torch.inf).min()", "losses.nan_to_num(torch.inf).max()", IFCA
    ),
    Mutation("clusters-start-alike", "tree.mapped(lambda value: shuffled(value, gen), task.model)", "task.model", IFCA),
    Mutation("clusters-take-everybody", "share = weight * choice[:, c]", "share = weight", IFCA),
    Mutation(
        "padding-is-weighed",
        "(torch.arange(rows.shape[1]) < count)",
        "(torch.arange(rows.shape[1]) < rows.shape[1] + 0 * count)",
        IFCA,
    ),
    Mutation("losses-not-gains", "(loss - f.loss(other, batch))", "(f.loss(other, batch) - loss)", FOMO),
    Mutation("trained-on-what-is-held-out", "without=0 if self.validate else None", "without=None", FOMO),
    Mutation(
        "weighed-by-what-is-trained-on",
        "if part.held:\n            places, count",
        "if False:\n            places, count",
        FOMO,
    ),
    Mutation("compared-with-what-it-trained", 'before, own = mine["before"]', 'before, own = mine["model"]', FOMO),
    Mutation(
        "worse-models-mixed",
        "positive = gains.clamp(min=0)\n    total = positive.sum(-1",
        "positive = gains\n    total = positive.sum(-1",
        FOMO,
    ),
    Mutation(
        "gains-without-distance", "f.loss(other, batch)) / length.clamp(min=NOTHING)", "f.loss(other, batch)) / 1", FOMO
    ),
    Mutation(
        "offered-the-least-liked",
        "liked.argsort(dim=1, descending=True, stable=True)",
        "liked.argsort(dim=1, stable=True)",
        FOMO,
    ),
]
