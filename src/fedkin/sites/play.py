"""An ordinary run whose clients are sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedkin.data.federation import Federation
from fedkin.engines.engine import Engine
from fedkin.errors import require
from fedkin.runs import Experiment, Run, session
from fedkin.runs.callback import Callback
from fedkin.runs.setup import Setup
from fedkin.sites.allowed import GIVEN
from fedkin.sites.meeting import Sites
from fedkin.sites.remote import Remote


def run(
    sites: Sites,
    experiment: Experiment,
    folder: Path | str | None = None,
    *,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float = 0.0,
) -> Run:
    """Play an experiment on sites, as `fk.run` plays one on this machine; the experiment's own data are not looked at.

    A checkpoint is written after every round, because a round takes seconds at least.
    """
    method, sentence = experiment.method, "{} needs what does not leave a site; leave it out."
    require(not experiment.heterogeneity, sentence.format("--heterogeneity"))
    require(not experiment.gradient_norm, sentence.format("--gradient-norm"))
    require(not method.train.pools, f"{method.name} puts samples together, and samples do not leave a site.")
    pretended = None if isinstance(experiment.data, Federation) else experiment.data.irrelevant
    require(pretended is None, "Real sites are as they are, so none can be made irrelevant; leave --irrelevant out.")
    require(experiment.engine == "stacked", "Each site runs the engine 'stacked'; leave --engine out.")
    federation = sites.federation()
    there = replace(experiment, data=federation, chunk=1, threads=1)

    def build(asked: Experiment, setup: Setup) -> Engine:
        return Remote(
            sites,
            method.train,
            setup.task.model,
            asked.seed,
            own=method.collaborate.gives.own_model,
            network=asked.model if isinstance(asked.model, str) else GIVEN,
            dtype=asked.dtype,
            balanced=asked.class_weights == "balanced",
            dp=asked.dp,
        )

    return session.run(
        there,
        folder,
        resume=resume,
        callbacks=callbacks,
        warn=sites.warn,
        federation=federation,
        checkpoint_seconds=checkpoint_seconds,
        build=build,
    )
