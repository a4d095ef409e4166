"""What a site that was not there would gain by joining, without running the federation again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fedkin import metrics
from fedkin.answers.bootstrap import Gain, gains
from fedkin.answers.held_out import HeldOut
from fedkin.answers.sentences import amount, number, together
from fedkin.answers.sentences import rows as rows_said
from fedkin.answers.site import FEW, JOIN, Verdict, best_of, verdict_on
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.data.federation import Federation
from fedkin.data.seeds import keyed_generator
from fedkin.deploy.new_site import as_federation, new_site
from fedkin.deploy.tuning import per_row, tuning
from fedkin.engines.engine import Engine
from fedkin.imports import named_in
from fedkin.methods.local import alone
from fedkin.parts import Method, Train
from fedkin.runs.callback import Callback
from fedkin.runs.experiment import Experiment
from fedkin.runs.part_json import from_json
from fedkin.runs.run import Run
from fedkin.runs.session import run as play

if TYPE_CHECKING:
    import pandas as pd

ALONE, COMMON, TUNED, KIN = "alone", "the common model", "the common model, fine-tuned", "its kin's models, fine-tuned"
MIXED = "its kin's models"  # where a model is more than one network and is not trained further
CANDIDATES = 10  # stored models, the best on the site's training rows, of which its kin are chosen


@dataclass(frozen=True)
class Joined:
    """What a new site gets: its score by each option, its gain over training alone, and its kin."""

    site: str
    metric: str
    rows: int  # different test rows, of all splits
    splits: int
    scores: dict[str, float]  # by option, mean over splits
    gains: dict[str, Gain]  # by option, over training alone
    kin: dict[str, float]  # client -> share of the splits on which it is among the kin; the most frequent first

    @property
    def best(self) -> str:
        """The option with the largest gain, of those that are surely better than alone if there are any."""
        return best_of(self.gains, {name: found.gain for name, found in self.gains.items()})

    @property
    def verdict(self) -> Verdict:
        """What the site should do, by the rule that the verdicts of a comparison follow."""
        found = self.gains[self.best] if self.gains else None
        return verdict_on(found, self.rows, metrics.METRICS[self.metric].percent)

    @property
    def nearest(self) -> list[str]:
        """The kin on at least half of the splits."""
        return [name for name, share in self.kin.items() if share >= 0.5]

    @property
    def sentence(self) -> str:
        """The verdict in one sentence: join or stay alone, by which option, how sure that is, and with whom."""
        if not self.gains or self.verdict == FEW:
            return f"{self.site}: {FEW} ({rows_said(self.rows)})."
        best, words = self.best, self.words(self.gains[self.best])
        said = f"join: {best}: {words}." if self.verdict == JOIN else f"{self.verdict}. Best: {best}, {words}."
        return f"{self.site}: {said}" + (f" Kin: {together(self.nearest)}." if self.nearest else "")

    def words(self, found: Gain) -> str:
        """Return a gain over alone in words, with its interval and the number of test rows it stands on."""
        percent = metrics.METRICS[self.metric].percent
        ends = " to ".join(number(end, percent) for end in (found.low, found.high))
        how = f"{rows_said(self.rows)}" + (f" on {self.splits} splits" if self.splits > 1 else "")
        return f"{amount(self.metric, found.gain)} over alone (95 % interval {ends}, {how})"

    def as_json(self) -> dict[str, Any]:
        """Return all this as JSON."""
        return asdict(self) | {"verdict": self.verdict, "sentence": self.sentence}


def join(
    run: Run,
    rows: pd.DataFrame | tuple[np.ndarray, np.ndarray],
    name: str = "The new site",
    *,
    test: float = 0.25,
    splits: int = 10,
    module: nn.Module | None = None,
    callbacks: Sequence[Callback] = (),
) -> Joined:
    """Return what a site that was not in a run gains by the run's models over training alone.

    The site's rows are divided into train and test `splits` times. On each split it trains alone, with the steps and
    the rounds of the run's clients; takes the common model as it is; fine-tunes it by local passes; and takes the mean
    of its kin's models and fine-tunes that. Its kin and the number of passes are chosen on its training rows. Its test
    rows do nothing but judge. `rows` is a table with the columns that the run was trained on, or arrays (x, y).
    `callbacks` are told of the rounds in which the site trains alone.
    """
    site = new_site(run, rows, name)
    federation = as_federation(run, site, test, splits)
    tried = tried_options(run, federation, module, callbacks)
    held = held_out_on(federation, len(site.y), tried.outputs)
    options = [option for option in tried.outputs if option != ALONE]
    found = gains(held, dict.fromkeys(options, ALONE), run.metric, keyed_generator(0, "join", site.name))
    shares = tried.kin.mean(0)
    order = [i for i in np.argsort(-shares, kind="stable") if shares[i] > 0]
    return Joined(
        site.name,
        run.metric,
        len(held.distinct),
        splits,
        held.reached(run.metric),
        found,
        {run.about_clients["names"][i]: float(shares[i]) for i in order},
    )


@dataclass(frozen=True)
class Tried:
    """What every option says of the test rows of all splits, and who the kin are."""

    outputs: dict[str, Tensor]  # (test rows, outputs) each, split after split
    kin: np.ndarray  # (splits, n) bool


def tried_options(run: Run, federation: Federation, module: nn.Module | None, callbacks: Sequence[Callback]) -> Tried:
    """Train alone, take and fine-tune the stored models; every client of the federation is a split of the new site."""
    with named_in(run.folder):
        method: Method = from_json(run.experiment["method"])
        experiment = lonely(run, method, federation, module)
    trained = play(experiment, callbacks=callbacks, warn=lambda sentence: None, federation=federation)
    everyone = torch.arange(federation.n)
    models: dict[str, Model] = {ALONE: trained.models["personal"]}
    kin = np.zeros((federation.n, run.n), dtype=bool)
    stored = {kind: tree.mapped(lambda value: value.to(experiment.device), found) for kind, found in run.models.items()}
    part = method.train if method.train.predicts_itself else None  # of a model that is more than one network
    with tuning(experiment, federation, run.reached + 1) as tuned:
        if "global" in stored:
            models[COMMON] = tree.mapped(torch.clone, tree.repeated(stored["global"], federation.n))
            models[TUNED] = tuned(models[COMMON])
        if "personal" in stored:
            mean, kin = kin_of(tuned.whole, stored["personal"], everyone, part)
            models[KIN if part is None else MIXED] = tuned(mean) if part is None else mean
        outputs = {
            name: tuned.whole.outputs(model, everyone, "test", part if name == MIXED else None)
            for name, model in models.items()
        }
    return Tried(outputs, kin)


def lonely(run: Run, method: Method, federation: Federation, module: nn.Module | None) -> Experiment:
    """Return the experiment in which a site trains alone, as long and with the steps and the network of a run."""
    known = {name: value for name, value in run.experiment.items() if name != "resolved"}
    device = known["device"] if torch.cuda.is_available() else "cpu"
    changed: dict[str, Any] = {"data": {}, "score": ["post"], "rounds": max(1, run.reached), "device": device}
    plain = Experiment.from_json(known | changed)
    experiment = replace(plain, method=alone(method), data=federation, evaluate_every=plain.rounds, chunk=None)
    return experiment if module is None else replace(experiment, model=module)


def kin_of(engine: Engine, stored: Model, ids: Tensor, part: Train | None) -> tuple[Model, np.ndarray]:
    """Return the mean of the models of each split's kin, stacked, and who they are, (splits, n).

    The stored models never saw this site's rows, so their loss on its training rows is an honest one. They are ranked
    by it; then, in this order, a model enters the mean if that lowers the loss on the training rows (greedy soup,
    Wortsman et al. 2022).
    """
    n, splits = len(next(iter(stored.values()))), len(ids)
    each = [engine.score(tree.repeated(tree.row(stored, i), splits), ids, "train", part).mean_loss for i in range(n)]
    order = torch.stack(each, dim=1).nan_to_num(torch.inf).argsort(dim=1, stable=True)  # (splits, n)
    chosen = torch.zeros(splits, n, dtype=torch.bool)
    chosen[ids, order[:, 0]] = True
    mean = tree.rows(stored, order[:, 0])
    lowest = engine.score(mean, ids, "train", part).mean_loss
    for place in range(1, min(n, CANDIDATES)):
        count = chosen.sum(1)
        tried = tree.mapped(
            lambda now, more, count=count: now + (more - now) / (per_row(count, now) + 1),
            mean,
            tree.rows(stored, order[:, place]),
        )
        loss = engine.score(tried, ids, "train", part).mean_loss
        better = loss < lowest
        chosen[ids[better], order[better, place]] = True
        mean = tree.mapped(lambda new, old, better=better: torch.where(per_row(better, new), new, old), tried, mean)
        lowest = torch.where(better, loss, lowest)
    return mean, chosen.numpy()


def held_out_on(federation: Federation, rows: int, outputs: dict[str, Tensor]) -> HeldOut:
    """Return the outputs of each option on each split. A row of the site has the same number on every split."""
    lists, scale = federation.test.lists(), federation.target_scale
    sizes = [len(mine) for mine in lists]
    cut = {name: [[part.numpy() for part in out.split(sizes)]] for name, out in outputs.items()}
    unit = [1.0] * len(lists) if scale is None else scale.tolist()
    return HeldOut([mine.numpy() % rows for mine in lists], [federation.y[mine].numpy() for mine in lists], cut, unit)
