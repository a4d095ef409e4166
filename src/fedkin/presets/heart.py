"""Four real hospitals: FLamby's Fed-Heart-Disease as it was published, and the same question on 30 random splits.

FLamby has one output and a sigmoid, `mlr` has two and a softmax. What decides is their difference, and a step moves it
twice as far. So FLamby's rate of 0.001 is 0.0005 here, and its mu of 0.01 is 0.02.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fedkin.data import Data
from fedkin.methods.apfl import apfl
from fedkin.methods.ditto import ditto
from fedkin.methods.fedacs import fedacs
from fedkin.methods.fedavg import fedavg
from fedkin.methods.fedmcsa import fedavg_mcsa, fedmcsa
from fedkin.methods.fedprox import fedprox
from fedkin.methods.local import local
from fedkin.methods.pooled import pooled
from fedkin.methods.scaffold import scaffold
from fedkin.parts import Method
from fedkin.presets.claims import Claim, above, positive
from fedkin.presets.preset import Cell, Preset
from fedkin.presets.readings import ClientScore, Reading, Score
from fedkin.runs.experiment import Experiment

HOSPITALS = ("Cleveland", "Hungary", "Switzerland", "V.A.")
MEAN = "mean"
OVERLAP = 0.34 / 0.66  # of the splits: test patients over training patients
COLUMNS = (*HOSPITALS, MEAN)
BOTH = ("Cleveland", "Hungary", "V.A.")  # hospitals with patients of both classes in every test part
ROUNDS, STEPS, BATCH, RATE = 15, 100, 4, 0.01
ALONE, COMMON, TUNED, POOLED = "Local", "FedAvg", "FedAvg, fine-tuned", "Pooled"
ACS, RECEIVED, MCSA = "FedACS p=.5", "FedACS p=.5, as received", "FedAvg+MCSA sigma 5"
SLOW = ", FLamby's rate"

PUBLISHED = {  # the hospitals and their mean, and the deviations over FLamby's five seeds
    ALONE: ((74.62, 74.61, 72.50, 70.22, 72.99), (1.61, 0.62, 12.18, 5.12, 2.87)),
    COMMON + SLOW: ((73.08, 71.91, 65.00, 64.00, 68.50), (2.15, 3.28, 11.35, 5.07, 2.83)),
    "FedProx" + SLOW: ((73.08, 71.91, 65.00, 64.00, 68.50), (2.15, 3.28, 11.35, 5.07, 2.83)),
    "SCAFFOLD" + SLOW: ((72.69, 71.91, 65.00, 64.00, 68.40), (1.87, 3.28, 11.35, 5.07, 2.80)),
    POOLED: ((78.27, 76.40, 75.00, 64.44, 73.53), (1.10, 0.00, 0.00, 0.00, 0.27)),
}
SEEDS = (
    "FLamby trains alone and pooled by Adam, 50 epochs at 0.001, which leaves the small hospitals far from trained; "
    "ours alone takes as many steps of SGD as a client of FedAvg, and pooled as many as the four together. FLamby's "
    "Scaffold weighs hospitals by size, ours alike. "
    "Rows without published numbers are ours. Seeds share one split, in which Switzerland has 16 test patients: a "
    "patient there is 6.25 points."
)
SPLITS = (
    "Split s is divided by the random state 43 + s; split 0 is FLamby's. All splits divide the same 740 patients and "
    "are not independent; verdicts are with Nadeau and Bengio's correction, by which the standard error of a mean over "
    "30 splits is four times as large."
)
Rows = dict[str, tuple[Method, str]]  # the method, and the kind of model that is scored


def trained(method: Method, rate: float = RATE) -> Method:
    """The method with FLamby's 100 updates of batch 4 a round."""
    changes = {"eta": rate, "steps": STEPS, "epochs": None, "batch": BATCH}
    return replace(method, train=replace(method.train, **changes))  # type: ignore[type-var]


def rows() -> Rows:
    """Every method with the same rate, batches and rounds; all four hospitals take part in every round."""
    n = len(HOSPITALS)
    acs = fedacs(p=0.5)
    common: Rows = {
        ALONE: (local(), "post"),
        COMMON: (fedavg(n), "global"),
        TUNED: (fedavg(n), "post"),
        "FedProx": (fedprox(lam=0.02, count=n), "global"),
        "SCAFFOLD": (scaffold(n), "global"),
    }
    personal: Rows = {
        ACS: (acs, "post"),
        RECEIVED: (acs, "recv"),
        "FedMCSA": (fedmcsa(count=n), "post"),
        MCSA: (fedavg_mcsa(sigma=5.0, count=n), "post"),
        "Ditto": (ditto(count=n), "post"),
        "APFL": (apfl(count=n), "post"),
    }
    together: Rows = {POOLED: (pooled(), "global")}
    return {row: (trained(method), kind) for row, (method, kind) in (common | together | personal).items()}


def slow_rows() -> Rows:
    """The methods with one common model, and training alone, at FLamby's rate."""
    chosen = (ALONE, COMMON, "FedProx", "SCAFFOLD", POOLED)
    return {row + SLOW: (trained(method, 0.0005), kind) for row, (method, kind) in rows().items() if row in chosen}


