"""kin: each client is judged by a mixture of what it could have, weighed by samples that it held out (ours).

Round:
    select       `count` clients uniformly, or as `base` selects
    train        the common model, a model alone, one that starts at a mixture of its kin's, and shadows of all three
                 without some samples; then the experts' weights
    keep         whose update counts, as in `base`
    collaborate  the mean of the models and shadows by size, a mixture for each client of its kin's, and the mean of the
                 weights, which is the next prior

`kin_light` holds out one fold in five and mixes with nobody: four models are trained in place of twelve.
`fedavg_prior` is one of its experts by itself: FedAvg's common model times the client's label shares.
`fedavg_calibrated` also trains with these shares in the loss.
"""

from dataclasses import replace

from fedkin.collaborate import Mean, MeanOfExperts
from fedkin.errors import require
from fedkin.keep import Everyone
from fedkin.methods.fedavg import fedavg
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Calibrated, Experts, LabelShares


def kin(
    count: int = 20,
    eta: float = 0.02,
    steps: int | None = 20,
    epochs: int | None = None,
    folds: int = 3,
    crossed: int | None = None,
    mixture: bool = True,
    base: Method | None = None,
) -> Method:
    """`crossed` of the `folds` are held out, each from shadows of its own; None: all of them. `mixture`: whether one of
    the experts is a client's mixture with its kin."""
    method = fedavg(count, eta, steps, epochs) if base is None else base
    plain = type(method.collaborate) is Mean
    require(plain, f"kin goes with methods whose server takes the mean of models, which '{method.name}' does not.")
    held = folds if crossed is None else crossed
    train = Experts(**method.train.alone(), folds=folds, crossed=held)
    server = MeanOfExperts(**method.collaborate.values(), crossed=held)
    return replace(
        method,
        name="kin" if base is None else f"kin_{base.name}",
        train=train if mixture else replace(train, experts=("alone", "tuned", "common", "shares")),
        collaborate=server if mixture else replace(server, kin=None),
    )


def kin_light(count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    return replace(kin(count, eta, steps, epochs, folds=5, crossed=1, mixture=False), name="kin_light")


def fedavg_prior(
    count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None, added: float = 10.0
) -> Method:
    return Method(
        name="fedavg_prior",
        select=Uniform(count=count),
        train=LabelShares(eta=eta, steps=None if epochs else steps, epochs=epochs, added=added),
        keep=Everyone(),
        collaborate=Mean(),
    )


def fedavg_calibrated(
    count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None, added: float = 10.0
) -> Method:
    base = fedavg_prior(count, eta, steps, epochs, added)
    return replace(base, name="fedavg_calibrated", train=Calibrated(**base.train.values()))
