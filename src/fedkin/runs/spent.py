"""What each client of a run has spent of its privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkin.privacy import Privacy
from fedkin.privacy.accountant import epsilon

EPSILONS = ("epsilon", "epsilon_replaced")


def spent(privacy: Privacy, releases: np.ndarray) -> dict[str, Any]:
    """Return what clients have spent by so many releases each, as a summary has it.

    `epsilon` is against a client that changes nothing, `epsilon_replaced` against one with any other data.
    """
    counts = releases.tolist()
    both = [[epsilon({privacy.noise: count}, privacy.delta, other) for count in counts] for other in (False, True)]
    facts = {"clip": privacy.clip, "noise": privacy.noise, "delta": privacy.delta, "releases": counts}
    return facts | dict(zip(EPSILONS, both, strict=True))


def of_round(privacy: Privacy | None, releases: np.ndarray, replied: np.ndarray) -> dict[str, dict[str, float]]:
    """Return what the line of a round says: the largest epsilon of a client after it. `replied` are its clients."""
    if privacy is None:
        return {}
    largest = np.bincount(replied, minlength=len(releases)) + releases
    return {"privacy": {"epsilon": epsilon({privacy.noise: int(largest.max())}, privacy.delta)}}


def merged(several: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the summaries of several seeds say together: of each client, the seed in which it spent most.

    Where clients differ from seed to seed, only the first is told.
    """
    found = [one["privacy"] for one in several if "privacy" in one]
    if not found:
        return {}
    alike = [one for one in found if len(one["releases"]) == len(found[0]["releases"])]
    most = {name: np.max([one[name] for one in alike], axis=0).tolist() for name in ("releases", *EPSILONS)}
    return {"privacy": found[0] | most}


def sentence(summary: dict[str, Any]) -> list[str]:
    """Return what the clients of a run have spent, as one sentence; none where nothing was noised or released."""
    found = summary.get("privacy")
    if found is None or not any(found["releases"]):
        return []
    low, high, other = min(found["epsilon"]), max(found["epsilon"]), max(found["epsilon_replaced"])
    who, much = ("each site has", f"{high:.3g}") if low == high else ("sites have", f"{low:.3g} to {high:.3g}")
    rounds = f"in {summary['rounds']} rounds"
    return [f"{who} spent epsilon {much} at delta {found['delta']:g} {rounds} (any other data: {other:.3g})"]
