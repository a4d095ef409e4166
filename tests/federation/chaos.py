"""A federation in which processes are killed at random, and a check that it went as if none had been.

    python tests/federation/chaos.py runs/chaos --seed 1

Six sites and a server run on this machine, with TLS and keys. Sites are killed (SIGKILL) and come back; sometimes the
ServerApp is, or the whole server, and the run is gone on with. In the end the run is played again in one process, with
the same sites missing in the same rounds: all records, scores and models have to be the same. It takes up to an hour,
ends by itself, and writes chaos.log; pytest does not run it.
"""

from __future__ import annotations

import argparse
import random
import shlex
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "sites"))

import numpy as np
from loopback import ROWS, TARGET, Loopback, loopback
from replay import differences, replayed
from survivors import gone

import fedkin as fk
from fedkin.errors import Unfinished
from fedkin.federation import server
from fedkin.federation.control import Control
from fedkin.federation.follow import begin
from fedkin.federation.state import look, played

NAMES = ["berlin", "lima", "oslo", "paris", "quito", "rome"]
METHOD, SETTINGS = "fedmcsa", "train.steps=5 eta=0.1 count=4 trains=selected"
TIMEOUT, PATIENCE = 10, 240  # seconds, as the app has them
LONGEST = 3600.0  # seconds after which it has failed
PAUSE = (4.0, 10.0)  # seconds between two kills
AWAY = (0.0, 15.0)  # seconds that a killed site stays away
MOST = 3  # sites that are away at one time, but for the times when all are killed
GATHERING = 0.15  # how often a kill is not left out while the server waits for all sites, which may take it long
ROUNDS = 2  # that are played between two kills at the server: it waits for all sites when it comes back


@dataclass
class Chaos:
    """Kills and starts processes of a federation, and writes down when."""

    there: Loopback
    draw: random.Random
    log: list[str] = field(default_factory=list)
    back: dict[str, float] = field(default_factory=dict)  # when a killed site is started again
    kills: dict[str, int] = field(default_factory=lambda: {"site": 0, "ServerApp": 0, "server": 0})
    began: float = field(default_factory=time.monotonic)
    after: int = 0  # the round after which the server, or all sites, were last killed

    def round(self) -> int:
        """The last round that is recorded."""
        rounds = played(self.there.folder)
        return rounds[0].round if rounds else 0

    def say(self, sentence: str) -> None:
        line = f"{time.monotonic() - self.began:7.1f} s  round {self.round():2d}  {sentence}"
        print(line, flush=True)
        self.log.append(line)

    def kill_something(self) -> None:
        """Kill a site or two, sometimes all of them, the ServerApp or the server."""
        there, rounds = self.there, self.round()
        if rounds == self.after and self.draw.random() > GATHERING:
            return
        what = self.draw.choices(["site", "all", "ServerApp", "server"], [0.7, 0.06, 0.12, 0.12])[0]
        if what != "site" and rounds < self.after + ROUNDS:
            return
        self.after = self.after if what == "site" else rounds
        up = sorted(there.sites.running)
        if what in ("site", "all"):
            count = len(up) if what == "all" else min(self.draw.choice([1, 1, 2]), MOST - len(NAMES) + len(up))
            for name in self.draw.sample(up, max(count, 0)):
                there.kill(name)
                self.kills["site"] += 1
                self.back[name] = time.monotonic() + self.draw.uniform(*AWAY)
                self.say(f"{name} is killed")
        elif what == "ServerApp" and there.kill_app():
            self.kills[what] += 1
            self.say("the ServerApp is killed")
            self.go_on()
        elif what == "server":
            there.kill_server()
            self.kills[what] += 1
            self.say("the server is killed")
            server.start(there.folder, there.link)
            self.go_on()

    def go_on(self) -> None:
        """Go on with the run as people do, or begin it where nothing of it is there yet."""
        with Control(self.there.folder) as control:
            resume = bool(played(self.there.folder) or [run for run in control.runs() if not run.ended])
            begin(self.there.folder, control, resume)
        self.say("the run is gone on with" if resume else "the run is begun again")

    def start_sites(self) -> None:
        """Start sites whose time has come."""
        for name in [name for name, when in self.back.items() if when <= time.monotonic()]:
            del self.back[name]
            self.there.start_site(name)
            self.say(f"{name} is started")

    def play(self) -> None:
        """Play the run to its end."""
        following = time.monotonic() + self.draw.uniform(*PAUSE)
        while True:
            assert time.monotonic() - self.began < LONGEST, "It takes too long."
            self.there.link.check()
            self.there.sites.check()
            self.start_sites()
            with Control(self.there.folder) as control:
                last = control.runs()[-1]
            if last.completed:
                self.say("the run is finished")
                return
            if last.ended:
                self.say(f"the run ended by itself: {last.status} {last.details}")
                self.go_on()
            if time.monotonic() > following:
                self.kill_something()
                following = time.monotonic() + self.draw.uniform(*PAUSE)
            time.sleep(0.2)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("out", type=Path, help="a folder that is not there yet")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--rounds", type=int, default=20)
    words = asked.parse_args()
    how = {"timeout": TIMEOUT, "patience": PATIENCE}
    with loopback(words.out.resolve() / "study", NAMES, METHOD, words.rounds, SETTINGS, **how) as there:
        chaos = Chaos(there, random.Random(words.seed))
        chaos.say(f"{len(NAMES)} sites are started")
        for name in NAMES:
            there.start_site(name)
        with Control(there.folder) as control:
            while set(look(there.folder, control).sites.values()) != {"online"}:
                there.sites.check()
                time.sleep(0.5)
            begin(there.folder, control, resume=False)
        chaos.say("all are up; the run begins")
        chaos.play()
    left = gone(there.mark, 10)
    run = fk.load(there.folder.runs / METHOD / "seed-0")
    found = [f"{len(left)} processes are left"] if left else []
    found += differences(run, replayed(run, there.folder, words.out / "replay", ROWS, TARGET), there.folder, words.out)
    missed = sum(int(np.isnan(row).sum()) for row in run.kept or [])
    kills = ", ".join(f"{what} {count} times" for what, count in chaos.kills.items())
    chaos.say(
        f"killed: {kills}; {missed} of {sum(map(len, run.selected))} answers were missed, in {len(run.lines)} rounds"
    )
    for sentence in found:
        chaos.say(f"WRONG: {sentence}")
    if not found:
        chaos.say("every round is recorded once; selections, scores and each site's models are those of the replay")
    command = f"$ python tests/federation/chaos.py {' '.join(map(shlex.quote, sys.argv[1:]))}"
    notes = ["", "What the people at the server read:", *there.notes().splitlines()]
    (words.out / "chaos.log").write_text("\n".join([command, "", *chaos.log, *notes]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unfinished as error:
        sys.exit(f"It ended: {error}")
