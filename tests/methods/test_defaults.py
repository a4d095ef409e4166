"""What every named method is by default: the parts and the numbers of its paper."""

from __future__ import annotations

from typing import Any

import pytest

import fedkin as fk
from fedkin.collaborate import (
    Ahead,
    Bipartition,
    ClassifierSimilarity,
    CollaborationGraph,
    ComponentAttention,
    Control,
    HeuristicMessagePassing,
    Mean,
    MeanBefore,
    MeanOfExperts,
    MessagePassing,
    Nothing,
    Offers,
    Several,
    Shared,
    SimilarityThreshold,
)
from fedkin.collaborate.median import Median
from fedkin.collaborate.trimmed_mean import TrimmedMean
from fedkin.keep import Alignment, Everyone, Oracle, Robust
from fedkin.keep.krum import Krum, MultiKrum
from fedkin.keep.relevance import Relevance
from fedkin.parts import Method
from fedkin.select import Active, Attention, Constant, Shapley, Steps, Uniform
from fedkin.train import (
    APFL,
    MAML,
    SGD,
    Aligned,
    Blending,
    Calibrated,
    Choosing,
    Experts,
    FedMix,
    HeadThenBody,
    LabelShares,
    MixingItself,
    Moreau,
    Pooled,
    Prox,
    Scaffold,
    TwoStreams,
)

