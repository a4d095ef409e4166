"""Tables and figures of the papers, one command away: a function each, with the published numbers beside its rows."""

from fedkin.errors import unknown
from fedkin.presets.adafl import reduced_mnist, table1_mnist
from fedkin.presets.preset import Preset, Target

PRESETS: dict[str, Preset] = {preset.name: preset for preset in (table1_mnist(), reduced_mnist())}

__all__ = ["PRESETS", "Preset", "Target", "named", "reduced_mnist", "table1_mnist"]


def named(name: str) -> Preset:
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
