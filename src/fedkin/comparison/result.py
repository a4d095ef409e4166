"""What came out of a comparison: the table, every client's gain over training alone, the verdicts, the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from fedkin.answers.sentences import lines
from fedkin.comparison.exports import write_clients, write_table
from fedkin.errors import BadInput, require
from fedkin.evaluate import KINDS
from fedkin.metrics import named
from fedkin.runs import files, several, statistics
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.run import Repetition, Run
from fedkin.runs.verdict import LOCAL, gain

if TYPE_CHECKING:
    import pandas as pd


class Temporary:
    """A folder that is removed when nobody needs it any more."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="fedkin-"))
        finalize(self, rmtree, self.path, ignore_errors=True)


class Repetitions(dict[Repetition, Run]):
    """The runs of one method by seed and split. A seed alone finds its run on the first split."""

    def __missing__(self, key: object) -> Run:
        if isinstance(key, int):
            first = min((repetition for repetition in self if repetition.seed == key), default=None)
            if first is not None:
                return self[first]
        raise KeyError(key)


Runs = dict[str, Repetitions]  # by method


@dataclass(frozen=True)
class Comparison:
    """What came out of several methods, seeds and splits on the same data."""

    folder: Path
    runs: Runs  # by method, then by seed and split
    methods: dict[str, dict[str, Any]]  # each method's summary over its seeds
    summary: dict[str, Any]  # what summary.json says
    temporary: Temporary | None = None  # of a comparison that was given no folder

    @property
    def verdicts(self) -> dict[str, dict[str, Any]]:
        """Each method against Local: 'better' and 'worse' (shares of clients), 'gain' (the mean), 'p' and 'verdict'."""
        return dict(self.summary.get("against_local", {}))

    @property
    def metric(self) -> str:
        """The metric that decides."""
        return str(self.summary.get("metric", "accuracy"))

    def table(self, metric: str | None = None) -> pd.DataFrame:
        """Return a row for each method: the metric that decides in the last round, its verdict and its cost.

        Accuracies are fractions: means over seeds, with their standard deviations where there are several seeds.
        `metric` is by default the one that decides.
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
            row |= {word: against.get(word) for word in ("against", "better", "worse", "gain", "p", "verdict")}
            rows.append(row | {"uploads": found["cost"]["uploads"], "seconds": found["time"]["total_s"]})
        return pd.DataFrame(rows).set_index("method")

    def scored(self) -> list[tuple[str, str]]:
        """Return the kinds and averages of scores that any method has, in the order of the table."""
        has = [kind for kind in KINDS if any(kind in statistics.deciding(found) for found in self.methods.values())]
        return [(kind, average) for kind in has for average in (("micro",) if kind == "test" else statistics.AVERAGES)]

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
        known to be irrelevant.
        """
        import pandas as pd

        names = next(iter(next(iter(self.runs.values())).values())).about_clients["names"]
        columns = {
            name: gains_over_local(self.runs, name, found.get("against", LOCAL)).mean(0)
            for name, found in self.verdicts.items()
        }
        return pd.DataFrame(columns, index=pd.Index(names, name="client"))

    def export(self, path: Path | str) -> Path:
        """Write the table to a .csv (raw numbers), .tex or .md file; returns its path."""
        return write_table(self, path)

    def export_clients(self, path: Path | str) -> Path:
        """Write every client's gains to a .csv (raw numbers), .tex or .md file; returns its path."""
        return write_clients(self, path)

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
        return "\n".join([*said, *([""] if said else []), str(self.table().to_string())])


def load_comparison(folder: Path | str) -> Comparison:
    """Read a finished comparison from its folder."""
    place = CommandFolder(Path(folder))
    require(place.has_plan, f"{folder} is not a comparison of fedkin.")
    runs: Runs = {}
    for value, folder_of_run in place.planned():
        key = Repetition(value["seed"], int(value["data"].get("split") or 0))
        run = Run(folder_of_run.path, value["rounds"], key.seed, metric=value.get("metric"))
        runs.setdefault(value["method"]["name"], Repetitions())[key] = run
    late = [run.name for found in runs.values() for run in found.values() if not (run.begun and run.finished)]
    require(not late, f"The comparison in {folder} is not finished ({len(late)} runs are left); go on with --resume.")
    return Comparison(place.path, runs, over_seeds(runs), place.summary())


def load(folder: Path | str) -> Run | several.Runs | Comparison:
    """Read what a folder holds: one run, the runs of one method with several seeds, or a comparison of methods."""
    place = CommandFolder(Path(folder))
    if place.has_plan and len({value["method"]["name"] for value in place.plan()["arms"]}) > 1:
        return load_comparison(folder)
    return several.load_run(folder)


def over_seeds(runs: Runs) -> dict[str, dict[str, Any]]:
    """Return the summary of each method over its seeds and splits."""
    return {name: statistics.merged([run.summary for run in found.values()]) for name, found in runs.items()}


def gains_over_local(runs: Runs, name: str, local: str) -> np.ndarray:
    """Return each client's gain over training alone with a method, a row for each seed and split."""  # (runs, n)
    return np.stack([gain(run, runs[local][key]) for key, run in runs[name].items()])
