"""What came out of a comparison: the table, every client's gain over training alone, the verdicts, the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from fedkin import imports
from fedkin.answers.sentences import lines
from fedkin.comparison.exports import write_clients, write_pairs, write_table
from fedkin.errors import BadInput, require
from fedkin.evaluate import KINDS
from fedkin.metrics import named
from fedkin.runs import files, several, statistics
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.difference import mean_of_known
from fedkin.runs.run import Repetition, Run
from fedkin.runs.targets import COUNTED, checked_targets, mean_of, outcomes
from fedkin.runs.verdict import LOCAL, gain, led

if TYPE_CHECKING:
    import pandas as pd

AGAINST = ("against", "better", "worse", "gain", "low", "high", "p", "p_holm", "verdict")  # columns of the table
MATCHED_WORDS = ("gain", "p_holm", "verdict")  # columns against a Local that trains as rarely


class Temporary:
    """A folder that is removed when nobody needs it any more."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="fedkin-"))
        finalize(self, rmtree, self.path, ignore_errors=True)


class Repetitions(dict[Repetition, Run]):
    """The runs of one method by seed, split and the data's seed. A seed alone, or with a split, finds the first run
    that has them."""

    def __missing__(self, key: object) -> Run:
        asked = (key,) if isinstance(key, int) else tuple(key) if isinstance(key, tuple) else ()
        if len(asked) == len(Repetition._fields) and not asked[-1]:
            asked = asked[:-1]  # whoever names a seed and a split need not know the data's seed
        fitting = [repetition for repetition in self if asked and repetition[: len(asked)] == asked]
        if fitting:
            return self[min(fitting)]
        raise KeyError(key)


Runs = dict[str, Repetitions]  # by method


