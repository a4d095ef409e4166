"""Whose labels look wrong? Several filters are asked about every site, also where no compared method has one.

A few rounds of FedAvg are played with all sites, and filters look at the updates; the models that sites trained alone
vote on each other's labels (`crossed`); and the common model's loss is compared. Each is an opinion that may leave a
site out. A site looks mislabelled only where the other sites' models contradict its labels: filters of updates leave
somebody out on clean data as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedkin.answers import crossed
from fedkin.answers.panel import Panel
from fedkin.collaborate import Mean
from fedkin.core.tree import Model
from fedkin.data.federation import Federation
from fedkin.keep import Alignment, MultiKrum, Relevance, UpdateDistance
from fedkin.methods.titles import title
from fedkin.parts import Keep, Method
from fedkin.round import begin, play
from fedkin.runs.experiment import Experiment
from fedkin.runs.run import Run
from fedkin.runs.setup import engine_of, on_this_machine, set_up
from fedkin.select import Uniform

FEWEST_SITES = 4  # sites below which there is no majority to differ from
ROUNDS = 5
OUTLIER = 3.5  # robust standard deviations above the median from which a loss is an outlier
INVERTED = 300_000  # parameters up to which updates are inverted
CROSSED = "the others' models"
NO_OPINION = ("Everyone", "Oracle")  # keep parts that judge nobody, or know the truth

Telling = Callable[[str, int, int], None]  # (what is done, how many are done, of how many)


@dataclass(frozen=True)
class Opinions:
    """Which filter leaves which sites out, and how far the others' models agree with each site's labels."""

    left_out: dict[str, np.ndarray]  # by filter, (n,) bool
    agreement: np.ndarray  # (n,)

    def looks(self, site: int) -> str | None:
        """What a site looks like: 'mislabelled', 'different', or None for like the others.

        Mislabelled needs the others' models and one more filter; different needs an outlying loss and most filters.
        """
        out = self.by(site)
        if CROSSED in out and len(out) > 1:
            return "mislabelled"
        return "different" if LOSS in out and 2 * len(out) > len(self.left_out) else None

    def by(self, site: int) -> list[str]:
        """Return the filters that leave this site out."""
        return [name for name, out in self.left_out.items() if out[site]]


LOSS = "the common model's loss"


def filters_for(federation: Federation, parameters: int) -> dict[str, Keep]:
    """Return the filters of updates that fit the task and the size of the network. Each divides the sites in two; an
    opinion needs several of them."""
    found: dict[str, Keep] = {}
    if federation.task == "classify" and parameters <= INVERTED:
        found["inverted updates (PFedRe)"] = Relevance(min_gap=None)
    return found | {
        "distance of updates": UpdateDistance("cosine", min_gap=None),
        "alignment of updates": Alignment(min_gap=None),
        "Multi-Krum": MultiKrum(),
    }


def audited(alone: Experiment, run: Run, federation: Federation, telling: Telling) -> Opinions | None:
    """Return the opinions on every site; None where there are too few sites.

    alone: the experiment of Local, whose clients' training is used here as well; run: its finished run.
    """
    if federation.n < FEWEST_SITES or "personal" not in run.models:
        return None
    parameters = int(run.experiment["resolved"]["parameters"])
    filters = filters_for(federation, parameters)
    panel = Panel(tuple(filters.values()))
    method = Method("audit", Uniform(fraction=1.0), alone.method.train, panel, Mean())
    asked = replace(
        on_this_machine(alone),
        method=method,
        rounds=min(ROUNDS, alone.rounds),
        score=None,
        heterogeneity=False,
        gradient_norm=False,
    )
    setup = set_up(asked, federation)
    with engine_of(asked, federation, setup) as engine:
        state = begin(method, setup.task)
        for done in range(asked.rounds):
            telling("a look at whose labels fit", done, asked.rounds + 1)
            state, _ = play(method, setup.task, engine, state)
        common = method.collaborate.model(state.collaborate)
        assert common is not None
        loss = engine.score_one(common, "train").mean_loss.numpy()
    left_out = {name: share.numpy() > 0.5 for name, share in zip(filters, panel.left_out(state.keep), strict=True)}
    assert setup.task.logits is not None
    found = cross_examined(setup.task.logits, run.models["personal"], federation)
    telling("a look at whose labels fit", asked.rounds + 1, asked.rounds + 1)
    return Opinions(left_out | {CROSSED: crossed.contradicted(found), LOSS: outlying(loss)}, found.value)


def cross_examined(logits: crossed.Logits, models: Model, federation: Federation) -> crossed.Agreement:
    """Return how far the others' models agree with each site's labels. Sites that are contradicted at first do not vote
    the second time, so that their models do not blur the answer."""
    regress = federation.task == "regress"
    everyone = np.ones(federation.n, dtype=bool)
    first = crossed.agreement(crossed.votes(logits, models, federation, everyone), regress)
    trusted = ~crossed.contradicted(first)
    if trusted.all() or trusted.sum() < FEWEST_SITES - 1:
        return first
    return crossed.agreement(crossed.votes(logits, models, federation, trusted), regress)


def outlying(values: np.ndarray) -> np.ndarray:
    """Return which values are far above the median, in robust standard deviations."""
    middle = np.median(values)
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    return np.asarray(values - middle > OUTLIER * max(spread, 1e-12))


def of_methods(runs: dict[str, list[Run]]) -> dict[str, np.ndarray]:
    """Return the opinions of the filters in the compared methods: whom they left out in more than half of the rounds.

    One that leaves out most sites, as Krum does, says nothing of any of them.
    """
    found = {}
    for name, several in runs.items():
        keep = several[0].experiment["method"].get("keep", {})
        if str(keep.get("is")) in NO_OPINION:
            continue
        counts = [run.participation for run in several if run.kept is not None]
        if not counts:
            continue
        left, replied = (np.sum([count[word] for count in counts], axis=0) for word in ("left_out", "replied"))
        out = left > 0.5 * np.maximum(replied, 1)
        if 2 * out.sum() <= len(out):
            found[title(name)] = out
    return found
