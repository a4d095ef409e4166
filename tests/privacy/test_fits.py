"""What --dp takes, and which methods it refuses, each in a sentence that says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import fedkin as fk
from fedkin.collaborate import LastUploads
from fedkin.methods import METHODS
from fedkin.privacy import Guard, Privacy, protected, read
from fedkin.select import Uniform

PRIVACY = Privacy(1.0, 0.8)


def test_words() -> None:
    assert read("clip=1.0, noise=0.8") == PRIVACY
    assert read("noise=2,clip=0.5,delta=1e-6,losses=True") == Privacy(0.5, 2.0, 1e-6, True)
    assert read(str(read("clip=1,noise=.8,losses=true"))) == Privacy(1.0, 0.8, losses=True)


WRONG = {
    "clip=1.0": "does not say noise; write it as --dp clip=1.0,noise=0.8",
    "clip=1.0,noise": "'noise' says no value",
    "clip=1.0,noise=0": "noise of --dp is a number above 0, not 0.0",
    "clip=-1,noise=1": "clip of --dp is a number above 0",
    "clip=inf,noise=1": "clip of --dp is a number above 0",
    "clip=1,noise=nan": "noise of --dp is a number above 0",
    "clip=1,noise=loud": "noise is a number, not 'loud'",
    "clip=1,noise=1,delta=1": "delta of --dp is a probability between 0 and 1",
    "clip=1,noise=1,losses=maybe": "losses is true or false, not 'maybe'",
    "clip=1,noise=1,epsilon=3": "no word of",
    "clip=1,clip=2,noise=1": "'clip' stands twice",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_words(text: str) -> None:
    with pytest.raises(fk.BadInput) as error:
        fk.Experiment(fk.methods.fedavg(), dp=text)
    assert WRONG[text] in str(error.value)


REFUSED = {
    "fedmix": "In 'fedmix' clients send averages of samples before round 1, which --dp does not protect",
    "pooled": "In 'pooled' clients send samples before round 1, which --dp does not protect",
    "active": "In 'active' each client tells its loss, which --dp does not protect; allow it by losses=true",
    "ifca": "In 'ifca' each client tells what it makes of the models it is sent, which --dp does not protect",
    "fedfomo": "In 'fedfomo' each client tells what it makes of the models it is sent, which --dp does not protect",
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_protected_or_refused(name: str) -> None:
    """Nothing is asked of a client but its upload: no current model, no report, no samples and no averages of them."""
    method = METHODS[name]()
    if name in REFUSED:
        with pytest.raises(fk.BadInput) as error:
            protected(method, PRIVACY)
        assert REFUSED[name] in str(error.value)
        return
    found = protected(method, PRIVACY)
    assert not found.needs.current
    assert not found.needs.reports
    assert isinstance(found.collaborate, LastUploads) == method.needs.current
    assert protected(found, PRIVACY) == found


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(REFUSED)))
def test_every_protected_method_plays(begin: Any, name: str) -> None:
    method = protected(METHODS[name](), PRIVACY)
    small = replace(method, train=replace(method.train, steps=1, epochs=None, batch=4))  # type: ignore[call-arg]
    few = replace(small, select=Uniform(count=4)) if isinstance(method.select, Uniform) else small
    run = begin(few, guard=Guard(PRIVACY, b"3"))
    for _ in range(2):
        log = run.round()
        assert log.reply is not None
        assert len(log.reply.ids) == (len(log.selected) if few.collaborate.gives.replies else 0)
        assert not log.reply.broken


def test_losses_may_be_allowed() -> None:
    assert protected(fk.methods.active(), Privacy(1.0, 0.8, losses=True)) == fk.methods.active()


def test_an_experiment_is_what_is_played_and_survives_json() -> None:
    experiment = fk.Experiment(fk.methods.fedmcsa(), dp="noise=0.8,clip=1")
    assert experiment.dp == "clip=1.0,noise=0.8,delta=1e-05"
    assert experiment.method == protected(fk.methods.fedmcsa(), PRIVACY)
    assert fk.Experiment.from_json(experiment.described()) == experiment
    assert fk.Experiment(fk.methods.fedmcsa()).method == fk.methods.fedmcsa()
