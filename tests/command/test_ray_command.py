"""`--engine ray` from the command line: the same run, with every option that changes an engine, and when killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small import Until

import fedkin as fk
from fedkin.command import play
from fedkin.core import tree

RUN = ["run", "fedacs", "--data", "digits", "--clients", "6", "--rounds", "4", "--chunk", "2", "--evaluate-every", "2"]
ACTORS = ["--engine", "ray", "--actors", "2"]


def same(one: Path, other: Path) -> None:
    """Selections and scores are the same, and the models but for last digits."""
    runs = [fk.load_run(folder / "fedacs" / "seed-0") for folder in (one, other)]
    for name in ("selected.bin", "kept.bin", "accuracy-post.bin", "accuracy-recv.bin"):
        assert len({(run.folder / name).read_bytes() for run in runs}) == 1, name  # type: ignore[operator]
    torch.testing.assert_close(*(tree.flat(run.models) for run in runs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("more", [[], ["--memory", "0"], ["--score-clients", "3"]], ids=["", "files", "sample"])
def test_a_run_with_actors_is_the_run_without(ray_here: Any, fedkin, tmp_path: Path, more: list[str]) -> None:
    outcome = fedkin(*RUN, *ACTORS, *more, "--profile", "--json", "--out", "actors")
    assert outcome.code == 0, outcome.err
    assert fedkin(*RUN, *more, "--out", "alone").code == 0
    same(tmp_path / "actors", tmp_path / "alone")
    summary = json.loads(outcome.out)
    assert summary["rounds"] == 4
    known = fk.load_run(tmp_path / "actors" / "fedacs" / "seed-0").experiment["resolved"]
    assert known.get("scored_clients") == (3 if "--score-clients" in more else None)
    assert not list((tmp_path / "actors").rglob("slots-*")), "no scratch file is left"
    seconds = fk.load_run(tmp_path / "actors" / "fedacs" / "seed-0").profile.seconds  # type: ignore[union-attr]
    assert "start-up: actors" in seconds
    assert "batches" not in seconds, "actors make them within training steps"


def test_a_stopped_run_goes_on_with_another_number_of_actors(
    ray_here: Any, fedkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(play.Progress, "watching", lambda *_: Until(3))
        assert fedkin(*RUN, *ACTORS, "--out", "actors").code == 130
    assert fedkin("run", "actors", "--resume", "--actors", "1").code == 0
    assert fedkin(*RUN, "--out", "alone").code == 0
    same(tmp_path / "actors", tmp_path / "alone")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--engine", "ray", "--actors", "7"], "7 actors are more than the 6 clients; ask for fewer."),
        (["--engine", "ray", "--actors", "5"], "Each actor takes a core, and there are 4 for 5 actors; ask for fewer."),
        (["--engine", "ray", "--memory", "1KB"], "--memory 1KB is too little for 2 clients at once"),
        (["--engine", "ray", "--jobs", "2"], "The engine ray uses all cores by itself; leave --jobs or --engine out."),
        (["--actors", "2"], "Actors, and the address of a cluster, are of the engine ray; add --engine ray."),
    ],
)
def test_what_does_not_fit_is_a_sentence(ray_here: Any, fedkin, words: list[str], sentence: str) -> None:
    outcome = fedkin(*RUN, *words)
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].startswith(f"fedkin: {sentence}")
