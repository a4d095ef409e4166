"""What past implementations got wrong: a pull without a gradient, and a judged model that never trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hand_network as net
import pytest
import test_ditto
import test_fedmcsa
import test_message_passing
import test_pfedme
import torch
from hand_network import ROUNDS
from small import tiny
from transcribed import Card

import fedkin as fk
from fedkin import evaluate
from fedkin import round as rounds
from fedkin.parts import Method

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 1, 5, 9, 4)
make = fk.methods


PULLED: dict[str, tuple[Callable[[float], Method], Card]] = {
    "fedmcsa": (
        lambda lam: tiny(make.fedmcsa(lam=lam, sigma=5.0, eta=0.2)),
        test_fedmcsa.pulled(test_fedmcsa.attended(5.0)),
    ),
    "fedmcsa_without_mcsa": (
        lambda lam: tiny(make.fedmcsa_without_mcsa(lam=lam), eta=0.2),
        test_fedmcsa.pulled(test_fedmcsa.meant, mean=True),
    ),
    "fedamp": (
        lambda lam: tiny(make.fedamp(1.0, 9.0, lam), eta=0.2),
        test_fedmcsa.pulled(test_message_passing.messages(1.0, 9.0)),
    ),
    "heurfedamp": (
        lambda lam: tiny(make.heurfedamp(0.1, 5.0, lam), eta=0.2),
        test_fedmcsa.pulled(test_message_passing.guesses(0.1, 5.0)),
    ),
    "pfedme": (lambda lam: tiny(make.pfedme(lam=lam, eta=0.05, eta_p=0.1)), test_pfedme.card),
    "ditto": (lambda lam: tiny(make.ditto(lam=lam), eta=0.2), test_ditto.card),
}


@pytest.mark.parametrize("name", PULLED)
def test_the_pull_has_a_gradient(checked: Any, name: str) -> None:
    """Cards 2.9 and 1.2 (A-M12): two published codes have a proximal term that does nothing. Here another lam gives
    another model, and the one the card says."""
    build, card = PULLED[name]
    weak, strong = (checked(build(lam), card)[-1].judged for lam in (0.5, 2.0))
    assert weak is not None
    assert strong is not None
    for p, q in zip(weak, strong, strict=True):
        assert max(abs(x - y) for x, y in zip(net.numbers(p), net.numbers(q), strict=True)) > 1e-3


OWN = {
    "fedmcsa": make.fedmcsa,
    "fedmcsa, official": lambda: make.fedmcsa(official=True),
    "fedmcsa_without_mcsa": make.fedmcsa_without_mcsa,
    "fedavg_mcsa": make.fedavg_mcsa,
    "pfedme_mcsa": make.pfedme_mcsa,
    "fedacs": lambda: make.fedacs(p=0.5),
    "fedamp": lambda: make.fedamp(sigma=9.0),  # not clipped: else a full-batch client sent theta^0 twice repeats itself
    "heurfedamp": make.heurfedamp,
    "pfedme": make.pfedme,
    "perfedavg": make.perfedavg,
    "perfedavg, HF": lambda: make.perfedavg(order="HF"),
    "ditto": make.ditto,
    "apfl": make.apfl,
    "pfedgraph": make.pfedgraph,
    "feddwa": make.feddwa,
    "fedper": make.fedper,
    "lgfedavg": make.lgfedavg,
    "fedrep": make.fedrep,
    "fedfomo": make.fedfomo,
    "fedala": make.fedala,
}


@pytest.mark.parametrize("name", OWN)
def test_the_judged_model_is_one_that_trains(federation: Any, started: Any, name: str) -> None:
    """Of everyone who trained in a round it is another one afterwards; who did not and holds its own keeps it."""
    method = tiny(OWN[name]())
    play, task, state = started(method)
    everyone = torch.arange(federation.n)
    before = evaluate.personal_models(method, task, play, state, everyone)
    never = torch.ones(len(everyone), dtype=torch.bool)
    for _ in range(ROUNDS):
        state, log = rounds.play(method, task, play, state)
        after = evaluate.personal_models(method, task, play, state, everyone)
        moved = torch.stack([(after[k] - before[k]).abs().reshape(len(everyone), -1).amax(1) for k in after]).amax(0)
        trained = everyone if method.trains == "everyone" else log.selected
        assert (moved[trained] > 1e-6).all()
        never[trained] = False
        resting = ~torch.isin(everyone, trained)
        if name == "apfl":  # who never trained is judged with the common model as it is now
            resting &= ~never
        if not name.startswith("perfedavg"):  # there everyone is judged by a step from the common model
            assert (moved[resting] == 0.0).all()
        before = after
