"""FedMix: the averages are exchanged once, and one of them comes with each batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from small import CLASSES, FEATURES, NUMBERS, Until, composed, equal, network

import fedkin as fk
from fedkin.core import rng
from fedkin.messages import Sent
from fedkin.train import SGD, FedMix

SIZES = (2, 3, 7, 11, 25)
SMALL = FedMix(eta=0.2, steps=3, batch=4, lam=0.3)


@pytest.mark.parametrize(("group", "rows"), [(None, 5), (4, 1 + 1 + 2 + 3 + 7)])
def test_the_exchange_is_counted_once(federate: Any, tmp_path: Path, group: int | None, rows: int) -> None:
    """Each client sends its averages, and all of them go down to each of the five; also in a run that was resumed."""
    method = composed(replace(SMALL, group=group))
    experiment = fk.Experiment(method, federate(SIZES), network(), 3, evaluate_every=1)
    whole, sent = fk.run(experiment), rows * (FEATURES + CLASSES)
    assert whole.summary["cost"] == pytest.approx(
        {
            "uploads": 12 + sent / NUMBERS,
            "downloads": 12 + 5 * sent / NUMBERS,
            "bytes_up": 4 * (12 * NUMBERS + sent),
            "bytes_down": 4 * (12 * NUMBERS + 5 * sent),
            "client_rounds": 12,
        }
    )
    assert [(line["uploads"], line["downloads"]) for line in whole.lines] == [(4, 4)] * 3
    fk.run(experiment, tmp_path, callbacks=[Until(2)])
    again = fk.run(experiment, tmp_path, resume=True)
    assert again.summary["cost"] == pytest.approx(whole.summary["cost"])
    assert all(torch.equal(again.models["global"][name], value) for name, value in whole.models["global"].items())


def test_every_client_finds_the_averages_of_all_in_what_it_is_sent(begin: Any) -> None:
    engine = begin(composed(SMALL), sizes=SIZES).engine
    ids = torch.tensor([1, 4])
    sent, got = Sent(ids, shared={"model": engine.network.model}), torch.ones(len(ids), dtype=torch.bool)
    found = engine.message(SMALL, sent, ids, {}, got, 1)["averages"]
    own = [engine.federation.train[client] for client in range(5)]
    for k in range(2):
        torch.testing.assert_close(found["x"][k], torch.stack([engine.batching.x[rows].mean(0) for rows in own]))
        counts = torch.stack([torch.bincount(engine.batching.y[rows], minlength=CLASSES) / len(rows) for rows in own])
        torch.testing.assert_close(found["y"][k], counts.double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("group", [None, 4])
@pytest.mark.parametrize("own", [True, False])
def test_every_average_comes_as_often(begin: Any, own: bool, group: int | None) -> None:
    """Each batch of each client draws anew from all averages, or from those that others sent."""
    run = begin(composed(replace(SMALL, own=own, group=group)), sizes=SIZES)
    engine, part, everyone = run.engine, run.method.train, slice(None)
    work = engine.batching.planned(part, 1, torch.arange(5))
    pool, ids = engine.batching.pool, work.ids.numpy()
    keys = rng.keys(engine.batching.seed, "picks", 1, ids)
    picked = np.stack([pool.picked(ids, rng.uniform(keys, k, 1)[:, 0], own) for k in range(1500)])
    for k in range(3):
        batch = engine.batching.batch(work, k, everyone, engine.network, part)
        assert torch.equal(batch["picked x"], pool.message["averages"]["x"][torch.from_numpy(picked[k])])
    owner = np.repeat(np.arange(5), [-(-size // (group or size)) for size in SIZES])
    for client in range(5):
        counts = np.bincount(picked[:, client], minlength=len(owner))
        assert len(counts) == len(owner)
        allowed = np.ones(len(owner), dtype=bool) if own else owner != client
        assert not counts[~allowed].any()
        assert stats.chisquare(counts[allowed]).pvalue > 1e-3
    if own:  # clients draw apart
        together = int((picked[:, 0] == picked[:, 1]).sum())
        assert stats.binomtest(together, 1500, 1 / len(owner)).pvalue > 1e-3


def test_alone_there_are_no_others(begin: Any) -> None:
    with pytest.raises(fk.BadInput, match=r"train\.own=true"):
        begin(composed(replace(SMALL, own=False)), sizes=(5,))


def test_naive_mix_is_mixup_with_the_average(begin: Any) -> None:
    engine = begin(composed(SMALL), sizes=SIZES).engine
    x, y = engine.batching.x[:6], engine.batching.y[:6]
    gen, lam = torch.Generator().manual_seed(1), SMALL.lam
    xbar = torch.randn(FEATURES, generator=gen, dtype=torch.float64)
    ybar = torch.softmax(torch.randn(CLASSES, generator=gen, dtype=torch.float64), 0)
    batch = {"x": x, "y": y, "picked x": xbar, "picked y": ybar}
    found = replace(SMALL, naive=True).loss(engine.network.model, batch, engine.network)
    logs = torch.log_softmax(engine.network.logits(engine.network.model, {"x": (1 - lam) * x + lam * xbar}), 1)
    hard = -logs[torch.arange(6), y].mean()
    torch.testing.assert_close(found, (1 - lam) * hard - lam * (logs @ ybar).mean(), rtol=1e-12, atol=0.0)


def test_at_lam_0_it_is_sgd(begin: Any) -> None:
    found = []
    for train in (SGD(eta=0.2, steps=3, batch=4), replace(SMALL, lam=0.0), SMALL):
        run = begin(composed(train))
        run.round()
        run.round()
        found.append(run.model)
    equal(found[0], found[1])
    assert any(not torch.allclose(found[2][name], value, rtol=1e-3) for name, value in found[0].items())


def test_words_cannot_be_averaged() -> None:
    """Token numbers have no mean; that is the user's mistake, in one sentence."""
    with pytest.raises(fk.BadInput):
        FedMix().prepare(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 1]), 2)
