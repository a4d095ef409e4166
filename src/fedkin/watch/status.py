"""The first lines of the watch page: what is running, how far it is, and how long it will take."""

from __future__ import annotations

from html import escape

from fedkin.report.html import Section
from fedkin.watch.progress import Progress, RunProgress

TITLES = {"waiting": "Waiting", "running": "Running", "stopped": "Stopped", "finished": "Finished"}
LISTED = 200  # runs up to which each has a line


def status(progress: Progress, name: str, doing: dict[str, str] | None = None, note: str = "") -> Section:
    """The status of all runs and, where there are several, a bar for each.

    `doing` says what a run is doing within its round, by its name, where that is known. `note` is a sentence more.
    """
    doing = doing or {}
    state = progress.state
    said = " · ".join(part for part in (counted(progress), now_playing(progress, doing), in_all(progress)) if part)
    html = f'<p><b class="{state}">{TITLES[state]}</b> {escape(said or waiting(progress))}</p>'
    html += f'<p class="note">{escape(note)}</p>' if note else ""
    html += overall(progress) if progress.runs else ""
    if len(progress.runs) > 1:
        rows = "".join(row(run, doing.get(run.name, "")) for run in progress.runs[:LISTED])
        html += f'<details id="every-run"><summary>Every run</summary><table class="runs">{rows}</table></details>'
    return Section(f'<div id="status" data-state="{state}" data-name="{escape(name)}">{html}</div>')


def waiting(progress: Progress) -> str:
    """What is said before the first round."""
    if progress.state == "running":
        return "The command is preparing its first run."
    return "No run has begun here yet; this page shows it as soon as one does."


def counted(progress: Progress) -> str:
    """How many runs are done, where there are several."""
    total = len(progress.runs)
    if total == 1 and progress.state in ("finished", "stopped"):
        run = progress.runs[0]
        return f"{run.name}: round {run.round:,} of {run.rounds:,}"
    return f"{progress.count('finished'):,} of {total:,} runs are done" if total > 1 else ""


def now_playing(progress: Progress, doing: dict[str, str]) -> str:
    """The runs that are played now, each with its round and the time it still takes."""
    playing = [run for run in progress.runs if run.state == "running"]
    return "; ".join(f"{run.name}: {far(run, doing.get(run.name, ''))}" for run in playing[:4])


def far(run: RunProgress, doing: str) -> str:
    """How far a run is that is played now."""
    if run.round >= run.rounds:
        return "writing what came out"
    said = doing or f"round {run.round + 1:,} of {run.rounds:,}"
    if run.seconds is not None and run.since > max(10.0, 2 * run.seconds):
        said += f", for {span(run.since)} now"
    return said + (f", about {span(run.left)} left" if run.left is not None else "")


def in_all(progress: Progress) -> str:
    """The time that all runs still take; nothing where that is said already."""
    if progress.state != "running" or len(progress.runs) < 2 or progress.left is None:
        return ""
    return f"about {span(progress.left)} left in all"


def span(seconds: float) -> str:
    """A time as people say it: 40 s, 3 min, 2 h 5 min."""
    if seconds < 90:
        return f"{max(1, round(seconds)):,} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60:,} h {minutes % 60} min"


def overall(progress: Progress) -> str:
    """One bar for all rounds of all runs."""
    return meter(sum(run.round for run in progress.runs), sum(run.rounds for run in progress.runs), "all rounds")


def meter(done: int, of: int, label: str) -> str:
    return f'<progress max="{of}" value="{done}" aria-label="{escape(label)}">{done:,} of {of:,}</progress>'


def row(run: RunProgress, doing: str) -> str:
    """A line of the table of runs."""
    words = {"waiting": "not begun", "stopped": f"stopped after round {run.round:,}", "finished": "finished"}
    said = words.get(run.state) or far(run, doing)
    bar = meter(run.round, run.rounds, run.name)
    return f'<tr><th scope="row">{escape(run.name)}</th><td>{bar}</td><td>{escape(said)}</td></tr>'
