"""The folder of a command, which plays one or more methods with one or more seeds.

format.json              the version of this layout
plan.json                what the command set out to do
<method>/seed-<k>/       one run; seed-<k>-split-<s> where the samples are divided into train and test several times,
                         and seed-<k>-data-seed-<d> where the data have several seeds
<method>/summary.json    its seeds together
summary.json             everything: the methods, and each against Local
manifest.json            the sizes and the digests of the summaries
report.html              the page
what-if/without-<names>/ the folder of the same command without these sites, with effects.json beside its summary
.lock
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from fedkin.errors import require, shown
from fedkin.fields import names_a_folder
from fedkin.runs import files, manifest, schema
from fedkin.runs.folder import RunFolder
from fedkin.runs.format import check_format, write_format

LONGEST = 100  # letters of sites' names in the name of a folder
TAKEN = (
    "format.json",
    "plan.json",
    "summary.json",
    "report.html",
    "effects.json",
    "manifest.json",
    "what-if",
    *files.FOREIGN,
)


@dataclass(frozen=True)
class CommandFolder:
    """The folder of a command: several methods and seeds, a run each."""

    path: Path

    def run(self, method: str, seed: int, split: int | None = None, data_seed: int | None = None) -> RunFolder:
        """Return the folder of one run; the split and the data's seed are named only where there are several."""
        free = names_a_folder(method) and method.lower() not in TAKEN
        require(free, f"{shown(method)} cannot be the folder of a method in {self.path}; give the method another name.")
        name = f"seed-{seed}" + (f"-split-{split}" if split is not None else "")
        return RunFolder(self.path / method / (name + (f"-data-seed-{data_seed}" if data_seed is not None else "")))

    def run_like(self, other: RunFolder, of: CommandFolder) -> RunFolder:
        """Return the folder of the run that another command's folder keeps under the same name."""
        return RunFolder(self.path / other.path.relative_to(of.path))

    def planned(self) -> list[tuple[dict[str, Any], RunFolder]]:
        """Return every experiment of the plan, as JSON, with the folder of its run."""
        arms = self.plan()["arms"]
        said = [[int(arm["data"].get(word) or 0) for arm in arms] for word in ("split", "seed")]
        told = [numbers if len(set(numbers)) > 1 else [None] * len(arms) for numbers in said]
        return [
            (arm, self.run(arm["method"]["name"], arm["seed"], split, data_seed))
            for arm, split, data_seed in zip(arms, *told, strict=True)
        ]

    def runs(self) -> list[RunFolder]:
        """Return the runs that have begun: the folder itself, or what is in it."""
        if RunFolder(self.path).begun:
            return [RunFolder(self.path)]
        return [RunFolder(path.parent) for path in sorted(self.path.glob("*/seed-*/experiment.json"))]

    def runs_of_method(self) -> list[RunFolder]:
        """Return the runs that have begun in the folder of one method."""
        return [RunFolder(path.parent) for path in sorted(self.path.glob("seed-*/experiment.json"))]

    @staticmethod
    def around(path: Path) -> CommandFolder:
        """Return the command's folder, also when given that of one of its runs."""
        return CommandFolder(path.parent.parent if RunFolder(path).begun else path)

    @property
    def has_plan(self) -> bool:
        return (self.path / "plan.json").exists()

    def plan(self) -> dict[str, Any]:
        check_format(self.path)
        return self.sealed_plan()

    def sealed_plan(self) -> dict[str, Any]:
        return schema.read(schema.PlanSaid, self.path / "plan.json")

    def against(self) -> dict[str, str]:
        """Return the Local that each method is compared with; empty where an older version wrote the plan, which
        compared all with 'local'."""
        return dict(self.plan().get("against") or {}) if self.has_plan else {}

    def write_plan(self, plan: dict[str, Any]) -> None:
        files.make_folder(self.path)
        files.write_json(self.path / "plan.json", manifest.sealed(plan))  # first: without it nothing could go on
        write_format(self.path)

    def summary(self) -> dict[str, Any]:
        """Return the summary of all runs; empty before it is written."""
        path = manifest.checked(self.path / "summary.json", self.path)
        return manifest.unsealed(files.read_json(path), path) if path.exists() else {}

    def write_summary(self, summary: dict[str, Any], method: str | None = None) -> None:
        """Write the summary of one method over its seeds or, without a method, of all runs."""
        path = (self.path if method is None else self.path / method) / "summary.json"
        files.write_json(path, summary)
        if method is None:
            manifest.write_some(self.path, [path, *sorted(self.path.glob("*/summary.json"))])

    def what_if(self, without: Sequence[str]) -> CommandFolder:
        """Return the folder of the same command without these sites."""
        name = "+".join("".join(c if c.isalnum() or c in "._-" else "-" for c in site) for site in sorted(without))
        if len(name) > LONGEST:
            name = blake2b("/".join(sorted(without)).encode(), digest_size=8).hexdigest()
        return CommandFolder(self.path / "what-if" / f"without-{name}")

    def write_effects(self, effects: dict[str, Any]) -> Path:
        """Write what leaving sites out does to the others."""
        files.write_json(self.path / "effects.json", effects)
        return self.path / "effects.json"

    def write_page(self, page: str) -> Path:
        files.write(self.path / "report.html", page.encode())
        return self.path / "report.html"
