"""The wrong changes that `mutations.py` tries in what keeps clients private: clipping, noise, secrets, accounts."""

from __future__ import annotations

from mutation_table import Mutation

GUARD, FITS, SPENT = "privacy/test_guard.py", "privacy/test_fits.py", "privacy/test_spent.py"
ACCOUNT, SITES = "privacy/test_accountant.py", "sites/test_noise_of_sites.py"

PRIVACY = [
    Mutation("update-not-clipped", "keepdim=True).clamp(min=clip)", "keepdim=True).clamp(max=clip)", GUARD),
    Mutation(
        "model-clipped-not-update",
        "values[name] - before[name] if name in before else values[name]",
        "values[name]",
        GUARD,
    ),
    Mutation("noise-without-clip", "self.privacy.noise * clip * noise", "self.privacy.noise * noise", GUARD),
    Mutation("one-noise-for-all-rounds", 'f"dp/{round}/{client}"', 'f"dp/{client}"', GUARD),
    Mutation("one-noise-for-all-clients", 'f"dp/{round}/{client}"', 'f"dp/{round}"', GUARD),
    Mutation("tuned-model-noised", "self.guard is not None and keep", "self.guard is not None", GUARD),
    Mutation("current-model-shown", "replace(self.base.needs, current=False)", "self.base.needs", f"{GUARD} {FITS}"),
    Mutation("last-upload-forgotten", '"base": base, "uploaded": uploaded}', '"base": base}', GUARD),
    Mutation("losses-told", "not told or privacy.losses", "True", FITS),
    Mutation("averages-sent", "not train.pools and not redefines(train, Train.prepare)", "not train.pools", FITS),
    Mutation("replaced-counts-whole", "noise / 2 if replaced else noise", "noise", ACCOUNT),
    Mutation("releases-not-composed", "(noise, 1.0, count) for", "(noise, 1.0, 1) for", ACCOUNT),
    Mutation(
        "opacus-missed-late",
        "accountant.check_installed()\n    if experiment.engine",
        "pass\n    if experiment.engine",
        ACCOUNT,
    ),
    Mutation(
        "selected-spend", 'spent(dp, self.participation["replied"])', 'spent(dp, self.participation["left_out"])', SPENT
    ),
    Mutation("noise-by-the-proof", "own_secret(self.folder, NOISE)", 'own_secret(self.folder, "secret")', SITES),
    Mutation(
        "same-noise-for-another-update", "digest.update(update.contiguous().cpu().numpy().tobytes())", "pass", SITES
    ),
    Mutation("same-noise-for-more-noise", "{client}/{self.privacy}/", "{client}/", SITES),
    Mutation("demand-unheard", "demand.check(privacy)", "pass", SITES),
    Mutation("less-noise-accepted", "privacy.noise >= self.noise", "True", SITES),
    Mutation("budget-unheard", "require(spent <= most", "require(True", SITES),
    Mutation("releases-forgotten", "known = self.releases() | {mark: noise}", "known = {mark: noise}", SITES),
    Mutation("scores-told", "if self.privacy is not None and not self.privacy.losses:", "if False:", SITES),
    Mutation("site-shows-its-model", "self.check_private(asked)", "pass", SITES),
]
