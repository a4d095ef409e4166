"""Mutations of fedkin's own methods: see mutations.py."""

from __future__ import annotations

from mutation_table import Mutation

KIN = "golden/test_experts.py"

OWN = [
    Mutation("kin-without-guard", "(lead >= self.guard * error).to(lead.dtype)", "torch.ones_like(lead)", KIN),
    Mutation("kin-guards-the-wrong-expert", "alone[..., 0] = 1.0", "alone[..., 1] = 1.0", KIN),
    Mutation("kin-forgets-what-clients-found", "+ self.strength * before) / total", ") / total", KIN),
    Mutation(
        "kin-knows-held-out-labels", 'batch["counts"].sum(0) - batch["counts"][fold]', 'batch["counts"].sum(0)', KIN
    ),
    Mutation(
        "kin-asks-who-has-seen-the-sample",
        'networks = [carry[f"alone {name}"], carry[name], *kin, sent[name], *mixture]',
        'networks = [carry["alone"], carry["model"], *kin, sent["model"], *mixture]',
        KIN,
    ),
    Mutation(
        "kin-asks-the-mixture-that-has-seen-it",
        '[of[f"kin {name}"]] if self.of_kin else [] for of in (carry, sent)',
        '[of["kin"]] if self.of_kin else [] for of in (carry, sent)',
        KIN,
    ),
    Mutation(
        "kin-mixes-the-common-model",
        "found.index_copy_(0, there.to(value.device), stack[at.to(value.device)])",
        "found",
        KIN,
    ),
    Mutation(
        "kin-mixes-whole-models-for-shadows",
        "self.held(slot, name, learned.sources)",
        'self.held(slot, "kin", learned.sources)',
        KIN,
    ),
    Mutation("shares-of-the-common-model-only", "found[-self.received :]", "[found[-1]] * self.received", KIN),
    Mutation("a-newcomer-has-its-own", "torch.where(trained, mine[own][name], value)", "mine[own][name]", KIN),
    Mutation("the-mixture-is-lost", 'private |= {"mixture": sent["kin"]} if self.of_kin else {}', "pass", KIN),
    Mutation(
        "judged-without-the-average", 'for name in ("model", "mix") if name in slot', 'for name in ("model",)', KIN
    ),
    Mutation("no-expert-comes-back", "found, total = (prior + even) / 2,", "found, total = prior,", KIN),
    Mutation("kin-tunes-the-old-one", '{"tuned": carry["model"]}', '{"tuned": mine["tuned"]}', KIN),
    Mutation("kin-mixes-logarithms", ".logsumexp(0)", ".sum(0)", KIN),
    Mutation("experts-of-one-turn", "TURNS = 50", "TURNS = 1", KIN),
    Mutation("shares-taken-away", '+ personal["log shares"]', '- personal["log shares"]', KIN),
    Mutation("calibrated-is-not", 'batch | {"offset": log_shares', 'batch | {"unused": log_shares', KIN),
    Mutation("standardised-with-itself", "count - of.m - 1", "count - 1", "collaborate/test_standardised_attention.py"),
    Mutation(
        "near-to-itself-as-to-nobody", "torch.where(mine, top, z)", "z", "collaborate/test_standardised_attention.py"
    ),
    Mutation("shadows-not-averaged", "kept) | shadows |", "kept) |", KIN),
]
