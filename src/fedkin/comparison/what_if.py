"""What if some sites were not there? The same comparison without them, and what each of the others gains or loses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fedkin.answers import bootstrap
from fedkin.answers.bootstrap import Gain
from fedkin.answers.held_out import held_out_at, with_predictions
from fedkin.comparison.divisions import data_seed_of
from fedkin.comparison.plan import Plan, Planned
from fedkin.comparison.result import Comparison, Runs
from fedkin.data import Data
from fedkin.data.seeds import keyed_generator
from fedkin.errors import require, unknown
from fedkin.runs.verdict import is_local

FEWEST = 2  # sites that must be left


@dataclass(frozen=True)
class Effect:
    """What leaving others out does to one site with one method: positive is better for the site."""

    site: str
    method: str
    rows: int
    gain: Gain

    def as_json(self) -> dict[str, Any]:
        return {"site": self.site, "method": self.method, "rows": self.rows} | asdict(self.gain)


def without(plan: Plan, names: Sequence[str], sites: Sequence[str]) -> Plan:
    """Return the plan of the same runs without the sites of these names, in a folder inside that of the plan."""
    partitions = {data_seed_of(one.experiment) for one in plan.runs}
    sentence = "Sites of several data seeds are different sites; compare again without --data-seeds, then ask what if."
    require(len(partitions) == 1, sentence)
    for name in names:
        if name not in sites:
            raise unknown("site", name, sites)
    require(len(set(sites) - set(names)) >= FEWEST, f"Without {', '.join(names)} fewer than {FEWEST} sites are left.")
    folder = plan.folder.what_if(names)
    runs = []
    for one in plan.runs:
        data = one.experiment.data
        assert isinstance(data, Data)  # a plan that is read from its folder has no other
        less = replace(data, without=tuple(sorted({*(data.without or ()), *names})))
        place = folder.run_like(one.folder, plan.folder)
        runs.append(Planned(replace(one.experiment, data=less), place))
    return Plan(folder, runs, plan.jobs, tuned=plan.tuned)


def effects(whole: Comparison, less: Comparison, telling: Callable[[str, int, int], None]) -> list[Effect]:
    """Return what each site that is left gains or loses by it, with the method that the whole comparison says is best
    for it. Both models are judged on the same test rows, in every seed and split."""
    methods = [name for name in whole.runs if not is_local(name)]
    arms: Runs = {f"{side} {name}": found.runs[name] for name in methods for side, found in sides(whole, less).items()}
    stored = with_predictions(arms)
    require(stored is not None, "These runs kept no predictions, so single sites cannot be compared.")
    assert stored is not None
    against = {f"less {name}": f"whole {name}" for name in methods}
    best = {site["site"]: site["method"] for site in whole.summary.get("sites", {}).get("sites", [])}
    names = first_run(less).about_clients["names"]
    metric, found = first_run(whole).metric, []
    for done, site in enumerate(names, 1):
        tested = held_out_at(site, stored)
        gains = bootstrap.gains(tested, against, metric, keyed_generator(0, "what if", site))
        method = best.get(site) or methods[0]
        if (gain := gains.get(f"less {method}")) is not None:
            found.append(Effect(site, method, len(tested.distinct), gain))
        telling("what each site gains or loses", done, len(names))
    return found


def sides(whole: Comparison, less: Comparison) -> dict[str, Comparison]:
    return {"whole": whole, "less": less}


def first_run(found: Comparison) -> Any:
    return next(iter(next(iter(found.runs.values())).values()))
