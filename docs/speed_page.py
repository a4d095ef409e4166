"""Writes the committed measurements of speed into docs/speed.md, and their picture beside it: `make speed`.

The measurements lie in docs/results/speed, one line each; of every row the newest one counts. The page is written by
people but for what stands between two marks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from speed_picture import picture

HERE = Path(__file__).parent
RESULTS, PAGE, PICTURE = HERE / "results" / "speed", HERE / "speed.md", HERE / "speed.svg"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
SOURCE = "Made from [docs/results/speed](results/speed) by `make speed`; do not edit by hand."
BUSY = 0.5  # cores that did other work when a measurement began, above which it says little
LOAD = 1.5  # the same for older measurements, which know the load of the minute before only
Line = dict[str, Any]
Rows = dict[str, Any]


def main() -> None:
    """Write the page and its picture."""
    for path, text in made(RESULTS, PAGE).items():
        path.write_text(text, encoding="utf-8")
        print(f"{path} is made from the committed measurements.")


def made(results: Path, page: Path) -> dict[Path, str]:
    """Return the text of the page and of its picture."""
    lines = history(results)
    before, mark, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        sys.exit(f"{page} has no place for measurements: a line {BEGIN} and a line {END}.")
    sections = (steps, limits, parts, rounds, runs, scale, peers)
    text = "\n".join(part for part in (section(lines) for section in sections) if part)
    rows = newest(lines, "rows")
    return {
        page: f"{before}{BEGIN}\n{SOURCE}\n\n{text}{END}{after}",
        page.with_suffix(".svg"): picture({name: row for name, (row, _) in rows.items()}),
    }


def history(results: Path) -> list[Line]:
    """Return every committed measurement, the oldest first."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(results.glob("*.jsonl"))]
    return sorted((json.loads(line) for text in texts for line in text.splitlines()), key=lambda line: line["date"])


def newest(lines: list[Line], section: str) -> dict[str, tuple[Any, Line]]:
    """Return the newest measurement of every row of a section, and the line it is from."""
    return {name: (row, line) for line in lines for name, row in line.get(section, {}).items()}


def circumstances(found: dict[str, tuple[Any, Line]]) -> str:
    """Return when and on what some rows were measured, in sentences."""
    said = []
    for line in sorted({id(line): line for _, line in found.values()}.values(), key=lambda line: line["date"]):
        versions = ", ".join(f"{name} {version}" for name, version in line["versions"].items())
        when = f"Measured on {line['date'][:10]}, {line['cpu']}, {line['cores']} cores, {versions}."
        said.append(when + quietness(line))
    return " ".join(said) + "\n"


def quietness(line: Line) -> str:
    """Return in a sentence what else the machine did when a measurement began."""
    known = "busy" in line
    what = f"{line['busy']} cores just before" if known else f"load {line['load']} in the minute before"
    quiet = line["busy"] <= BUSY if known else line["load"] <= LOAD
    return (
        f" Other work: {what}." if quiet else f" The machine was busy with other work ({what}): the numbers say little."
    )


