"""The ranking's tables are made of lines, compare like with like, and say only what is clear."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import ranking_methods
import ranking_page


def line(method: str, seed: int, macro: float, federation: str = "heart") -> dict[str, Any]:
    """A run in which every one of four clients reaches the same."""
    about = {"federation": federation, "method": method, "seed": seed, "trials": 6, "settings": {}}
    return about | {"macro": macro, "clients": [macro] * 4, "test": [100] * 4, "judged": "post", "seconds": 1.0}


def played(**by_method: float) -> list[dict[str, Any]]:
    """Five data seeds, which move all methods alike but for a little."""
    noise = (0.0, 0.01, 0.02, 0.01, 0.03)
    little = {name: [0.001 * ((3 * i + seed) % 4) for seed in range(5)] for i, name in enumerate(by_method)}
    return [
        line(name, seed + 1, value + noise[seed] + little[name][seed])
        for name, value in by_method.items()
        for seed in range(5)
    ]


def pages(folder: Path, lines: list[dict[str, Any]]) -> tuple[str, str]:
    rivals, kin = folder / "rivals.md", folder / "kin.md"
    rivals.write_text("# A\n<!-- ranking -->\nstale\n<!-- end of ranking -->\nAfter.\n")
    kin.write_text("# B\n<!-- kin -->\nstale\n<!-- end of kin -->\nAfter.\n")
    ranking_page.write_pages(lines, rivals, kin)
    found = rivals.read_text(), kin.read_text()
    assert all(text.endswith("-->\nAfter.\n") and "stale" not in text for text in found)
    return found


def test_methods_stand_by_rank_with_what_is_clear(tmp_path: Path) -> None:
    text, kin = pages(tmp_path, played(local=0.7, fedavg=0.8, kin=0.8, fedacs=0.6, ditto=0.9))
    rows = [row for row in text.splitlines() if row.startswith("| ") and "±" in row]
    names = [row.split("|")[1].strip() for row in rows]
    assert (names[0], names[3:]) == ("Ditto", ["training alone", "FedACS"])
    assert set(names[1:3]) == {"kin", "FedAvg"}
    assert "| heart | training alone, FedACS | FedAvg | Ditto |" in text
    assert "** + |" in rows[0]
    assert " − |" in rows[-1]
    assert "(Ditto)" in kin


def test_clients_are_worse_off_beyond_noise_only(tmp_path: Path) -> None:
    """At .7 and 100 samples the standard error is 6.5 points."""
    text, _ = pages(tmp_path, [line(name, 1, p) for name, p in (("local", 0.7), ("kin", 0.66), ("ditto", 0.6))])
    last = text.split("Worse off than alone")[1]
    assert "| kin | 0 |" in last
    assert "| Ditto | 100 |" in last


def test_one_data_seed_is_never_clear(tmp_path: Path) -> None:
    text, _ = pages(tmp_path, [line(name, 1, p) for name, p in (("local", 0.7), ("kin", 0.66), ("ditto", 0.1))])
    assert "| heart | none | training alone, Ditto | none |" in text


def test_a_method_that_lacks_a_data_seed_waits(tmp_path: Path) -> None:
    lines = played(local=0.7, kin=0.8, ditto=0.9)[:-1]
    assert "Ditto" not in pages(tmp_path, lines)[0]


def test_ablations_are_told_apart_from_methods(tmp_path: Path) -> None:
    lines = played(local=0.7, kin=0.8) + [one | {"method": "kin without tuned"} for one in played(kin=0.75)]
    text, kin = pages(tmp_path, lines)
    assert "kin without tuned" not in text
    assert "| kin without tuned | **-5.0" in kin


def test_nothing_played_is_said(tmp_path: Path) -> None:
    assert all("Nothing has been played yet." in text for text in pages(tmp_path, []))


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rivals.md").write_text("# A\n")
    with pytest.raises(SystemExit, match="no place"):
        ranking_page.write_pages([], tmp_path / "rivals.md", tmp_path / "rivals.md")


@pytest.mark.parametrize("setting", ranking_methods.FEDERATIONS.values())
def test_all_methods_have_the_same_work(setting: ranking_methods.Setting) -> None:
    for name in (*ranking_methods.METHODS, *ranking_methods.ABLATIONS):
        method = ranking_methods.shorter(name, ranking_methods.made(name, setting))
        assert method.train.alone() == ranking_methods.made("local", setting).train.alone()
        assert (method.select.values(), method.trains in ("selected", "everyone")) == (
            {"fraction": 1.0, "count": None},
            True,
        )


def test_the_pages_are_not_older_than_their_runs(tmp_path: Path) -> None:
    import ranking

    for page in (ranking_page.RIVALS, ranking_page.KIN):
        (tmp_path / page.name).write_text(page.read_text())
    ranking_page.write_pages(ranking.stored(ranking.LINES), tmp_path / "rivals.md", tmp_path / "kin.md")
    for page in (ranking_page.RIVALS, ranking_page.KIN):
        assert (tmp_path / page.name).read_text() == page.read_text(), "python benchmarks/ranking.py --page"