def experiment(method: Method) -> Experiment:
    return Experiment(method, Data("heart_flamby"), "mlr", ROUNDS, evaluate_every=5, threads=1)


def reading(column: str, kind: str) -> Reading:
    """The accuracy of a hospital, or the mean of the four."""
    return Score(kind, "macro", "last") if column == MEAN else ClientScore(HOSPITALS.index(column), kind)


def flamby(scale: str = "full") -> Preset:
    """FLamby's own split, five seeds."""
    cells = []
    for row, (method, kind) in (rows() | slow_rows()).items():
        printed, spread = PUBLISHED.get(row, ((None,) * len(COLUMNS),) * 2)
        for column, number, deviation in zip(COLUMNS, printed, spread, strict=True):
            cells.append(Cell(row, column, experiment(method), reading(column, kind), number, deviation))
    return Preset(
        name="heart/flamby",
        title="Accuracy (%) of four hospitals on FLamby's split, each on its own test patients",
        cells=tuple(cells),
        claims=(
            Claim(
                "FedAvg costs a hospital accuracy against staying alone, on average.",
                above(ALONE, COMMON + SLOW, [MEAN]),
            ),
            Claim("Pooled training is better than FedAvg, on average.", above(POOLED, COMMON + SLOW, [MEAN])),
            Claim(
                "Pooled training is better than FedAvg also at equal rates, FLamby's and 0.01.",
                above(POOLED + SLOW, COMMON + SLOW, [MEAN]) + above(POOLED, COMMON, [MEAN]),
                by="us",
            ),
            Claim(
                "FedAvg costs accuracy also with equal rates and numbers of updates, at FLamby's rate and at 0.01.",
                above(ALONE + SLOW, COMMON + SLOW, [MEAN]) + above(ALONE, COMMON, [MEAN]),
                by="us",
            ),
        ),
        scale=scale,
        seeds=5,
        note=SEEDS,
    )


def splits(scale: str = "full") -> Preset:
    """How much each method is above staying alone in accuracy, on the same random splits."""
    return Preset(
        name="heart/splits",
        title="Points of accuracy above each hospital alone, over random splits; Local is the zero",
        cells=gains(COLUMNS, reading),
        claims=(
            Claim("FedAvg costs a hospital accuracy against staying alone, on average.", above(ALONE, COMMON, [MEAN])),
            Claim("FedAvg costs accuracy in every hospital.", above(ALONE, COMMON, HOSPITALS), by="us"),
            Claim("FedAvg is worse than alone also when fine-tuned.", above(ALONE, TUNED, [MEAN]), by="us"),
            Claim("Pooling all patients is better than alone, on average.", positive(POOLED, [MEAN]), by="us"),
            Claim("FedACS with p=.5 is better than alone, on average.", positive(ACS, [MEAN]), by="us"),
            Claim("FedACS with p=.5 is better than alone in every hospital.", positive(ACS, HOSPITALS), by="us"),
            Claim(
                "FedACS with p=.5 is better than FedAvg, common or fine-tuned.",
                above(ACS, [COMMON, TUNED], [MEAN]),
                by="us",
            ),
            *(
                Claim(
                    f"{row} costs less than a point against staying alone, on average.",
                    positive(row, [MEAN], -1.0),
                    by="us",
                )
                for row in (ACS, MCSA, "APFL")
            ),
        ),
        scale=scale,
        seeds=repetitions(scale),
        vary=("split",),
        overlap=OVERLAP,
        note=SPLITS,
    )


def ranking(scale: str = "full") -> Preset:
    """The same runs by AUC. This was asked after `heart/splits` had been seen."""
    two = (HOSPITALS[0], HOSPITALS[1])
    return Preset(
        name="heart/ranking",
        title="Points of AUC above each hospital alone, over random splits; Local is the zero",
        cells=gains(BOTH, lambda column, kind: ClientScore(HOSPITALS.index(column), kind, "auc")),
        claims=(
            Claim("FedAvg ranks the patients of the V.A. better than alone.", positive(COMMON, BOTH[-1:]), by="us"),
            Claim(
                "FedAvg costs the two large hospitals less than a point of AUC.", positive(COMMON, two, -1.0), by="us"
            ),
            Claim(
                "FedAvg ranks those of the V.A. better than FedACS with p=.5.", above(COMMON, ACS, BOTH[-1:]), by="us"
            ),
            Claim("FedACS with p=.5 ranks better than alone, in all three.", positive(ACS, BOTH), by="us"),
        ),
        scale=scale,
        seeds=repetitions(scale),
        vary=("split",),
        overlap=OVERLAP,
        note="The runs of heart/splits. The AUC asks which patients are more likely ill and not where to draw the "
        "line, so that the share of ill patients does not count. Switzerland has none in most splits: one class is "
        "missing. " + SPLITS,
    )


def gains(columns: Sequence[str], read: Callable[[str, str], Reading]) -> tuple[Cell, ...]:
    """Every row less Local's model on the same split."""
    alone = experiment(trained(local()))
    return tuple(
        Cell(row, column, experiment(method), read(column, kind), less=alone, less_reading=read(column, "post"))
        for row, (method, kind) in rows().items()
        for column in columns
    )


def repetitions(scale: str) -> int:
    return 30 if scale == "full" else 10