TWENTY, ALL = Uniform(count=20), Uniform(fraction=1.0)
PLAIN = SGD(eta=0.02, steps=20, epochs=None, batch=20, momentum=0.0, weight_decay=0.0, rate_decay=1.0, gamma=0.0)
WORK: dict[str, Any] = {"steps": 20, "batch": 20}
PROX = Prox(eta=0.02, **WORK, lam=5.0, start="sent")
MOREAU = Moreau(eta=0.005, **WORK, eta_p=0.01, lam=20.0, K=5)
BETA = TwoStreams(eta=0.05, steps=None, epochs=1, batch=32, lam=0.0, eta_v=None, batches="same", restart=False)
LAYERS = ComponentAttention(50.0, "layer", False)
PARTS: dict[str, tuple[Any, ...]] = {  # select, train, keep, collaborate, and who trains and receives
    "local": (ALL, PLAIN, Everyone(), Nothing()),
    "local_matched": (TWENTY, PLAIN, Everyone(), Nothing()),
    "pooled": (ALL, Pooled(**PLAIN.values(), total=None), Everyone(), Mean("size", 1.0)),  # type: ignore[arg-type]
    "fedavg": (TWENTY, PLAIN, Everyone(), Mean("size", 1.0)),
    "kin": (TWENTY, Experts(**WORK, folds=3, crossed=3, strength=10.0), Everyone(), MeanOfExperts(crossed=3)),
    "kin_light": (
        TWENTY,
        Experts(**WORK, folds=5, crossed=1, experts=("alone", "tuned", "common", "shares")),
        Everyone(),
        MeanOfExperts(crossed=1, kin=None),
    ),
    "fedavg_prior": (TWENTY, LabelShares(**WORK, added=10.0), Everyone(), Mean()),
    "fedavg_calibrated": (TWENTY, Calibrated(**WORK, added=10.0), Everyone(), Mean()),
    "fedprox": (TWENTY, Prox(eta=0.02, **WORK, lam=0.01), Everyone(), Mean()),
    "fedmcsa": (TWENTY, PROX, Everyone(), LAYERS, "everyone"),
    "fedmcsa_official": (  # A-M12: what the authors' code does
        TWENTY,
        SGD(eta=0.02, **WORK, weight_decay=1e-3, sampler="cyclic"),
        Everyone(),
        ComponentAttention(50.0, "tensor", True),
        "everyone",
    ),
    "fedmcsa_without_mcsa": (TWENTY, PROX, Everyone(), MeanBefore("size"), "everyone"),  # A-M11
    "fedavg_mcsa": (TWENTY, PLAIN, Everyone(), LAYERS, "everyone"),
    "pfedme_mcsa": (TWENTY, MOREAU, Everyone(), LAYERS, "everyone"),
    "fedacs": (
        ALL,
        SGD(eta=0.01, steps=None, epochs=5, batch=10),
        Everyone(),
        SimilarityThreshold(0.9, "selected", "model", 1.0),
    ),
    "fedamp": (ALL, Prox(eta=0.02, **WORK, lam=1.0), Everyone(), MessagePassing(1.0, 1.0)),
    "heurfedamp": (TWENTY, PROX, Everyone(), HeuristicMessagePassing(0.1, 50.0), "everyone"),
    "pfedgraph": (ALL, Aligned(eta=0.01, **WORK, mu=0.01, sign="towards"), Everyone(), CollaborationGraph(0.8, 1.0)),
    "cfl": (ALL, PLAIN, Everyone(), Bipartition(0.4, 1.6, 20, 2, "uniform")),
    "pfedsim": (TWENTY, SGD(eta=0.01, **WORK), Everyone(), ClassifierSimilarity(0.5)),
    "fedper": (TWENTY, PLAIN, Everyone(), Shared(Mean("size", 1.0), "body", "own")),
    "lgfedavg": (TWENTY, PLAIN, Everyone(), Shared(Mean("size", 1.0), "head", "own")),
    "fedrep": (TWENTY, HeadThenBody(eta=0.02, **WORK, head=0.75), Everyone(), Shared(Mean(), "body", "own")),
    "fedbabu": (TWENTY, HeadThenBody(eta=0.02, **WORK, head=0.0), Everyone(), Shared(Mean(), "body", "first")),
    "ifca": (TWENTY, Choosing(eta=0.02, **WORK, samples=200), Everyone(), Several(2, "size")),
    "fedfomo": (TWENTY, MixingItself(eta=0.02, **WORK, samples=200), Everyone(), Offers(5)),
    "fedala": (TWENTY, Blending(eta=0.02, **WORK, last=1, eta_a=1.0, samples=200), Everyone(), Mean()),
    "feddwa": (ALL, SGD(eta=0.01, **WORK), Everyone(), Ahead(5)),
    "pfedme": (TWENTY, MOREAU, Everyone(), Mean("size", 1.0), "everyone", "everyone"),
    "perfedavg": (TWENTY, MAML(eta=0.003, **WORK, alpha=0.03, order="FO"), Everyone(), Mean()),
    "ditto": (TWENTY, TwoStreams(eta=0.02, **WORK, lam=1.0, batches="own"), Everyone(), Mean()),
    "apfl": (
        TWENTY,
        APFL(eta=0.02, **WORK, alpha=0.5, adapt="first", penalty=0.0, mix="parameter"),
        Everyone(),
        Mean(),
    ),
    "adafl": (Attention(0.9, Steps(0.1, 0.5, 5)), PLAIN, Everyone(), Mean()),
    "attn": (Attention(0.9, Constant(0.1)), PLAIN, Everyone(), Mean()),
    "dyn_fedavg": (Attention(1.0, Steps(0.1, 0.5, 5)), PLAIN, Everyone(), Mean()),
    "scaffold": (TWENTY, Scaffold(eta=0.02, **WORK), Everyone(), Control("uniform", 1.0)),
    "fedmix": (TWENTY, FedMix(eta=0.02, **WORK, lam=0.05, group=None, own=True, naive=False), Everyone(), Mean()),
    "active": (Active(0.75, 0.01, 0.1, 0.2), PLAIN, Everyone(), Mean()),
    "sfedavg": (Shapley(0.75, 0.25, 0.01, 10, 0.2), PLAIN, Everyone(), Mean("uniform")),
    "pfedre": (ALL, BETA, Relevance(1, 50, 0.1, 1.0, normalise=True, literal=False, min_gap=None), Mean()),
    "pfedre_aligned": (ALL, BETA, Alignment(min_gap=None), Mean()),
    "pfedre_robust": (ALL, BETA, Robust(low=0.3, high=2.0, large=4.0), Mean()),
    "krum": (TWENTY, PLAIN, Krum(0.2), Mean("uniform")),
    "multikrum": (TWENTY, PLAIN, MultiKrum(0.2), Mean("uniform")),
    "trimmed_mean": (TWENTY, PLAIN, Everyone(), TrimmedMean(0.1)),
    "median": (TWENTY, PLAIN, Everyone(), Median()),
    "oracle": (TWENTY, PLAIN, Oracle(), Mean()),
}


def test_every_named_method_is_here() -> None:
    assert set(PARTS) == set(fk.methods.METHODS)


@pytest.mark.parametrize("name", PARTS)
def test_defaults(name: str) -> None:
    assert fk.methods.METHODS[name]() == Method(name, *PARTS[name])


@pytest.mark.parametrize(
    ("beta", "lam", "restart"), [("local", 0.0, False), ("finetune", 0.0, True), ("ditto", 0.4, False)]
)
def test_the_personal_model_of_pfedre(beta: str, lam: float, restart: bool) -> None:
    values = fk.methods.pfedre(beta=beta, lam=0.4).train.values()
    assert (values["lam"], values["restart"]) == (lam, restart)
