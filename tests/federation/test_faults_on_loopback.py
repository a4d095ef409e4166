"""What may go wrong between machines, on a real SuperLink with TLS and keys: strangers, liars, kills, lateness, a bad
server. One server and its sites serve all of it, because to start them is what takes the time."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from loopback import Loopback, loopback, until
from survivors import gone, need_proc

import fedkin as fk
from fedkin.errors import Unfinished
from fedkin.federation.certificates import certify, node_key
from fedkin.federation.control import Control
from fedkin.federation.follow import begin, follow
from fedkin.federation.state import look

pytestmark = pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
NAMES = ["a", "b", "bad"]
TIMEOUT, PATIENCE = 6, 8
APP = """
import time
from pathlib import Path

from fedkin import flower
from fedkin.federation.site_data import samples
from fedkin.sites.letters import Answer
from fedkin.sites.site import Site

honest = Site.answer


def answer(self, request):
    round = (request.facts.get("train") or {}).get("round", 0)
    found = honest(self, request)
    value = found.value()
    if "upload" not in value:
        return found
{more}


Site.answer = answer
app = flower.client(samples=samples)
"""
SLOW = """
    if Path("wait").exists():
        Path("waiting").write_text(str(round))
        while Path("wait").exists():
            time.sleep(0.05)
    return found
"""
BAD = """
    name, model = found.site, dict(value["upload"]["model"])
    first = next(iter(model))
    if round % 4 == 0:
        model[first] = model[first] * float("nan")
    if round % 4 == 1:
        model[first] = model[first][:1]
    if round % 4 == 2:
        model = {name: 100 * tensor for name, tensor in model.items()}
    if round % 4 == 3:
        name = "a"
    value["upload"]["model"] = model
    return Answer.of(name, found.to, value)
"""
EVIL_SERVER = """
import json
from pathlib import Path
from uuid import uuid4

from flwr.serverapp import ServerApp

from fedkin.flower.grid import OnGrid
from fedkin.sites.letters import Request

app = ServerApp()
RUN = {"number": 0, "seed": 0, "dtype": "float32", "agreed": {}, "own": False, "id": "0" * 32, "model": "mlr"}
ASKED = {
    "module": {"run": RUN | {"train": {"is": "os:system"}}, "held": 0},
    "method": {"run": RUN | {"train": {"is": "Pooled"}}, "held": 0},
    "path": {"run": RUN | {"id": "../../../out"}, "held": 0},
}


@app.main()
def main(grid, context):
    transport, found = OnGrid(grid, print), {}
    transport.gather(Request(uuid4().hex, "introduce"), 20)
    for name, value in ASKED.items():
        answers = transport.exchange({"b": Request.of(uuid4().hex, "work", value)}, 20)
        found[name] = getattr(answers["b"], "facts", str(answers["b"]))
    Path("evil.json").write_text(json.dumps(found))
"""
EVIL_CLIENT = """
from pathlib import Path

