"""AdaFL's figure 3 and tables 1 and 3: who trains is decided by attention, how many by a schedule.

One common model is judged on the common test set.
"""

from collections.abc import Mapping
from dataclasses import replace

from fedkin.presets.adafl_rows import (
    ALONE,
    AVERAGE,
    BASES,
    BEST,
    COLUMNS,
    FULL_NOTE,
    SMALL_NOTE,
    SMALL_T,
    TABLE_1,
    TABLE_3,
    VARY,
    experiment,
)
from fedkin.presets.claims import Claim, Step, above, below
from fedkin.presets.preset import Cell, Curve, Preset
from fedkin.presets.readings import Reaches, Reading, Steadiness
from fedkin.runs.experiment import Experiment
from fedkin.select import Attention, Listed

LIFT = "Dyn-FedAvg less FedAvg-0.1"  # what the dynamic fraction adds alone
FIRST = "first 300 rounds"

# the tables


def accuracies(printed: Mapping[str, tuple[float, ...]], places: tuple[str, ...], scale: str) -> list[Cell]:
    found = []
    for row, values in printed.items():
        published = dict(zip(COLUMNS, values, strict=True))
        for place in places:
            for column, reading in ((f"{place} avg", AVERAGE), (f"{place} best", BEST)):
                found.append(Cell(row, column, experiment(row, place, scale), reading, published[column]))
    return found


def lifts(places: tuple[str, ...], scale: str) -> list[Cell]:
    """How much the dynamic fraction alone adds to FedAvg-0.1."""
    differences = [a - b for a, b in zip(TABLE_1["Dyn-FedAvg"], TABLE_1["FedAvg-0.1"], strict=True)]
    published = dict(zip(COLUMNS, (round(value, 2) for value in differences), strict=True))
    found = []
    for place in places:
        more, less = (experiment(row, place, scale) for row in ("Dyn-FedAvg", "FedAvg-0.1"))
        for column, reading in ((f"{place} avg", AVERAGE), (f"{place} best", BEST)):
            found.append(Cell(LIFT, column, more, reading, published[column], less=less))
    return found


def table1(scale: str = "full") -> Preset:
    """Table 1: what attention and the dynamic fraction each add to FedAvg."""
    places = ("MNIST", "CIFAR")
    average, best = [f"{place} avg" for place in places], [f"{place} best" for place in places]
    columns, few = [*average, *best], ["Attn-0.1", "FedAvg-0.1"]
    without = ["Dyn-FedAvg", "FedAvg-0.1", "FedAvg-0.5"]
    return Preset(
        name="adafl/table1",
        title="Test accuracy (%) of AdaFL, of its two ideas alone, and of FedAvg: mean of the last ten, and best",
        cells=(*accuracies(TABLE_1, places, scale), *lifts(places, scale)),
        claims=(
            Claim("AdaFL is above FedAvg with either fraction.", above("AdaFL", ["FedAvg-0.1", "FedAvg-0.5"], columns)),
            Claim(
                "Attention raises FedAvg at the same fraction.",
                above("Attn-0.1", "FedAvg-0.1", columns) + above("Attn-0.5", "FedAvg-0.5", columns),
            ),
            Claim(
                "Rows that end with many clients have the higher averages.",
                tuple(
                    step
                    for row in ("AdaFL", "Attn-0.5", "Dyn-FedAvg", "FedAvg-0.5")
                    for step in above(row, few, average)
                ),
            ),
            Claim(
                "The dynamic fraction raises the average, that is steadiness, and more so than the best.",
                above("Dyn-FedAvg", "FedAvg-0.1", average)
                + tuple(Step((LIFT, f"{place} avg"), (LIFT, f"{place} best")) for place in places),
            ),
            Claim(
                "Rows with attention have a higher best than all rows without.",
                tuple(step for row in ("AdaFL", "Attn-0.1", "Attn-0.5") for step in above(row, without, best)),
            ),
            Claim("Attention adds to the dynamic fraction.", above("AdaFL", "Dyn-FedAvg", columns), by="us"),
            Claim("AdaFL is above attention with all its clients.", above("AdaFL", "Attn-0.5", columns), by="us"),
        ),
        scale=scale,
        vary=VARY,
        note=(SMALL_NOTE if scale == "small" else FULL_NOTE) + ALONE,
    )


