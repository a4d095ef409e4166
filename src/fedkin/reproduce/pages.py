"""Writes the committed results into the pages of the papers: `make pages`, or python -m fedkin.reproduce.pages.

A page in docs/papers is written by people but for what stands between two marks, which is made from docs/results. What
users learn from a result is written by people too, in docs/results/<paper>/conclusions.md: a heading a preset.
"""

from __future__ import annotations

import re
from pathlib import Path

from fedkin.comparison.exports import markdown
from fedkin.errors import require
from fedkin.presets import PRESETS
from fedkin.reproduce.outcome import Outcome
from fedkin.reproduce.results import all_committed, committed_folder
from fedkin.reproduce.tables import claims_markdown, readings, table

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
SOURCE = "Made from [docs/results](../results) by `make pages`; do not edit by hand."
VERDICTS = (
    "A claim *holds* if every comparison in it is as claimed beyond the spread of the repetitions (paired, one-sided, "
    "5 %), and *holds in shape* if every mean is as claimed. It *does not hold* if some comparison is contrary beyond "
    "the spread, and is *not decided* otherwise. Behind ± is the standard deviation over repetitions."
)


def main() -> None:
    """Write the results into every page."""
    for path, text in pages(committed_folder()).items():
        path.write_text(text, encoding="utf-8")
        print(f"{path} is made from the committed results.")


def pages(results: Path) -> dict[Path, str]:
    """The text of every page of a paper with the committed results in it."""
    found = all_committed(results)
    made: dict[Path, str] = {}
    for paper in dict.fromkeys(name.partition("/")[0] for name in PRESETS):
        path = results.parent / "papers" / f"{paper}.md"
        before, mark, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        require(mark and end, f"{path} has no place for results: a line {BEGIN} and a line {END}.")
        said = conclusions(results / paper / "conclusions.md")
        mine = [name for name in PRESETS if name.partition("/")[0] == paper]
        parts = [section(name, {s: o for (n, s), o in found.items() if n == name}, said.get(name, "")) for name in mine]
        made[path] = f"{before}{BEGIN}\n{SOURCE}\n\n{VERDICTS}\n\n" + "\n".join(parts) + f"{END}{after}"
    return made


def drawn_ids(outcome: Outcome) -> list[str]:
    """The ids of the figures that are drawn as pictures: curves, and numbers over the steps of another number."""
    panels = dict.fromkeys(curve["panel"] for curve in outcome["curves"])
    return [*(f"curves-{i}" for i in range(len(panels))), *(["steps"] if outcome["axis"] else [])]


def picture_of(name: str, scale: str, id: str) -> Path:
    """The picture of a figure of a committed result."""
    return committed_folder().parent / "papers" / "figures" / f"{name.replace('/', '-')}-{scale}-{id}.png"


def conclusions(path: Path) -> dict[str, str]:
    """What people wrote on each preset, by its name: the text under the heading of that name."""
    if not path.is_file():
        return {}
    pieces = re.split(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name.strip(): text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def section(name: str, outcomes: dict[str, Outcome], conclusion: str) -> str:
    """The part of a page on one preset: the command, the numbers, the verdict of each claim, and what users learn."""
    place = re.sub(r"(\d)", r" \1", name.partition("/")[2])
    if not outcomes:
        return f"### {place.capitalize()}\n\n`fedkin preset {name}`: no result is committed.\n"
    title = next(iter(outcomes.values()))["title"]
    parts = [f"### {place.capitalize()}: {title[0].lower() + title[1:]}\n"]
    if conclusion:
        parts.append(f"{conclusion}\n")
    for outcome in outcomes.values():
        spent = f"{outcome['runs']} runs, {outcome['seconds'] / 60:.0f} min of one core"
        parts.append(f"`{outcome['command']}` ({spent}). {readings(outcome)} {outcome['note']}\n")
        if outcome["claims"]:
            parts.append(claims_markdown(outcome))
        parts.append(markdown(table(outcome)))
        drawn = [picture_of(name, outcome["scale"], id) for id in drawn_ids(outcome)]
        parts += [f"![{name}, {outcome['scale']}](figures/{path.name})\n" for path in drawn if path.is_file()]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
