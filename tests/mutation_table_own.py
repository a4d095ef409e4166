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
        "kin-mixes-the-first-model", "torch.where(spread(seen, value).to(value.device), value, start)", "value", KIN
    ),
    Mutation(
        "kin-mixes-whole-models-for-shadows",
        "self.held(slot, name, learned.sources)",
        'self.held(slot, "kin", learned.sources)',
        KIN,
    ),
    Mutation("kin-has-no-memory", "torch.index_copy(old, 0, reply.ids.to(old.device), new[key])", "old", KIN),
    Mutation("shares-of-the-common-model-only", "found[-self.received :]", "[found[-1]] * self.received", KIN),
    Mutation(
        "a-newcomer-has-the-mixture",
        'others = {"mixture": sent["kin"]} if self.of_kin else {}',
        'found |= {f"mixture/{key}": x for key, x in sent["kin"].items()} if self.of_kin else {}; others = {}',
        KIN,
    ),
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
