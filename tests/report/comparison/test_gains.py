"""Gains are what a client has over training alone, and where that is not known the page says so."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import compared as compared_by_hand
from small import gain_of

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.report.charts import style
from fedkin.report.formats import percent, points
from fedkin.report.study import Study
from fedkin.runs.folder import RunFolder


def test_gains_are_post_minus_local_with_names_and_sizes(read: Any, clinics: fk.Federation, trio: Study) -> None:
    found = read(trio)
    bars, dots = (found.figures[name]["data"][0] for name in ("bars-0", "sizes-0"))
    expected = 100 * np.mean([gain_of(trio, "fedavg", seed) for seed in (0, 1)], axis=0)
    np.testing.assert_allclose(bars["y"], np.sort(expected), atol=1e-8)
    np.testing.assert_allclose(dots["y"], expected, atol=1e-8)
    fed = clinics
    assert dots["x"] == fed.train.sizes.tolist()
    for name, samples, text in zip(fed.clients, dots["x"], dots["hovertext"], strict=True):
        assert name in unescape(text)
        assert f"<br>{samples:,} training samples<br>" in text
    few, many = expected[:2].mean() / 100, expected[-2:].mean() / 100
    assert f"has a mean gain of {points(few)} points" in found.text
    assert f"of {points(many)}. A client trains" in found.text
    for gain, colour in zip(bars["y"], bars["marker"]["color"], strict=True):
        assert colour == (style.BETTER if gain > 0 else style.WORSE if gain < 0 else style.SAME)
    assert found.figures["bars-0"]["layout"]["yaxis"]["range"] == found.figures["bars-1"]["layout"]["yaxis"]["range"]


def test_gains_of_very_many_clients_are_thinned_and_that_is_said(read: Any, recorded: Any, tmp_path: Path) -> None:
    n = 2500
    gains = np.random.default_rng(0).permutation(n) / n - 0.25
    recorded(tmp_path / "local" / "seed-0", n, [range(n)], name="local", post=np.full(n, 0.25))
    recorded(tmp_path / "fedavg" / "seed-0", n, [range(n)], post=0.25 + gains)
    found = read(tmp_path)
    bars, dots = (found.figures[name]["data"][0] for name in ("bars-0", "sizes-0"))
    assert len(bars["y"]) == len(dots["y"]) == len(bars["hovertext"]) == style.DOTS
    assert (bars["y"][0], bars["y"][-1]) == pytest.approx((100 * gains.min(), 100 * gains.max()))
    assert bars["y"] == sorted(bars["y"])
    assert np.median(bars["y"]) == pytest.approx(100 * np.median(gains), abs=0.1)
    assert "Of 2,500 clients 1,000 are drawn, evenly spaced by gain." in found.text
    assert "Every client's gain is not listed" in found.text
    assert not any(tag == "table" and "id" not in attributes for tag, attributes in found.tags)


def test_a_run_of_one_method_leaves_gains_out(read: Any, compared: Any, tmp_path: Path) -> None:
    summary = compared(tmp_path, [fk.methods.fedavg(count=3)], [0, 1])
    found = read(tmp_path)
    last = percent(summary["accuracy"]["post"]["macro"]["last"], summary["spread"]["post"]["macro"]["last"])
    assert found.headline == f"fedavg reaches {last} % after local training."
    assert "Local was not run" in found.text
    assert "'fedkin compare' adds it" in found.text
    assert "better off than alone" not in found.text
    assert set(found.figures) == {"curves", "selected"}


def test_local_by_itself(read: Any, clinics: fk.Federation, tmp_path: Path) -> None:
    fk.run(fk.Experiment(fk.methods.local(), clinics, rounds=2), tmp_path)
    found = read(tmp_path)
    assert found.headline.startswith("Training alone reaches ")
    assert "Only training alone was run" in found.text
    assert set(found.figures) == {"curves"}


def test_sizes_are_left_out_where_they_were_not_stored(read: Any, trio: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFolder, "clients", lambda _: {})
    found = read(trio)
    assert "bars-0" in found.figures
    assert "sizes-0" not in found.figures
    assert "quarter of clients" not in found.text
    assert "<b>client 5</b>" in "".join(found.figures["bars-0"]["data"][0]["hovertext"])


def test_a_client_without_test_samples_is_left_out(read: Any, tmp_path: Path) -> None:
    x, y = np.ones((4, 5), np.float32), np.arange(4) % 3
    clients = {
        "mute": {"train": (x, y)},
        "a": (np.tile(x, (5, 1)), np.tile(y, 5)),
        "b": (np.tile(x, (6, 1)), np.tile(y, 6)),
    }
    fed = fk.from_clients(clients)
    methods = with_local([fk.methods.fedavg(count=3)])
    compared_by_hand(tmp_path, fk.Experiment(methods[0], fed, rounds=2), methods, [0])
    found = read(tmp_path)
    assert "1 client has no test samples and is left out." in found.text
    assert len(found.figures["bars-0"]["data"][0]["y"]) == 2