def table(titles: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown, numbers to the right."""
    lines = ["| " + " | ".join(row) + " |" for row in [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]]
    return "\n".join(lines) + "\n"


def number(value: float | None) -> str:
    """Return a number with three digits that count."""
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def ratio(row: Rows, side: str) -> str:
    """Return a ratio, bold where it reaches what is wanted."""
    text = f"{number(row[f'{side}_ratio'])}x"
    return f"**{text}**" if row[f"{side}_ratio"] >= row[f"{side}_wanted"] else text


def compared(name: str, row: Rows) -> list[str]:
    """Return the cells of a row that was measured against a loop."""
    one = [number(row["one_us"]), ratio(row, "one"), f"{number(row['one_wanted'])}x"]
    two = [number(row["all_us"]), ratio(row, "all"), f"{number(row['all_wanted'])}x"]
    return [name, number(row["loop_us"]), *one, *two, number(row["all_over_one"])]


COMPARED = ["µs a step of one client", "loop", "one core", "ratio", "wanted", "two cores", "ratio", "wanted", "two/one"]


def steps(lines: list[Line]) -> str:
    """Plain SGD against a bare loop, and against the arithmetic of a step."""
    found = newest(lines, "rows")
    if not found:
        return ""
    cells = [
        [*compared(name, row), number(row["limit_us"]), f"{row['share_of_limit']:.0%}", number(row["products_us"])]
        for name, (row, _) in found.items()
    ]
    drawn = "![How many times as fast as a bare loop, on one core and on two](speed.svg)\n"
    titles = [*COMPARED, "limit", "share of the limit", "products"]
    return f"## Steps of plain SGD\n\n{drawn}\n{table(titles, cells)}\n{circumstances(found)}"


def limits(lines: list[Line]) -> str:
    """What the hardware allows, for every row that misses its number."""
    found = newest(lines, "rows")
    cells = [
        missed(name, row, side, cores)
        for name, (row, _) in found.items()
        for side, cores in (("one", 1), ("all", row["cores"]))
        if row[f"{side}_ratio"] < row[f"{side}_wanted"]
    ]
    if not cells:
        return ""
    speeds = [row["multiply_adds_a_second"] for row, _ in found.values()]
    fastest = ", ".join(f"{max(one[way] for one in speeds) / 1e9:.0f} by {way}" for way in speeds[0])
    words = (
        f"The rows that miss their number. One core does at most so many billion multiply-adds a second: {fastest}.\n"
    )
    titles = [
        "µs a step of one client",
        "cores",
        "wanted",
        "reached",
        "multiply-adds, million",
        "limit",
        "products",
        "",
    ]
    return f"### What the hardware allows\n\n{words}\n{table(titles, cells)}"


def missed(name: str, row: Rows, side: str, cores: int) -> list[str]:
    """Say what would have to be done in which time, and whether that is possible."""
    wanted, limit = row["loop_us"] / row[f"{side}_wanted"], row["limit_us"] / cores
    products = None if row["products_us"] is None else row["products_us"] / cores
    if wanted < limit:
        said = "out of reach: the arithmetic alone takes longer"
    elif products is not None and wanted < products:
        said = "out of reach with these products, which alone take longer"
    else:
        said = "the arithmetic allows it"
    work = number(row["multiply_adds"] / 1e6)
    reached = number(row[f"{side}_us"])
    return [name, str(cores), number(wanted), reached, work, number(limit), number(products), said]


def parts(lines: list[Line]) -> str:
    """Other parts against loops of their own."""
    found = newest(lines, "parts")
    if not found:
        return ""
    words = "Wanted: 70 % of the ratio that plain SGD had in the same run. One step of Moreau is five gradients.\n"
    rows = [compared(name, row) for name, (row, _) in found.items()]
    return f"## Other parts\n\n{table(COMPARED, rows)}\n{words}\n{circumstances(found)}"


def rounds(lines: list[Line]) -> str:
    """Whole rounds against their training."""
    found = newest(lines, "round")
    if not found:
        return ""
    keys = ("round_ms", "train_ms", "steps_ms", "record_ms")
    rows = [
        [name, *(number(row[key]) for key in keys), f"{row['ratio']:.2f}", f"{row['ratio_to_steps']:.2f}"]
        for name, (row, _) in found.items()
    ]
    titles = ["ms a round", "whole", "training", "its steps", "record", "whole/training", "whole/steps"]
    return f"## Whole rounds\n\n{table(titles, rows)}\n{circumstances(found)}"


def runs(lines: list[Line]) -> str:
    """What takes seconds."""
    found = newest(lines, "runs")
    if not found:
        return ""
    rows = [[name, number(row["seconds"]), f"< {row['wanted']:g}"] for name, (row, _) in found.items()]
    return f"## Runs\n\n{table(['on one core', 'seconds', 'wanted'], rows)}\n{circumstances(found)}"


def scale(lines: list[Line]) -> str:
    """How the seconds of a round grow."""
    found = newest(lines, "scale")
    if not found:
        return ""
    words = {"clients": "clients in the round", "model": "parameters of the model", "cores": "cores"}
    rows = []
    for name, (row, _) in found.items():
        took = ", ".join(f"{int(size):,}: {number(seconds)}" for size, seconds in row["seconds"].items())
        rows.append([words[name], took, "" if row["exponent"] is None else f"{row['exponent']:.2f}"])
    text = table(["by", "seconds of a FedAvg round", "exponent"], rows)
    return f"## Scale\n\n{text}\n{circumstances(found)}"


def peers(lines: list[Line]) -> str:
    """A whole round in other frameworks."""
    found = newest(lines, "peers")
    if not found:
        return ""
    ours = ("fedkin, one core", "fedkin, two cores")
    rows = []
    for name, (row, _) in found.items():
        times = [f"{number(row[one])}x" if one in row else "" for one in ours]
        wanted = [f" (wanted {row[f'{one}, wanted']:g}x)" if f"{one}, wanted" in row else "" for one in ours]
        cells = [a + b for a, b in zip(times, wanted, strict=True)]
        rows.append([name, row["version"], f"{row['seconds']:.4f}", *cells, f"{row['loss']:.3f}"])
    titles = [
        "a round of FedAvg",
        "version",
        "seconds",
        *(f"times as long as {one}" for one in ours),
        "loss at the end",
    ]
    return f"## Other frameworks\n\n{table(titles, rows)}\n{circumstances(found)}"


if __name__ == "__main__":
    main()