def table3(scale: str = "full") -> Preset:
    """Table 3: AdaFL in front of FedProx, FedMix and SCAFFOLD."""
    places = ("MNIST",) if scale == "small" else ("MNIST", "CIFAR")
    columns = [f"{place} {word}" for place in places for word in ("avg", "best")]
    return Preset(
        name="adafl/table3",
        title="Test accuracy (%) of FedProx, FedMix and SCAFFOLD with and without AdaFL: last ten rounds, and best",
        cells=tuple(accuracies(TABLE_3, places, scale)),
        claims=tuple(
            Claim(
                f"AdaFL raises {base} above both of its fractions.",
                above(f"AdaFL+{base}", [f"{base}-0.1", f"{base}-0.5"], columns),
            )
            for base in BASES
        ),
        scale=scale,
        vary=VARY,
        note=(SMALL_NOTE + "Without CIFAR. " if scale == "small" else FULL_NOTE) + ALONE,
    )


# the figure


def figure3(scale: str = "full") -> Preset:
    """Figure 3: AdaFL and FedAvg on MNIST over 500 rounds; at full scale also the first 300 of them alone."""
    small = scale == "small"
    rounds = SMALL_T["MNIST"] if small else 500
    rows = {
        row: replace(experiment(row, "MNIST", scale), rounds=rounds) for row in ("AdaFL", "FedAvg-0.1", "FedAvg-0.5")
    }
    readings: dict[str, Reading] = {"avg": AVERAGE, "best": BEST, "deviation": Steadiness("test")}
    cells = [Cell(row, column, run, reading) for row, run in rows.items() for column, reading in readings.items()]
    curves = [Curve(row, f"{rounds} rounds", run, AVERAGE) for row, run in rows.items()]
    claims = [
        Claim(
            "AdaFL is above FedAvg-0.5, and FedAvg-0.1.", above("AdaFL", ["FedAvg-0.1", "FedAvg-0.5"], ["avg", "best"])
        ),
        Claim("AdaFL is steadier than FedAvg-0.1.", below("AdaFL", "FedAvg-0.1", ["deviation"])),
        Claim("AdaFL is steadier than FedAvg-0.5 too.", below("AdaFL", "FedAvg-0.5", ["deviation"]), by="us"),
    ]
    if not small:
        beginning = first_rounds(rows)
        cells += [
            Cell(row, f"{FIRST}: {column}", run, reading)
            for row, run in beginning.items()
            for column, reading in (readings | first_targets()).items()
        ]
        curves += [Curve(row, FIRST, run, AVERAGE) for row, run in beginning.items()]
        claims += first_claims()
    return Preset(
        name="adafl/figure3",
        title="Test accuracy (%) of AdaFL and FedAvg on MNIST, and its standard deviation over the last 50 rounds",
        cells=tuple(cells),
        curves=tuple(curves),
        claims=tuple(claims),
        scale=scale,
        vary=VARY,
        note=(
            SMALL_NOTE
            if small
            else f"The columns '{FIRST}' are runs that end there, with AdaFL's fractions of T = 500. "
        )
        + "The figure prints no numbers.",
    )


def first_rounds(rows: dict[str, Experiment]) -> dict[str, Experiment]:
    """AdaFL and FedAvg-0.1 for 300 rounds, AdaFL with the fractions that it has in 500."""
    fractions = tuple(level for level in (0.1, 0.2, 0.3) for _ in range(100))
    ada, few = (replace(rows[row], rounds=300) for row in ("AdaFL", "FedAvg-0.1"))
    return {
        "AdaFL": replace(ada, method=replace(ada.method, select=Attention(0.9, Listed(fractions)))),
        "FedAvg-0.1": few,
    }


def first_targets() -> dict[str, Reading]:
    over = ("FedAvg-0.1", f"{FIRST}: avg")
    fixed: dict[str, Reading] = {f"cost to {target} %": Reaches(target, "client_rounds") for target in (90, 91)}
    return fixed | {"cost to own": Reaches(0.0, "client_rounds", over=over)}


def first_claims() -> list[Claim]:
    good, deviation = [f"{FIRST}: {word}" for word in ("avg", "best")], [f"{FIRST}: deviation"]
    costs = [f"{FIRST}: {word}" for word in first_targets()]
    return [
        Claim(f"AdaFL is above FedAvg-0.1 in the {FIRST}.", above("AdaFL", "FedAvg-0.1", good), by="us"),
        Claim(f"AdaFL is steadier than FedAvg-0.1 in the {FIRST}.", below("AdaFL", "FedAvg-0.1", deviation), by="us"),
        Claim(
            f"AdaFL reaches targets at less cost than FedAvg-0.1 in the {FIRST}.",
            below("AdaFL", "FedAvg-0.1", costs),
            by="us",
            missing="inf",
        ),
    ]
