"""The federation of an experiment as settings are chosen by it: without test samples."""

from __future__ import annotations

from fedkin.comparison.plan import Loaded
from fedkin.data.federation import Federation
from fedkin.runs.experiment import Experiment
from fedkin.runs.validation import validating


class Validated(Loaded):
    """As `Loaded`, with the validation samples where the test samples were."""

    def __init__(self) -> None:
        super().__init__()
        self.whole: Federation | None = None
        self.made: Federation | None = None

    def __call__(self, experiment: Experiment) -> Federation:
        whole = super().__call__(experiment)
        if self.made is None or self.whole is not whole:
            self.whole, self.made = whole, validating(whole)
        return self.made
