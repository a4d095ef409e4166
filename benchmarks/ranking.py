"""All who-learns-from-whom methods on the same six federations, tuned with equal budgets, and kin without its parts.

    python benchmarks/ranking.py --out WORKFOLDER    plays what is not yet played, a JSON line a run
    python benchmarks/ranking.py --list              says what would be played, and how long that takes
    python benchmarks/ranking.py --only 'heart'      only what has this in its federation, method and seed
    python benchmarks/ranking.py --page              writes the tables of rivals.md and kin.md from the lines

A method is tuned on data seed 0 by validation samples, with as many trials as any other one, and is then played with
what was chosen on data seeds that had no part in that, where the validation samples are given back. No choice is made
by test samples. The work folder has a tuning a federation and method; one that is finished is not repeated, one that
was stopped goes on. A run's line is appended when it ends. Federations come one after another, all methods on all
seeds, so that what there is after a stop is a whole table of the first ones.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranking_methods import (
    ABLATIONS,
    FEDERATIONS,
    METHODS,
    QUICK,
    Setting,
    cost,
    loaded,
    made,
    of_trial,
    plays,
    shorter,
)
from ranking_page import write_pages

import fedkin as fk
from fedkin.parts import Method
from fedkin.runs.settings import with_settings
from fedkin.runs.validation import SHARE

LINES = Path(__file__).parent.parent / "docs" / "results" / "ranking" / "lines.jsonl"
TRIALS = 5


@dataclass(frozen=True)
class Game:
    """One run: a method on one division of a federation's data."""

    federation: str
    method: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.federation} {self.method} {self.seed}"


def games(federations: dict[str, Setting], seeds: Sequence[int]) -> Iterator[Game]:
    """Every run once. kin's ablations end a federation; training alone begins it, as every other one is held to it."""
    for federation, setting in federations.items():
        methods = [method for method in METHODS if plays(method, setting)]
        for method in [*methods, *(ABLATIONS if setting.ablations else ())]:
            for seed in seeds:
                yield Game(federation, method, seed)


def chosen(federation: str, setting: Setting, method: str, trials: int, out: Path) -> dict[str, Any]:
    """The settings that are best by the validation samples of data seed 0, and what they came to."""
    name = of_trial(method)
    place = out / federation / name
    kept = place / "chosen.json"
    if kept.exists() and (known := json.loads(kept.read_text()))["trials"] == trials:
        return dict(known)
    tuned = fk.tune(
        made(name, setting),
        setting.data if setting.groups == 1 else loaded(replace(setting.data, validation=SHARE), setting.groups),
        setting.network,
        setting.rounds,
        trials=trials,
        prune=False,  # so that every method has played as many rounds
        folder=place / "study",
        resume=True,
        evaluate_every=setting.rounds,  # the last round decides, and nobody is told of others
        threads=1,
        warn=silent,
    )
    found = {"settings": tuned.tried[0].settings, "validation": tuned.value, "trials": trials}
    kept.write_text(json.dumps(found))
    return found


def played(game: Game, setting: Setting, best: dict[str, Any]) -> dict[str, Any]:
    """What a tuned method comes to in the last round on a division on which nothing was chosen."""
    method = configured(game.method, setting, best["settings"])
    given = loaded(setting.on(game.seed), setting.groups)
    began = time.process_time()
    run = fk.run(
        fk.Experiment(
            method,
            given,
            setting.network,
            rounds=setting.rounds,
            seed=game.seed,
            evaluate_every=setting.rounds,
            score=("post", "global"),
            threads=1,
        ),
        warn=silent,
    )
    seconds = time.process_time() - began  # of the processor: others may use it too
    reached = run.lines[-1]["accuracy"]
    found = {**game.__dict__, **best, "judged": run.judged, "macro": round(reached[run.judged]["macro"], 6)}
    found |= {"global": round(reached["global"]["macro"], 6)} if "global" in reached else {}
    clients = [round(float(value), 4) for value in run.accuracies[run.judged]]
    return found | {"clients": clients, "test": run.about_clients["test"], "seconds": round(seconds, 2)}


def configured(name: str, setting: Setting, settings: dict[str, str]) -> Method:
    """A method with the settings that were chosen, then without the part of kin that an ablation takes away."""
    return shorter(name, with_settings(made(name, setting), [f"{path}={text}" for path, text in settings.items()]))


def silent(sentence: str) -> None:
    """Say nothing: warnings are for users who choose."""


def stored(lines: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []


def untuned(game: Game, trials: int, out: Path) -> bool:
    kept = out / game.federation / of_trial(game.method) / "chosen.json"
    return not kept.exists() or json.loads(kept.read_text())["trials"] != trials


def price(left: Sequence[Game], federations: dict[str, Setting], trials: int, out: Path) -> float:
    """How many seconds these runs should take on one core, with the trials that they wait for."""
    tunings = {(game.federation, of_trial(game.method)) for game in left if untuned(game, trials, out)}
    searched = sum(trials * cost(method, federations[federation]) for federation, method in tunings)
    return searched + sum(cost(game.method, federations[game.federation]) for game in left)


def play(left: Sequence[Game], federations: dict[str, Setting], trials: int, out: Path, lines: Path) -> None:
    """Play these runs in order, tuning a method before its first one."""
    lines.parent.mkdir(parents=True, exist_ok=True)
    began, whole = time.perf_counter(), price(left, federations, trials, out)
    for number, game in enumerate(left, 1):
        setting = federations[game.federation]
        line = played(game, setting, chosen(game.federation, setting, game.method, trials, out))
        with lines.open("a") as file:
            file.write(json.dumps(line) + "\n")
        rest = price(left[number:], federations, trials, out)
        past = time.perf_counter() - began
        remaining = rest * past / max(whole - rest, 1e-9)
        said = f"{game.name}: {100 * line['macro']:.2f} % in {line['seconds']:.1f} s"
        print(f"{number}/{len(left)} {said}; {past / 60:.0f} min past, {remaining / 60:.0f} min left", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("ranking"), help="the folder of the tunings")
    parser.add_argument("--only", default="", help="runs whose name has this, a regular expression")
    parser.add_argument("--trials", type=int, default=TRIALS, help="that every method has")
    parser.add_argument("--seeds", default="1,2,3", help="data seeds that tuned methods are played on, none of them 0")
    parser.add_argument("--list", action="store_true", help="say what would be played, and play nothing")
    parser.add_argument("--page", action="store_true", help="write the tables of both pages, and play nothing")
    parser.add_argument("--quick", action="store_true", help="a try: two rounds on digits, lines in the work folder")
    given = parser.parse_args()
    lines = given.out / "lines.jsonl" if given.quick else LINES
    if given.page:
        write_pages(stored(lines))
        return
    seeds = [int(word) for word in given.seeds.split(",")]
    if 0 in seeds:
        parser.error("methods are tuned on data seed 0; play them on others")
    federations = QUICK if given.quick else FEDERATIONS
    done = {Game(**{name: line[name] for name in Game.__dataclass_fields__}) for line in stored(lines)}
    left = [game for game in games(federations, seeds) if game not in done and re.search(given.only, game.name)]
    if given.list:
        for game in left:
            print(f"{game.name}: about {cost(game.method, federations[game.federation]):.1f} s")
        minutes = price(left, federations, given.trials, given.out) / 60
        print(f"{len(left)} runs, with {given.trials} trials a method about {minutes:.0f} minutes on one core")
        return
    play(left, federations, given.trials, given.out, lines)


if __name__ == "__main__":
    main()
