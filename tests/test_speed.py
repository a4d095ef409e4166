"""The speed that is measured is that of the same work: each bare loop trains to the model that the engine trains to."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import fedkin as fk
from fedkin.parts import Train

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import loops
import peer_rounds
import peers
import products
import timing
import workloads
from workloads import ROWS, Row, Stack

ALL = workloads.SAMPLES  # a batch of all samples, so that both sides see the same
SMALL = Row("small", "dnn:20", (60,), 3, ALL, 1, 1, steps=4)
PARTS: list[Train] = [
    fk.train.SGD(eta=0.1, momentum=0.5, batch=ALL, steps=4),
    fk.train.Prox(eta=0.1, lam=1.0, batch=ALL, steps=4),
    fk.train.Moreau(eta=0.02, eta_p=0.02, batch=ALL, steps=4),
    fk.train.Scaffold(eta=0.1, batch=ALL, steps=4),
    fk.train.TwoStreams(eta=0.1, batch=ALL, steps=4),
    fk.train.APFL(eta=0.1, batch=ALL, steps=4),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_bare_loop_does_the_work_of_its_part(part: Train) -> None:
    """Two rounds, so that what clients keep counts; then the uploads are compared."""
    client, data = loops.LOOPS[type(part).__name__], SMALL.federation.train.lists()
    stack = Stack(SMALL, part, 1)
    stack.train()
    reply = stack.engine.train(part, stack.sent, stack.sent.ids, 2)
    for i, rows in enumerate(data):
        kept: loops.Kept = {}
        x, y = SMALL.federation.x[rows], SMALL.federation.y[rows]
        for _ in range(2):
            found = client(SMALL.plain, part, lambda x=x, y=y: (x, y), kept)
        for name, value in found.named_parameters():
            torch.testing.assert_close(value.detach(), reply.upload["model"][name][i], rtol=1e-4, atol=1e-6)
            assert not torch.equal(value, dict(SMALL.module.named_parameters())[name])


@pytest.mark.parametrize(("part", "slot"), [(PARTS[2], "theta"), (PARTS[4], "personal"), (PARTS[5], "own")])
def test_a_bare_loop_keeps_what_its_part_keeps(part: Train, slot: str) -> None:
    """The personal models of pFedMe, Ditto and APFL, after two rounds."""
    stack, kept, rows = Stack(SMALL, part, 1), {}, SMALL.federation.train.lists()[0]
    x, y = SMALL.federation.x[rows], SMALL.federation.y[rows]
    for _ in range(2):
        stack.train()
        loops.LOOPS[type(part).__name__](SMALL.plain, part, lambda x=x, y=y: (x, y), kept)
    mine = stack.engine.slots.read(torch.tensor([0]))
    for name, value in kept[slot].named_parameters():
        torch.testing.assert_close(value.detach(), mine[slot][name][0], rtol=1e-4, atol=1e-6)
    if slot == "own":
        assert kept["alpha"] == pytest.approx(float(mine["mix"]["alpha"][0]), rel=1e-4) != part.alpha


def test_products_are_all_those_of_a_step_and_its_convolutions() -> None:
    """Whatever a step does of them is done again for each of two clients."""
    [row] = [row for row in ROWS if row.model == "two convolutions"]
    work = products.products(replace(row, steps=1), 2)
    with FlopCounterMode(display=False) as counter:
        work()
    assert counter.get_total_flops() // 2 == 2 * products.multiply_adds(row)


def test_multiply_adds_are_those_of_the_layers() -> None:
    """There once, and back once for the weights and once for the inputs of every layer but the first."""
    assert products.multiply_adds(replace(SMALL, model="mlr")) == 2 * ALL * 60 * 10
    assert products.multiply_adds(SMALL) == ALL * (2 * 60 * 20 + 3 * 20 * 10)
    first, second, dense = 28 * 28 * 32 * 75, 10 * 10 * 64 * 800, 1600 * 512 + 512 * 10
    [row] = [row for row in ROWS if row.model == "two convolutions"]
    assert products.multiply_adds(row) == row.batch * (2 * first + 3 * second + 3 * dense)
    [row] = [row for row in ROWS if row.text]
    gates, times = 4 * 256, 80
    forward = times * gates * (8 + 256 + 256 + 256) + 256 * workloads.TOKENS
    unneeded = 2 * gates * 256  # the gradient by the state before the first character, in both layers
    assert products.multiply_adds(row) == row.batch * (3 * forward - unneeded)


def test_exponents_are_fitted_on_logarithms() -> None:
    assert timing.exponent([1, 2, 4, 8], [3.0, 3 * 2**0.5, 6.0, 3 * 8**0.5]) == pytest.approx(0.5)


def test_a_round_of_fedkin_is_a_round_of_the_bare_loop() -> None:
    """From the same start on the same samples, so that the loss after three rounds is the same but for the shuffles."""
    losses = [peer_rounds.loss(play(3, 1)[1]) for play in (peer_rounds.bare, peer_rounds.fedkin)]
    before = peer_rounds.loss(list(peer_rounds.network().parameters()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0] < 0.97 * before


def test_frameworks_are_compared_by_their_least_round() -> None:
    turns = {
        "fedkin, one core": [{"seconds": [0.3, 0.2], "loss": 1.0}, {"seconds": [0.1, 0.4], "loss": 1.0}],
        "pfl-research": [{"seconds": [0.9, 0.5], "loss": 1.0}, {"seconds": [0.8, 0.7], "loss": 2.0}],
        "one that failed": [],
    }
    found = peers.concluded(turns)
    assert found["pfl-research"]["fedkin, one core"] == pytest.approx(5.0)
    assert found["pfl-research"]["fedkin, one core, wanted"] == 4.0
    assert "fedkin, two cores" not in found["pfl-research"]
    assert "fedkin, one core" not in found["fedkin, one core"]
    assert "one that failed" not in found


def test_a_framework_that_is_not_there_is_named_with_what_to_install() -> None:
    given = argparse.Namespace(python=sys.executable, pfllib=None)
    absent = peers.Side("absent", "absent", 1, "no_such_module_at_all", "pip install it")
    assert "pip install it" in (peers.missing(absent, given) or "")
    [library] = [side for side in peers.SIDES if side.name == "PFLlib"]
    assert "--pfllib" in (peers.missing(library, given) or "")
    assert peers.missing(peers.Side("there", "there", 1, "json"), given) is None
