"""PFedRe's figures 1, 3, 4, 5 and 6. The paper prints curves and bars, and no numbers."""

from fedkin.presets.claims import Claim, Step, above, below, near, positive
from fedkin.presets.pfedre_rows import (
    BAD,
    HALF,
    OPEN,
    SKEWED,
    SMALL,
    TOLD,
    VARY,
    compared,
    filters,
    motivation,
    removals,
    settings,
)
from fedkin.presets.preset import Cell, Curve, Preset
from fedkin.presets.readings import Observed, Reading, Steadiness

SHARES = (10, 20, 30, 40)
FOUND: dict[str, Reading] = {name: Observed("filter", name, "last") for name in ("auc", "precision", "recall")}
LOSS = Observed("train", "relevant_loss", "last10")
SELECTING = ("FedAvg", "AFL", "S-FedAvg")  # what the paper compares with
ROBUST = ("Krum", "Multi-Krum", "Trimmed mean", "Median")
TEXT = "Shakespeare: 10 roles with at most 128 samples, an LSTM of 32 units, 15 rounds, 10 steps of inversion. "


def figure1(scale: str = "full") -> Preset:
    """Figure 1: FedAvg and FedProx on odd digits, with and without four clients that have even digits."""
    one, methods = motivation(scale)
    runs = {row: one.experiment(method, "odd_even:6,4") for row, method in methods.items()}
    readings: dict[str, Reading] = {"accuracy": one.accuracy, "deviation": Steadiness("test")}
    cells = [Cell(row, column, run, reading) for row, run in runs.items() for column, reading in readings.items()]
    pairs = [(row, f"{row} without") for row in ("FedAvg", "FedProx")]
    return Preset(
        name="pfedre/figure1",
        title="Test accuracy (%) on odd digits with and without irrelevant clients, and its deviation over 50 rounds",
        cells=tuple(cells),
        curves=tuple(Curve(row, "odd digits", run, one.accuracy) for row, run in runs.items()),
        claims=(
            Claim(
                "Irrelevant clients lower the accuracy of FedAvg and FedProx.",
                tuple(Step((clean, "accuracy"), (row, "accuracy")) for row, clean in pairs),
            ),
            Claim(
                "Irrelevant clients make training unsteady.",
                tuple(Step((row, "deviation"), (clean, "deviation")) for row, clean in pairs),
            ),
            Claim("PFedRe is above FedAvg.", above("PFedRe", "FedAvg", ["accuracy"]), by="us"),
            Claim(
                "PFedRe is within half a point of FedAvg without irrelevant clients.",
                near(("PFedRe", "accuracy"), ("FedAvg without", "accuracy"), 0.5),
                by="us",
            ),
        ),
        scale=scale,
        vary=VARY,
        note=OPEN
        + "In rows 'without' the updates of irrelevant clients do not count. The figure's model is not given. "
        + (
            "Made small: 500 images a client, multinomial logistic regression, 100 rounds. " if scale == "small" else ""
        ),
    )


def figure3(scale: str = "full") -> Preset:
    """Figure 3: whether scores tell clients with flipped labels from the others, for 10 to 40 % of such clients."""
    paper = {name: one for name, one in settings(scale, text=False).items() if name != "CIFAR100"}
    chosen = paper | (SKEWED if scale == "small" else {})
    cells = [
        Cell(row, f"{name} {share} %: {word}", one.experiment(method, f"flip:{share / 100:g}"), reading)
        for name, one in chosen.items()
        for share in SHARES
        for row, method in filters(one).items()
        for word, reading in FOUND.items()
    ]
    columns = {word: [f"{name} {share} %: {word}" for name in paper for share in SHARES] for word in FOUND}
    skewed = [f"{name} {share} %: auc" for name in chosen if name not in paper for share in SHARES]
    controls = [
        Claim(
            f"{row} separates as well without inversion: AUC at most 0.02 lower.",
            above(row, "PFedRe", [*columns["auc"], *skewed], margin=-0.02),
            by="us",
        )
        for row in ("L1 of updates", "Alignment")
    ]
    few = Claim(
        "PFedRe's AUC is above 0.9 where clients have few classes each.", positive("PFedRe", skewed, 0.9), by="us"
    )
    ours = [few, *controls] if skewed else controls
    return Preset(
        name="pfedre/figure3",
        title="How well scores find the clients with flipped labels, in the last round",
        cells=tuple(cells),
        claims=(
            Claim(
                "PFedRe's scores of relevant clients are lower: AUC above 0.9 for every share.",
                positive("PFedRe", columns["auc"], 0.9),
            ),
            Claim(
                "PFedRe leaves out the irrelevant clients, and only them: precision and recall above 0.9.",
                positive("PFedRe", [*columns["precision"], *columns["recall"]], 0.9),
            ),
            *ours,
        ),
        scale=scale,
        vary=VARY,
        note=OPEN
        + "L1 of updates and Alignment are our controls. "
        + (SMALL + "MNIST skewed is ours too: Dirichlet(0.1). " if scale == "small" else ""),
    )


