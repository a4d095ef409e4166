"""What `ranking.py` plays: six federations, the methods with the same work a round, and kin without its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import fedkin as fk
from fedkin.data.federation import Federation
from fedkin.parts import Method
from fedkin.select import Uniform

EPOCHS = {"eta": 0.025, "steps": None, "epochs": 5, "batch": 25}
STEPS = {"eta": 0.025, "steps": 20, "epochs": None, "batch": 20}


@dataclass(frozen=True)
class Setting:
    """A federation, its network and what all methods have alike: rounds, and how much a client trains in one.

    All clients take part in every round, so that training alone has the same budget as anything else.
    """

    data: fk.Data
    network: str
    rounds: int
    work: dict[str, Any]
    seconds: float  # that FedAvg takes here on one core
    ablations: bool = False
    groups: int = 1  # of clients that call the classes by names of their own

    def on(self, seed: int) -> fk.Data:
        return replace(self.data, seed=seed)


@lru_cache(maxsize=3)
def loaded(data: fk.Data, groups: int = 1) -> Federation:
    return grouped(fk.data.load(data), groups)


def grouped(federation: Federation, groups: int) -> Federation:
    """The federation with client i in group i mod `groups`, which shifts every label by three times its number.

    Clients of two groups contradict each other, and nobody is told who is in which.
    """
    if groups == 1:
        return federation
    y = federation.y.clone()
    for split in filter(None, (federation.train, federation.test, federation.validation)):
        for client in range(federation.n):
            rows = split.rows[int(split.start[client]) : int(split.start[client + 1])]
            y[rows] = (federation.y[rows] + 3 * (client % groups)) % federation.classes
    return replace(federation, y=y, common=None)  # no model is right on a test set of everybody's


def fashion(alpha: float, groups: int = 1) -> Setting:
    data = fk.Data("fashion_mnist", partition=f"dirichlet:{alpha}", clients=100, samples=50)
    return Setting(data, "dnn:100", 20, EPOCHS, 5.5, ablations=alpha == 0.1 or groups > 1, groups=groups)


FEDERATIONS = {
    "Fashion-MNIST .1": fashion(0.1),
    "Fashion-MNIST .5": fashion(0.5),
    "synthetic": Setting(fk.Data("synthetic", clients=100), "mlr", 100, STEPS, 1.3, ablations=True),
    "heart": Setting(fk.Data("heart"), "mlr", 100, STEPS, 0.4),
    "MNIST": Setting(fk.Data("mnist", partition="pfedme", clients=20), "dnn:100", 40, STEPS, 3.5),
    "hidden groups": fashion(0.5, groups=4),
}
QUICK = {"digits": Setting(fk.Data("digits", clients=5), "dnn:5", 2, STEPS, 0.1, ablations=True)}

LAYERED = ("pfedsim", "fedper", "fedrep", "fedbabu", "lgfedavg")  # a network of one layer has no head and body
METHODS = (
    "local",
    "fedavg",
    "fedavg_prior",
    "kin",
    "fedacs",
    "fedmcsa",
    "fedamp",
    "pfedgraph",
    "feddwa",
    "cfl",
    "ifca",
    "fedfomo",
    "fedala",
    "ditto",
    "apfl",
    *LAYERED,
    "kin1",
)
ABLATIONS: dict[str, dict[str, Any]] = {  # what of kin's client is taken away
    "kin without alone": {"experts": ("tuned", "kin", "common", "shares"), "guard": None},  # which would bring it back
    "kin without tuned": {"experts": ("alone", "kin", "common", "shares")},
    "kin without kin": {"experts": ("alone", "tuned", "common", "shares")},
    "kin without common": {"experts": ("alone", "tuned", "kin", "shares")},
    "kin without shares": {"experts": ("alone", "tuned", "kin", "common")},
    "kin without prior": {"strength": 0.0},
    "kin without guard": {"guard": None},
}
COSTS = {
    "kin": 13.0,
    "kin1": 3.8,
    "apfl": 2.4,
    "ditto": 2.0,
    "fedmcsa": 1.6,
    "fedamp": 1.6,
    "ifca": 1.3,
    "fedfomo": 2.0,
    "fedala": 2.0,
}


def plays(method: str, setting: Setting) -> bool:
    """Whether a method can play with this network."""
    return setting.network != "mlr" or method not in LAYERED


def of_trial(method: str) -> str:
    """Which method was tuned for this one: kin for those that are kin but for a part that is left out."""
    return "kin" if method in ABLATIONS else method


def made(name: str, setting: Setting) -> Method:
    """A method with the work of the federation, and what its paper says of all else.

    kin1 is the light kin: one fold in five is held out, and nobody mixes with kin. CFL may split clusters after a fifth
    of the rounds (its code: after 20).
    """
    method = fk.methods.kin_light() if name == "kin1" else fk.methods.named(of_trial(name))
    found = replace(method, select=Uniform(fraction=1.0), train=replace(method.train, **setting.work))
    if name == "cfl":
        return replace(found, collaborate=replace(found.collaborate, first=max(1, setting.rounds // 5)))
    return found


def shorter(name: str, method: Method) -> Method:
    """kin without what an ablation takes away; any other method as it is."""
    changes = ABLATIONS.get(name)
    if changes is None:
        return method
    server = replace(method.collaborate, kin=None) if name == "kin without kin" else method.collaborate  # type: ignore[call-arg]
    return replace(method, name=name, train=replace(method.train, **changes), collaborate=server)


def cost(method: str, setting: Setting) -> float:
    """About how many seconds a run takes on one core. Small networks make what kin does at a round's end dear."""
    dear = 1.7 if method.startswith("kin") and setting.network == "mlr" else 1.0
    return setting.seconds * COSTS.get("kin" if method in ABLATIONS else method, 1.0) * dear
