"""What the watch page is told: only what is new, also of a run whose files are just being written."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import small

import fedkin as fk
from fedkin.comparison.plan import with_local

pytest.importorskip("plotly")

from fedkin.report.page import sections
from fedkin.report.study import studied
from fedkin.runs import files
from fedkin.watch import view
from fedkin.watch.view import Remembered, Watched, check_watchable, signature, view_of

DATA = fk.Data("synthetic", clients=6)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Page:
    """Takes answers as the page does: it keeps the pieces in use, and says which it has."""

    def __init__(self, watched: Watched) -> None:
        self.watched, self.pieces, self.sections = watched, dict[str, Any](), dict[str, Any]()

    def ask(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.watched.answer(frozenset(self.pieces)))
        self.pieces |= answer["pieces"]
        self.sections = {one["name"]: one for one in answer["sections"]}
        used = [one["html"] for one in answer["sections"]]
        used += [piece for one in answer["sections"] for ids in one["stores"].values() for piece in ids.values()]
        self.pieces = {name: self.pieces[name] for name in used}  # a KeyError: a piece was never sent
        return answer

    def html(self, name: str) -> str:
        return str(self.pieces[self.sections[name]["html"]])


@pytest.fixture
def page() -> Callable[[Path], Page]:
    """`page(folder)`: a page of this folder, whose clock stands between two questions unless the test moves it."""
    return lambda folder: Page(Watched(folder, clock=Clock()))


def played(folder: Path, rounds: int = 3, **options: Any) -> fk.Run:
    experiment = fk.Experiment(fk.methods.fedavg(count=3), DATA, rounds=rounds, evaluate_every=1)
    return fk.run(experiment, folder, **options)


def later(page: Page) -> dict[str, Any]:
    page.watched.clock.now += 10  # type: ignore[attr-defined]
    return page.ask()


def test_the_page_is_made_of_the_sections_of_the_report(tmp_path: Path, page: Any) -> None:
    played(tmp_path / "run")
    found = page(tmp_path / "run")
    answer = found.ask()
    assert answer["state"] == "finished"
    report = sections(studied(tmp_path / "run"))
    assert sorted(found.sections) == sorted(["status", *report])
    assert list(found.sections)[:3] == ["status", "header", "curves"], "what moves comes first"
    for name, section in report.items():
        assert found.html(name) == section.html
        figures = {id: found.pieces[piece] for id, piece in found.sections[name]["stores"]["figures"].items()}
        assert figures == json.loads(json.dumps(section.figures))


def test_only_what_is_new_is_sent(tmp_path: Path, page: Any) -> None:
    folder = tmp_path / "run"
    played(folder, callbacks=[small.Until(2)])
    found = page(folder)
    whole = found.ask()
    assert len(whole["pieces"]) > 5
    again = later(found)
    assert set(again["pieces"]) <= {found.sections["status"]["html"]}, "nothing has changed but perhaps the times"
    played(folder, resume=True)
    new = later(found)
    assert found.sections["curves"]["stores"]["figures"]["curves"] in new["pieces"]
    assert found.sections["definitions"]["html"] not in new["pieces"], "what the page has is not sent again"
    assert "finished" in new["state"]


def test_a_run_is_read_again_only_when_its_files_changed(tmp_path: Path) -> None:
    played(tmp_path / "run", callbacks=[small.Until(2)])
    read = Remembered()
    first = read(tmp_path / "run")
    assert read(tmp_path / "run") is first
    played(tmp_path / "run", resume=True)
    assert read(tmp_path / "run") is not first
    assert read(tmp_path / "run").reached == 3
    assert signature(tmp_path / "nothing") == ()


def test_looking_takes_only_its_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(tmp_path / "run", callbacks=[small.Until(1)])
    clock, looks = Clock(), []

    def slow(*args: Any, **options: Any) -> Any:
        looks.append(clock.now)
        clock.now += 2.0  # making the sections takes two seconds
        return studied(*args, **options)

    monkeypatch.setattr(view, "studied", slow)
    watched = Watched(tmp_path / "run", share=0.1, clock=clock)
    for _ in range(100):
        with open(tmp_path / "run" / "rounds.jsonl", "ab") as file:
            file.write(b" ")  # a line that is being written
        watched.answer(())
        clock.now += 1.0
    gaps = [b - a for a, b in pairwise(looks)]
    assert len(looks) > 3
    assert min(gaps) >= 20, "two seconds of every twenty"


def test_files_that_are_being_written_are_no_trouble(tmp_path: Path, page: Any) -> None:
    """Every file that grows is cut at every place of its last row or line, as a reader may find it."""
    folder = tmp_path / "run"
    played(folder, callbacks=[small.Until(2)])
    found = page(folder)
    found.ask()
    known = found.html("curves"), found.html("header")
    for path in [*folder.glob("*.bin"), folder / "rounds.jsonl"]:
        whole = path.read_bytes()
        for more in (1, 4, 7, 9, 30):
            path.write_bytes(whole + whole[:more])
            answer = later(found)
            assert answer["state"] == "stopped"
            assert (found.html("curves"), found.html("header")) == known, (path.name, more)
        path.write_bytes(whole)
    text = (folder / "experiment.json").read_text()
    (folder / "experiment.json").write_text(text[:40])
    assert "sections" in later(found)
    assert found.html("header") == known[1], "what cannot be read now is shown as it was"
    (folder / "experiment.json").write_text(text)


def test_before_the_first_run_and_while_runs_wait(tmp_path: Path, page: Any, clinics: fk.Federation) -> None:
    found = page(tmp_path / "late")
    assert found.ask()["state"] == "waiting"
    assert "No run has begun here yet" in found.html("status")
    (tmp_path / "late").mkdir()
    with files.locked(tmp_path / "late"):
        assert later(found)["state"] == "running"
        assert "preparing its first run" in found.html("status")
    methods = with_local([fk.methods.fedavg(count=3)])
    experiment = fk.Experiment(methods[0], clinics, rounds=4, evaluate_every=2)
    assert small.compared(tmp_path / "late", experiment, methods, [0, 1], ("fedavg", 0)) is None
    answer = later(found)
    assert answer["state"] == "stopped"
    assert "2 of 4 runs are done" in found.html("status")
    assert "fedavg seed 1</th>" in found.html("status")
    assert "not begun" in found.html("status")
    with files.locked(tmp_path / "late"), files.locked(tmp_path / "late" / "fedavg" / "seed-0"):
        assert later(found)["state"] == "running"
        assert "fedavg seed 0: round 3 of 4" in found.html("status")


def test_names_are_escaped(tmp_path: Path, page: Any, clinics: fk.Federation) -> None:
    folder = tmp_path / "<b>"
    fk.run(fk.Experiment(fk.methods.local(), clinics, rounds=1), folder)
    found = page(folder)
    found.ask()
    assert not any("<b>&" in found.html(name) for name in found.sections)
    assert 'data-name="&lt;b&gt;"' in found.html("status")


def test_a_newer_layout_is_said_on_the_page(tmp_path: Path, page: Any) -> None:
    played(tmp_path / "run")
    (tmp_path / "run" / "format.json").write_text('{"format": 99}')
    found = page(tmp_path / "run")
    found.ask()
    assert "written by a newer fedkin" in found.html("status")


def test_folders_that_can_be_watched(tmp_path: Path) -> None:
    check_watchable(tmp_path / "not there yet")
    check_watchable(tmp_path)
    played(tmp_path / "some" / "fedavg" / "seed-0")
    check_watchable(tmp_path / "some")
    (tmp_path / "some" / "plan.json").write_text("{}")
    with pytest.raises(fk.BadInput, match=r"watch one of them: .*some"):
        check_watchable(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(fk.BadInput, match="is a file"):
        check_watchable(tmp_path / "file")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("x")
    with pytest.raises(fk.BadInput, match="is not a run of fedkin"):
        check_watchable(tmp_path / "photos")


def test_a_section_is_cut_into_pieces_by_what_they_say(tmp_path: Path) -> None:
    played(tmp_path / "run")
    one = view_of(sections(studied(tmp_path / "run")))
    two = view_of(sections(studied(tmp_path / "run")))
    assert one == two
    assert json.loads(one.answer(one.pieces, {}))["pieces"] == {}


def test_pictures_are_of_the_seed_that_is_played_now(tmp_path: Path, clinics: fk.Federation) -> None:
    methods = with_local([fk.methods.fedmcsa()])
    experiment = fk.Experiment(methods[0], clinics, rounds=4, evaluate_every=1)
    assert small.compared(tmp_path / "runs", experiment, methods, [0, 1], ("fedmcsa", 1)) is None
    for live, seed in ((True, 1), (False, 0)):
        study = studied(tmp_path / "runs", live=live)
        assert study.drawn["fedmcsa"][0].seed == seed
        assert f"The map is of seed {seed}." in sections(study)["who_learns_from_whom"].html
