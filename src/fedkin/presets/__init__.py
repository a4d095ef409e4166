"""Tables and figures of the papers, one command each: a function each, with the published numbers in its cells."""

from collections.abc import Callable

from fedkin.errors import unknown
from fedkin.presets import adafl, adafl_costs, fedacs, fedmcsa, fedmcsa_standardised, fedmcsa_tuned, heart, pfedre
from fedkin.presets.claims import Claim
from fedkin.presets.preset import SCALES, Cell, Curve, Preset

PRESETS: dict[str, Callable[[str], Preset]] = {
    "fedacs/table1": fedacs.table1,
    "fedacs/figure1a": fedacs.figure1a,
    "fedacs/figure1b": fedacs.figure1b,
    "fedacs/table2": fedacs.table2,
    "adafl/figure3": adafl.figure3,
    "adafl/table1": adafl.table1,
    "adafl/table2": adafl_costs.table2,
    "adafl/table3": adafl.table3,
    "adafl/table4": adafl_costs.table4,
    "fedmcsa/figure3": fedmcsa.figure3,
    "fedmcsa/figure4": fedmcsa.figure4,
    "fedmcsa/figure5": fedmcsa.figure5,
    "fedmcsa/figure5_standardised": fedmcsa_standardised.figure5,
    "fedmcsa/table1": fedmcsa_tuned.table1,
    "fedmcsa/table2": fedmcsa.table2,
    "pfedre/figure1": pfedre.figure1,
    "pfedre/figure3": pfedre.figure3,
    "pfedre/figure4": pfedre.figure4,
    "pfedre/figure5": pfedre.figure5,
    "pfedre/figure6": pfedre.figure6,
    "heart/flamby": heart.flamby,
    "heart/ranking": heart.ranking,
    "heart/splits": heart.splits,
}

__all__ = ["PRESETS", "SCALES", "Cell", "Claim", "Curve", "Preset", "named"]


def named(name: str, scale: str = "small") -> Preset:
    """The preset of this name at this scale."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    return PRESETS[name](scale)