@dataclass(frozen=True)
class Comparison:
    """What came out of several methods, with several seeds, splits and seeds of the data, the same for all."""

    folder: Path
    runs: Runs  # by method, then by seed, split and the data's seed
    methods: dict[str, dict[str, Any]]  # each method's summary over its seeds
    summary: dict[str, Any]  # what summary.json says
    temporary: Temporary | None = None  # of a comparison that was given no folder

    @property
    def verdicts(self) -> dict[str, dict[str, Any]]:
        """Each method against Local: 'better' and 'worse' (shares of clients), 'gain' (the mean) with its 95 % interval
        from 'low' to 'high', 'p', 'p_holm' (corrected over the table), 'verdict', and 'matched', the same against a
        Local that trains as rarely as the method, where there is one."""
        return dict(self.summary.get("against_local", {}))

    @property
    def leader(self) -> dict[str, Any]:
        """The method with the best mean, the methods it is clearly better than ('over'), those it is not separated from
        ('level'), and whether it is clearly the 'best' of all."""
        return dict(self.summary.get("leader", {}))

    def pairs(self) -> pd.DataFrame:
        """Return a row for each pair of methods, the better one in the mean first: its gain over the other one with a
        95 % interval, p, p corrected over all pairs ('p_holm') and the verdict."""
        import pandas as pd

        found = self.summary.get("pairs", [])
        return pd.DataFrame(found).set_index(["method", "over"]) if found else pd.DataFrame()

    @property
    def metric(self) -> str:
        """The metric that decides."""
        return str(self.summary.get("metric", "accuracy"))

    def table(self, metric: str | None = None) -> pd.DataFrame:
        """Return a row for each method: the metric that decides in the last round, its verdict and its cost.

        Accuracies are fractions: means over seeds, with their standard deviations where there are several seeds.
        `metric` is by default the one that decides. 'best' is whether a method is clearly better than every other one.
        """
        import pandas as pd

        rows, name_of = [], self.metric if metric is None else named(metric).name
        for name, found in self.methods.items():
            row: dict[str, Any] = {"method": name}
            spread = statistics.of_metric(found, name_of, spread=True)
            for kind, average in self.scored():
                values = statistics.of_metric(found, name_of).get(kind, {}).get(average, {})
                row[f"{kind} {average}"] = values.get("last")
                if spread:
                    row[f"{kind} {average} std"] = spread.get(kind, {}).get(average, {}).get("last")
            against = self.verdicts.get(name, {})
            row |= {word: against.get(word) for word in AGAINST}
            row |= {f"{word} matched": against["matched"][word] for word in MATCHED_WORDS if "matched" in against}
            row["best"] = bool(self.leader.get("best")) and self.leader["method"] == name
            row |= {"uploads": found["cost"]["uploads"], "seconds": found["time"]["total_s"]}
            for target in self.summary.get("targets", []):
                mine = target["rows"].get(name)
                for word in ("rounds", "uploads"):
                    row[f"{word} to {target['target']}"] = None if mine is None else mean_of(mine, word)[0]
                row[f"reached {target['target']}"] = None if mine is None else mean_of(mine, "rounds")[1]
            rows.append(row)
        return pd.DataFrame(rows).set_index("method")

    def targets(self, *asked: str | float) -> pd.DataFrame:
        """Return a row for each target and method: the target's `level`, the `kind` of models that count, the means of
        the `rounds`, `uploads` and `client_rounds` until it was reached, and the share of runs that `reached` it.

        A target is a value of the metric that decides, or an arm's last ten rounds and more: `targets(0.9,
        "fedavg+0.01")`. Without any it is those that the comparison was asked for. Every round must have been scored.
        """
        import pandas as pd

        runs = {name: list(found.values()) for name, found in self.runs.items()}
        stored = self.summary.get("targets", [])
        kinds = {name: list(statistics.deciding(found)) for name, found in self.methods.items()}
        found = outcomes(checked_targets(asked, kinds, self.metric), runs) if asked else stored
        rows: list[dict[str, Any]] = []
        for target in found:
            for name, row in target["rows"].items():
                about = {"target": target["target"], "method": name, "level": target["level"], "kind": target["kind"]}
                means = {word: mean_of(row, word)[0] for word in COUNTED}
                rows.append(about | means | {"reached": mean_of(row, "rounds")[1]})
        return pd.DataFrame(rows).set_index(["target", "method"]) if rows else pd.DataFrame()

    def scored(self) -> list[tuple[str, str]]:
        """Return the kinds and averages of scores that any method has, in the order of the table. Those of clients
        known to be irrelevant, who are in no other average, come last."""
        has = [kind for kind in KINDS if any(kind in statistics.deciding(found) for found in self.methods.values())]
        found = [(kind, average) for kind in has for average in (("micro",) if kind == "test" else statistics.AVERAGES)]
        apart, each = f"macro{statistics.APART}", [statistics.deciding(one) for one in self.methods.values()]
        return found + [(kind, apart) for kind in has if any(apart in one.get(kind, {}) for one in each)]

    def sites(self) -> pd.DataFrame:
        """Return a row for each site: what it should do, with which method, its gain and the ends of the interval, its
        test rows, its kin, and which filters left it out. A gain is positive where joining is better."""
        import pandas as pd

        found = self.summary.get("sites", {}).get("sites", [])
        rows = [{name: value for name, value in site.items() if name != "methods"} for site in found]
        return pd.DataFrame(rows).set_index("site") if rows else pd.DataFrame()

    def gains(self) -> pd.DataFrame:
        """Return a row for each client and a column for each method: the gain over training alone, mean over seeds.

        A gain is a difference of the metric that decides in the last `post`, and positive is better; a gain in accuracy
        is a fraction. It is nan for clients without test samples, or where the metric is not defined, and for clients
        known to be irrelevant. Clients of different seeds of the data are different clients, a row each.
        """
        import pandas as pd

        columns = {
            name: np.concatenate([mean_of_known(each, 0) for each in found.values()])
            for name, found in (
                (name, gains_over(self.runs, name, said.get("against", LOCAL))) for name, said in self.verdicts.items()
            )
        }
        return pd.DataFrame(columns, index=pd.Index(self.client_names(), name="client"))

    def client_names(self) -> list[str]:
        """Return the clients' names; those of several seeds of the data one after another, each with its seed."""
        first: dict[int, Run] = {}
        for key, run in next(iter(self.runs.values())).items():
            first.setdefault(key.data_seed, run)
        if len(first) == 1:
            return list(next(iter(first.values())).about_clients["names"])
        return [f"{name} (data seed {seed})" for seed, run in first.items() for name in run.about_clients["names"]]

    def export(self, path: Path | str) -> Path:
        """Write the table to a .csv (raw numbers), .tex or .md file; returns its path."""
        return write_table(self, path)

    def export_clients(self, path: Path | str) -> Path:
        """Write every client's gains to a .csv (raw numbers), .tex or .md file; returns its path."""
        return write_clients(self, path)

    def export_pairs(self, path: Path | str) -> Path:
        """Write each method against each other one to a .csv (raw numbers), .tex or .md file; returns its path."""
        return write_pairs(self, path)

    def report(self, path: Path | str | None = None) -> Path:
        """Write the page that shows all this, into the comparison's folder or to this path; returns its path."""
        try:
            from fedkin.report.page import write
        except ModuleNotFoundError:
            raise BadInput("A report needs plotly: pip install 'fedkin[report]'.") from None
        require(
            path is not None or self.temporary is None,
            "This comparison was given no folder; say where the report goes: report('report.html').",
        )
        page = write(self.folder)
        if path is None:
            return page
        require(Path(path).parent.is_dir(), f"There is no folder {Path(path).parent} for the report.")
        files.write(Path(path), page.read_bytes())
        return Path(path)

    def __str__(self) -> str:
        said = lines(self.summary["sites"]) if "sites" in self.summary else []
        said = [*said, *self.summary.get("tuned", {}).get("sentences", [])]
        best = [sentence] if (sentence := led(self.leader)) else []
        told = ["", str(self.targets().to_string())] if self.summary.get("targets") else []
        return "\n".join([*said, *([""] if said else []), str(self.table().to_string()), *best, *told])