Path("stolen").touch()
raise SystemExit("This is not the site's own app.")
"""


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Loopback]:
    need_proc()
    settings = "train.steps=3 count=4 trains=selected"
    more = {"timeout": TIMEOUT, "patience": PATIENCE}
    with loopback(tmp_path / "study", NAMES, "fedmcsa", 1000, settings, **more) as made:
        folder = made.folder
        (folder.site("b") / "client_app.py").write_text(APP.replace("{more}", SLOW))
        (folder.site("bad") / "client_app.py").write_text(APP.replace("{more}", BAD))
        for name in NAMES:
            made.start_site(name)
        yield made
    assert not gone(made.mark, 5)


def test_what_may_go_wrong_between_machines(there: Loopback, tmp_path: Path) -> None:
    strangers_try_to_join(there, tmp_path)
    sites_run_nothing_that_they_do_not_allow(there)
    rounds_go_on_without_the_dead_the_late_and_the_bad(there)
    strangers_have_not_joined(there)


def online(there: Loopback, *names: str) -> bool:
    with Control(there.folder) as control:
        state = look(there.folder, control).sites
    return all(state.get(name) == "online" for name in names)


def replied(runs: Path) -> np.ndarray:
    """For each round and site, whether what the site sent counted."""
    if not (runs / "fedmcsa" / "seed-0" / "kept.bin").exists():
        return np.zeros((0, 3), bool)
    kept = fk.Run(runs / "fedmcsa" / "seed-0").kept
    return ~np.isnan(np.array(kept).reshape(-1, 3))


def strangers_try_to_join(there: Loopback, tmp_path: Path) -> None:
    """One has a key that the server does not know, the other one believes another authority."""
    certify(tmp_path, ["127.0.0.1"])
    for name in ("stranger", "elsewhere"):
        shutil.copytree(there.folder.site("a"), there.folder.site(name), ignore=shutil.ignore_patterns("kept"))
    (there.folder.site("stranger") / "site.key").unlink()
    node_key(there.folder.site("stranger") / "site.key", tmp_path / "stranger.pub")
    shutil.copy(tmp_path / "ca.crt", there.folder.site("elsewhere") / "ca.crt")
    for name in ("stranger", "elsewhere"):
        there.start_site(name)


def strangers_have_not_joined(there: Loopback) -> None:
    """By now both have ended, each with a sentence."""
    for name, words in (("stranger", "does not know its key"), ("elsewhere", "not the server that ca.crt is of")):
        until(lambda name=name: there.sites.running[name].poll() is not None, 90, f"{name} does not end")
        assert there.sites.running.pop(name).wait() == 1
        assert f"This site cannot join at {there.folder.address}. " in there.heard(name)
        assert words in there.heard(name)
    assert "No SuperNode found with the given public key" in (there.link.logs / "superlink.log").read_text()


def sites_run_nothing_that_they_do_not_allow(there: Loopback) -> None:
    """The server's app asks for what no site allows, and brings a ClientApp of its own, which no site looks at."""
    folder = there.folder
    until(lambda: online(there, *NAMES), 90, "not all sites are up")
    kept = {name: (folder.app / name).read_text() for name in ("server_app.py", "client_app.py")}
    try:
        for name, text in (("server_app.py", EVIL_SERVER), ("client_app.py", EVIL_CLIENT)):
            (folder.app / name).write_text(text)
        with Control(folder) as control:
            control.start({})
            until(lambda: control.runs()[-1].ended, 60, there.link.log("superexec"))
    finally:
        for name, text in kept.items():
            (folder.app / name).write_text(text)
    (found,) = folder.path.rglob("evil.json")
    said = json.loads(found.read_text())
    assert "does not allow parts of the module 'os'" in said["module"]["refused"]
    assert "refused" in said["method"]
    assert "paths are not taken from a server" in said["path"]["refused"]
    assert there.heard("b").count("Site b refused what it was asked") == 3
    assert not list(folder.path.rglob("stolen"))
    assert not list(folder.path.rglob("out"))


def rounds_go_on_without_the_dead_the_late_and_the_bad(there: Loopback) -> None:
    """Rounds go on without whoever is killed or late, and nothing that a bad site sends counts; in the end all sites
    are killed, and the run ends with a sentence and all its rounds."""
    folder, b = there.folder, there.folder.site("b")
    missed = "It goes on without site b"
    with Control(folder) as control:
        number = begin(folder, control, resume=False)

        def check() -> None:
            there.link.check()
            assert not control.runs()[-1].ended, there.notes() + there.link.log("superexec")

        def noted(words: str) -> None:
            until(lambda: words in there.notes(), 60, f"{words!r} is not among {there.notes()}", check)

        def in_the_middle_of_a_round() -> int:
            (b / "wait").touch()
            until(lambda: (b / "waiting").exists() and (b / "waiting").read_text(), 90, there.notes(), check)
            return int((b / "waiting").read_text())

        until(lambda: replied(folder.runs)[:, 1].any(), 90, "b does not reply", check)
        killed = in_the_middle_of_a_round()
        there.kill("b")
        (b / "wait").unlink()
        (b / "waiting").unlink()
        noted(missed)
        there.start_site("b")
        until(lambda: replied(folder.runs)[killed:, 1].any(), 90, f"b does not come back: {there.notes()}", check)
        count = there.notes().count(missed)
        late = in_the_middle_of_a_round()
        until(lambda: there.notes().count(missed) > count, 60, "b is not missed", check)
        (b / "wait").unlink()  # its answer comes too late
        until(lambda: replied(folder.runs)[late:, 1].any(), 90, f"b does not go on: {there.notes()}", check)
        for words in ("not finite", "instead of ((", "times as large", "under the name of 'a'"):
            noted(words)
        there.kill(*NAMES)
        with pytest.raises(Unfinished, match=r"Nobody answers for .* What was played is saved; go on with: fedkin"):
            follow(folder, control, number, lambda state, notes: None, there.link.check)
    assert "Nobody answers (" in there.notes()  # it waits, with a notice, before it ends
    run = fk.Run(folder.runs / "fedmcsa" / "seed-0")
    assert [line["round"] for line in run.lines] == list(range(1, len(run.lines) + 1))
    counted = replied(folder.runs)
    assert not counted[:, 2].any()
    assert not counted[[killed - 1, late - 1], 1].any()
    assert counted[[killed - 1, late - 1], 0].all()
    assert "Nothing is left" not in there.notes()
    assert os.listdir(folder.site("b") / "kept" / "runs") == os.listdir(folder.site("a") / "kept" / "runs")