def figure4(scale: str = "full") -> Preset:
    """Figure 4: test accuracy where a tenth of the clients have samples out of distribution."""
    chosen = settings(scale)
    runs = {
        (row, name): (one.experiment(method, f"ood:{BAD}"), one.accuracy)
        for name, one in chosen.items()
        for row, method in compared(one).items()
    }
    columns = list(chosen)
    return Preset(
        name="pfedre/figure4",
        title="Test accuracy (%), mean of the last ten rounds, with out-of-distribution samples at 10 % of the clients",
        cells=tuple(Cell(*place, *run) for place, run in runs.items()),
        curves=tuple(Curve(*place, *run) for place, run in runs.items()),
        claims=(
            Claim("PFedRe is above FedAvg, S-FedAvg and AFL.", above("PFedRe", SELECTING, columns)),
            Claim("AFL comes next: it is above FedAvg and S-FedAvg.", above("AFL", ["FedAvg", "S-FedAvg"], columns)),
            Claim("AFL is above FedAvg that draws half at random.", above("AFL", "FedAvg, half", columns), by="us"),
            Claim("PFedRe is above FedProx.", above("PFedRe", "FedProx", columns), by="us"),
            Claim("PFedRe is above robust means.", above("PFedRe", ROBUST, columns), by="us"),
            Claim(
                "PFedRe is at most half a point below the oracle.",
                above("PFedRe", "Oracle", columns, margin=-0.5),
                by="us",
            ),
        ),
        scale=scale,
        vary=VARY,
        note=OPEN
        + "Samples out of distribution are another dataset's images, or texts with their characters in another order. "
        + HALF
        + TOLD
        + (SMALL + TEXT if scale == "small" else ""),
    )


def figure5(scale: str = "full") -> Preset:
    """Figure 5: training loss of the relevant clients where a tenth of the clients have flipped labels."""
    chosen = settings(scale, text=scale == "full")
    rows = ("PFedRe", *SELECTING, "FedProx", "FedAvg, half", "Oracle")
    runs = {
        (row, name): one.experiment(compared(one)[row], f"flip:{BAD}") for name, one in chosen.items() for row in rows
    }
    columns = list(chosen)
    return Preset(
        name="pfedre/figure5",
        title="Training loss of the relevant clients, mean of the last ten rounds, labels flipped at 10 % of clients",
        cells=tuple(Cell(*place, run, LOSS) for place, run in runs.items()),
        curves=tuple(Curve(*place, run, LOSS) for place, run in runs.items()),
        claims=(
            Claim("PFedRe has a lower loss than FedAvg, S-FedAvg and AFL.", below("PFedRe", SELECTING, columns)),
            Claim("PFedRe has a lower loss than FedProx.", below("PFedRe", "FedProx", columns), by="us"),
            Claim(
                "PFedRe's loss is at most 0.01 above the oracle's.",
                below("PFedRe", "Oracle", columns, margin=-0.01),
                by="us",
            ),
        ),
        scale=scale,
        vary=VARY,
        note=OPEN
        + "The loss is that of the common model on the relevant clients' samples: flipped labels would pollute it. "
        + HALF
        + (SMALL if scale == "small" else ""),
    )


def figure6(scale: str = "full") -> Preset:
    """Figure 6: PFedRe that keeps all clients, or drops those that were found irrelevant, or relevant."""
    small = scale == "small"
    after, rounds = (20, 40) if small else (10_000, 20_000)
    chosen = {name: one for name, one in settings(scale, text=False).items() if small or name == "EMNIST"}
    runs = {
        (row, name): (one.experiment(method, f"flip:{BAD},0.2", rounds), one.accuracy)
        for name, one in chosen.items()
        for row, method in removals(one, after).items()
    }
    columns = list(chosen)
    return Preset(
        name="pfedre/figure6",
        title=f"Test accuracy (%) of PFedRe that drops clients after {after:,} rounds, mean of the last ten rounds",
        cells=tuple(Cell(*place, *run) for place, run in runs.items()),
        curves=tuple(Curve(*place, *run) for place, run in runs.items()),
        claims=(
            Claim("To drop the irrelevant clients helps.", above("drop irrelevant", "keep all", columns)),
            Claim("To drop the relevant clients hurts.", above("keep all", "drop relevant", columns)),
            Claim(
                "To drop the irrelevant clients changes less than half a point: the filter leaves them out anyway.",
                tuple(s for c in columns for s in near(("drop irrelevant", c), ("keep all", c), 0.5)),
                by="us",
            ),
        ),
        scale=scale,
        vary=VARY,
        note=OPEN
        + "A tenth of the clients have 20 % of their labels flipped. How long training goes on is not given. "
        + (SMALL + "Here 40 rounds: 20 of watching in place of 10,000, and 20 more. " if small else ""),
    )
