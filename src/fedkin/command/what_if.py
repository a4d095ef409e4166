"""fedkin what-if: the same comparison without some sites."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fedkin.answers.sentences import amount, called, number, together
from fedkin.command.app import Trust, app
from fedkin.command.page import write_report
from fedkin.command.progress import Progress
from fedkin.command.read import read_jobs
from fedkin.command.screen import plain_console
from fedkin.comparison.compare import carry_out
from fedkin.comparison.plan import Loaded, Plan, stored_plan
from fedkin.comparison.processes import Killed
from fedkin.comparison.result import Comparison, load_comparison
from fedkin.comparison.what_if import Effect, effects, first_run, without
from fedkin.errors import Unfinished
from fedkin.methods.titles import title
from fedkin.metrics import METRICS
from fedkin.runs.command_folder import CommandFolder

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished comparison.")]
Without = Annotated[
    list[str] | None,
    typer.Option("--without", help="A site to leave out; may be repeated. [each site in turn, one at a time]"),
]
Jobs = Annotated[str | None, typer.Option(help="Runs side by side: a number, or auto: one a core. [as RUN]")]


@app.command("what-if")
def what_if(folder: Folder, leave_out: Without = None, jobs: Jobs = None, trust: Trust = False) -> None:
    """Run a comparison again without some sites, and say what each of the others gains or loses by it.

    fedkin what-if runs/compare-patients-1 --without "Hospital 4" --without "Hospital 9"
    """
    screen = plain_console(stderr=True)
    place = CommandFolder.around(folder).path
    whole, plan = load_comparison(place), stored_plan(place)
    plan = replace(plan, jobs=read_jobs(jobs, len(plan.runs), "cpu") or plan.jobs)
    sites = list(first_run(whole).about_clients["names"])
    if leave_out:
        found = played(whole, without(plan, leave_out, sites), screen)
        show(found, [site for site in sites if site in leave_out], first_run(whole).metric)
        page = write_report(plan.folder.what_if(leave_out).path, screen)
        screen.print(f"The comparison without them is in {plan.folder.what_if(leave_out).path}", soft_wrap=True)
        if page:
            screen.print(f"Its report is {page}", soft_wrap=True)
        return
    plans = {site: without(plan, [site], sites) for site in sites}
    left = sum(not one.done for other in plans.values() for one in other.runs)
    seconds = sum(one.run.summary["time"]["total_s"] for one in plan.runs) / len(plan.runs) * left / plan.jobs
    screen.print(f"{len(sites)} comparisons, {left} runs to play, about {seconds / 60:.1f} minutes.", soft_wrap=True)
    every = {}
    for i, (site, other) in enumerate(plans.items(), 1):
        screen.print(f"Without {called(site)} ({i}/{len(sites)})", soft_wrap=True)
        every[site] = played(whole, other, screen)
    show_all(every, first_run(whole).metric)


def played(whole: Comparison, plan: Plan, screen: Console) -> list[Effect]:
    """Play a comparison without some sites, or go on with it, and return and write what that does to the others."""
    with Progress(screen, plan.runs) as progress:
        try:
            resume = plan.folder.has_plan
            options: dict[str, Any] = {"watching": progress.watching, "warn": progress.warn}
            options |= {"stopping": lambda: progress.stopping, "telling": progress.telling}
            less = carry_out(plan, Loaded(), resume=resume, **options)
        except Killed as error:
            raise Unfinished(f"{error} Call the same command again to go on.") from None
        if less is None:
            screen.print("Stopped and saved. Call the same command again to go on.")
            raise typer.Exit(130)
        found = effects(whole, less, progress.telling)
    plan.folder.write_effects({"metric": first_run(whole).metric, "sites": [effect.as_json() for effect in found]})
    return found


def show(found: list[Effect], names: list[str], metric: str) -> None:
    """Print what each of the others gains or loses without these sites."""
    better, worse = (sum(sign * end > 0 for end in ends) for sign, ends in ((1, lows(found)), (-1, highs(found))))
    plain_console().print(
        f"Without {together(names, 'and')}: {better} of {len(found)} sites are better off, {worse} worse off, "
        f"{len(found) - better - worse} show no clear difference.",
        highlight=False,
        soft_wrap=True,
    )
    table = Table("site", "method", "gain by it", "95 % interval", "test rows", box=SIMPLE_HEAD)
    for effect in found:
        percent = METRICS[metric].percent
        ends = f"{number(effect.gain.low, percent)} to {number(effect.gain.high, percent)}"
        cells = (title(effect.method), amount(metric, effect.gain.gain), ends, f"{effect.rows:,}")
        table.add_row(called(effect.site), *cells)
    plain_console().print(table)


def show_all(every: dict[str, list[Effect]], metric: str) -> None:
    """Print for each site what the others gain or lose without it, in the mean and one by one."""
    percent = METRICS[metric].percent
    table = Table("without", "mean gain of the others", "better off", "worse off", box=SIMPLE_HEAD)
    means = {site: sum(e.gain.gain for e in found) / max(1, len(found)) for site, found in every.items()}
    for site in sorted(every, key=lambda name: -means[name]):
        found = every[site]
        better = [effect.site for effect in found if effect.gain.low > 0]
        worse = [effect.site for effect in found if effect.gain.high < 0]
        cells = (together(names) if names else "-" for names in (better, worse))
        table.add_row(called(site), number(means[site], percent, True), *cells)
    plain_console().print(table)


def lows(found: list[Effect]) -> list[float]:
    return [effect.gain.low for effect in found]


def highs(found: list[Effect]) -> list[float]:
    return [effect.gain.high for effect in found]