def load_comparison(folder: Path | str) -> Comparison:
    """Read a finished comparison from its folder."""
    place = CommandFolder(Path(folder))
    require(place.has_plan, f"{folder} is not a comparison of fedkin.")
    runs: Runs = {}
    for value, folder_of_run in place.planned():
        data = value["data"]
        key = Repetition(value["seed"], int(data.get("split") or 0), int(data.get("seed") or 0))
        run = Run(folder_of_run.path, value["rounds"], key.seed, metric=value.get("metric"))
        runs.setdefault(value["method"]["name"], Repetitions())[key] = run
    late = [run.name for found in runs.values() for run in found.values() if not (run.begun and run.finished)]
    require(not late, f"The comparison in {folder} is not finished ({len(late)} runs are left); go on with --resume.")
    return Comparison(place.path, runs, over_seeds(runs), place.summary())


def load(folder: Path | str, trust: bool = False) -> Run | several.Runs | Comparison:
    """Read what a folder holds: one run, the runs of one method with several seeds, or a comparison of methods.

    Modules that the folder names are imported only if you `trust` it.
    """
    place = CommandFolder(Path(folder))
    if trust:
        imports.trust(place.path)
    if place.has_plan and len({value["method"]["name"] for value in place.plan()["arms"]}) > 1:
        return load_comparison(folder)
    return several.load_run(folder)


def over_seeds(runs: Runs) -> dict[str, dict[str, Any]]:
    """Return the summary of each method over its seeds and splits."""
    return {name: statistics.merged([run.summary for run in found.values()]) for name, found in runs.items()}


def gains_over(runs: Runs, name: str, other: str) -> dict[int, np.ndarray]:
    """Return how much better each client fares by a method than by another one, a row for each seed and split; by the
    data's seed, because another seed has other clients."""  # (runs, n) each
    found: dict[int, list[np.ndarray]] = {}
    for key, run in runs[name].items():
        found.setdefault(key.data_seed, []).append(gain(run, runs[other][key]))
    return {data_seed: np.stack(rows) for data_seed, rows in found.items()}
