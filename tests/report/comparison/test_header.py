"""The headline calls a win only what was tested, and what is missing is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import gain_of

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.report.formats import percent
from fedkin.report.study import Study


def verdicts(study: Study, **words: str) -> None:
    """Change the stored verdicts."""
    for name, found in study.stored["against_local"].items():
        found["verdict"] = words.get(name, words.get("others"))


@pytest.mark.parametrize(
    ("words", "headline", "wins"),
    [
        ({"others": "worse"}, "Training alone is best here: clients do worse with fedavg and <i>prox.", 0),
        ({"others": "no clear difference"}, "No method is clearly better than training alone", 0),
        ({"fedavg": "worse", "others": "no clear difference"}, "No method is clearly better than training alone", 0),
    ],
)
def test_only_a_tested_win_is_called_one(
    read: Any, trio: Study, words: dict[str, str], headline: str, wins: int
) -> None:
    verdicts(trio, **words)
    found = read(trio)
    assert headline in found.text
    assert sum(a.get("class") == "win" for _, a in found.tags) == wins
    assert "Verdict: better" not in found.text


def test_wins_are_named_and_marked(read: Any, trio: Study) -> None:
    verdicts(trio, fedavg="better", others="worse")
    found = read(trio)
    assert re.search(r"fedavg leads, and its clients .*|Clients do better than alone with fedavg\.", found.text)
    assert sum(a.get("class") == "win" for _, a in found.tags) == 1
    verdicts(trio, others="better")
    found = read(trio)
    assert re.search(r"Clients do better than alone with (fedavg and <i>prox|<i>prox and fedavg)\.", found.text)
    assert sum(a.get("class") == "win" for _, a in found.tags) == 2


def test_verdicts_of_older_runs_are_not_repeated(read: Any, trio: Study) -> None:
    """A summary that lies above the runs may be of fewer rounds than they have by now."""
    verdicts(trio, others="better")
    trio.stored["methods"]["fedavg"]["rounds"] = 3
    found = read(trio)
    assert "do better than alone" not in found.text
    assert "No verdict: there is no summary of these runs." in found.text
    assert not any(a.get("class") == "win" for _, a in found.tags)


def test_a_partial_comparison_says_so(read: Any, compared: Any, tmp_path: Path) -> None:
    methods = with_local([fk.methods.fedavg(count=3), fk.methods.fedprox(count=3)])
    compared(tmp_path, methods, [0, 1], stop=("fedprox", 0))
    with open(tmp_path / "fedprox" / "seed-0" / "rounds.jsonl", "a") as file:
        file.write('{"round": 3, "sel')  # a run that was killed while it wrote
    found = read(tmp_path)
    assert found.headline == "Not finished: 4 of 6 runs are done."
    assert "Unfinished: fedprox seed 0 (round 2 of 4), fedprox seed 1 (not begun)." in found.text
    assert "no seed is finished" in found.text
    assert "No verdict: the comparison is not finished." in found.text
    assert "Verdict: " not in found.text
    names = [trace["name"] for trace in found.figures["curves"]["data"] if "name" in trace]
    assert "fedprox (unfinished)" in names
    assert "bars-0" in found.figures
    assert "bars-1" not in found.figures


def test_some_seeds_of_a_method(read: Any, trio: Study) -> None:
    vars(trio.entries["fedavg"].runs[1])["finished"] = False  # as if it had none
    verdicts(trio, others="better")
    found = read(trio)
    assert "1 of 2 seeds" in found.text
    assert "fedavg seed 1 (round 4 of 4)" in found.text
    assert not any(a.get("class") == "win" for _, a in found.tags)
    expected = np.sort(100 * gain_of(trio, "fedavg", 0))
    np.testing.assert_allclose(found.figures["bars-0"]["data"][0]["y"], expected, atol=1e-8)


def test_one_seed_has_no_spread_and_is_cautioned(read: Any, clinics: fk.Federation, tmp_path: Path) -> None:
    summary = fk.run(fk.Experiment(fk.methods.fedavg(count=3), clinics, rounds=2), tmp_path).summary
    found = read(tmp_path)
    assert "One seed only" in found.text
    table = found.text[: found.text.index("What the words mean")]
    assert "±" not in table
    last = summary["accuracy"]["post"]["macro"]["last"]
    assert found.headline == f"fedavg reaches {percent(last)} % after local training."
    assert all("fill" not in trace for trace in found.figures["curves"]["data"])


def test_the_answer_of_the_sites_comes_first(read: Any, trio: Study) -> None:
    found = read(trio)
    assert re.match(r"Joining (clearly )?pays for (none|\d+) of \d+ sites\.", found.headline)
    first = [found.text.find(words) for words in ("Is it worth joining?", "Methods side by side")]
    assert 0 < first[0] < first[1]
