"""FedMCSA's figure 5 again, with similarities in deviations of their own (ours): does one sigma fit all networks?"""

from dataclasses import replace
from typing import Any

from fedkin.collaborate import ComponentAttention
from fedkin.methods.fedmcsa import fedavg_mcsa
from fedkin.methods.local import local
from fedkin.parts import Method
from fedkin.presets.claims import Claim, Step, near
from fedkin.presets.fedmcsa import PERSONAL, experiment, length
from fedkin.presets.preset import Cell, Curve, Preset

SIGMAS = (0.5, 1, 2, 5, 20, 50)
COMPARED: dict[str, dict[str, Any]] = {
    "models": {},
    "updates": {"similarity": "update"},
    "models, standardised": {"standardise": True},
    "updates, standardised": {"similarity": "update", "standardise": True},
}


def attention(compared: str, sigma: float) -> Method:
    """FedAvg with attention, no proximal term: what is compared, and how sharply."""
    return replace(fedavg_mcsa(), collaborate=ComponentAttention(sigma=sigma, **COMPARED[compared]))


def figure5(scale: str = "full") -> Preset:
    """Accuracy on Synthetic for several sigma, MLR and DNN, by what is compared and whether it is standardised."""
    rounds, shorter = length(scale)
    columns = [f"sigma {sigma}" for sigma in SIGMAS]
    cells, curves = [], []
    for model in ("MLR", "DNN"):
        place = f"Syn {model}"
        for compared in COMPARED:
            for sigma, column in zip(SIGMAS, columns, strict=True):
                one = experiment(attention(compared, float(sigma)), place, rounds)
                cells.append(Cell(f"{model}, {compared}", column, one, PERSONAL))
                if compared == "updates, standardised":
                    curves.append(Curve(column, model, one, PERSONAL))
        alone = experiment(local(), place, rounds)
        cells.extend(Cell(f"Local {model}", column, alone, PERSONAL) for column in columns)
    plain = [f"{model}, {what}" for model in ("MLR", "DNN") for what in ("models", "updates")]
    ours = [f"{row}, standardised" for row in plain]
    return Preset(
        name="fedmcsa/figure5_standardised",
        title="Accuracy (%) of FedAvg with attention on Synthetic for several sigma, with similarities as they are and "
        "in deviations of their own",
        cells=tuple(cells),
        curves=tuple(curves),
        claims=(
            Claim(
                "As they are, similarities of models need a sigma of their own: 1 is within 0.5 points of 5.",
                tuple(step for row in plain[::2] for step in near((row, "sigma 1"), (row, "sigma 5"), 0.5)),
                by="us",
            ),
            Claim(
                "As they are, similarities of updates end at training alone: sigma 50 is within 0.5 points of Local.",
                tuple(
                    step
                    for row, model in zip(plain[1::2], ("MLR", "DNN"), strict=True)
                    for step in near((row, "sigma 50"), (f"Local {model}", "sigma 50"), 0.5)
                ),
                by="us",
            ),
            Claim(
                "In deviations, sigma 2 is above sigma 0.5, whatever the network and whatever is compared.",
                tuple(Step((row, "sigma 2"), (row, "sigma 0.5")) for row in ours),
                by="us",
            ),
            Claim(
                "In deviations, sigma 5 is at the limit: within 0.5 points of sigma 50.",
                tuple(step for row in ours for step in near((row, "sigma 5"), (row, "sigma 50"), 0.5)),
                by="us",
            ),
        ),
        scale=scale,
        axis="sigma",
        note=shorter
        + "Ours, with no published numbers. In deviations a client counts for itself as its most similar client does, "
        "so that a large sigma means both of them in equal parts, not training alone.",
    )
