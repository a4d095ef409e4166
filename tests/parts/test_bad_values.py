"""Hyper-parameters that make no sense are refused in one sentence that names them."""

from __future__ import annotations

from typing import Any

import pytest

import fedkin as fk
from fedkin.collaborate import ComponentAttention, HeuristicMessagePassing, MessagePassing, SimilarityThreshold
from fedkin.collaborate.trimmed_mean import TrimmedMean
from fedkin.keep.krum import Krum, MultiKrum
from fedkin.keep.relevance import Relevance, UpdateDistance
from fedkin.keep.robust import Robust
from fedkin.select import Active, Attention, Constant, Dismiss, Listed, Shapley, Steps
from fedkin.train import SGD, FedMix, TwoStreams

NAN, INF = float("nan"), float("inf")
BAD: list[tuple[Any, dict[str, list[Any]]]] = [  # a part or a method, and the bad values of each of its fields
    (SGD, {"gamma": [-0.1, NAN, INF], "eta": [0.0, -1.0], "momentum": [1.0], "batch": [0], "sampler": ["any"]}),
    (FedMix, {"lam": [-0.1, 1.0, NAN], "group": [0]}),
    (TwoStreams, {"batches": ["both"], "lam": [-1.0], "eta_v": [0.0]}),
    (Shapley, {"fraction": [0.0, 1.5], "temperature": [0.0], "permutations": [0], "alpha": [-0.1, 1.1], "beta": [2.0]}),
    (Active, {"alpha1": [-0.1, 1.1], "alpha2": [-1.0], "alpha3": [1.5, NAN], "fraction": [0.0, 2.0]}),
    (Attention, {"fraction": [0.0, 1.1], "alpha": [-0.01, 1.01, NAN]}),
    (Constant, {"fraction": [0.0, -0.1, 1.01, NAN]}),
    (Dismiss, {"after": [0], "who": ["nobody"], "base": [3]}),
    (Robust, {"low": [-0.1, 1.0], "high": [0.0, 1.0, NAN], "large": [-1.0, 1.0]}),
    (Relevance, {"samples": [0], "iterations": [-1], "rate": [0.0, NAN], "scale": [0.0], "min_gap": [-1.0]}),
    (UpdateDistance, {"metric": ["l3"]}),
    (Krum, {"f": [-1, 1.5, NAN]}),
    (MultiKrum, {"f": [-1, 1.5, NAN]}),
    (TrimmedMean, {"trim": [-0.1, 0.5, 0.6, NAN]}),
    (ComponentAttention, {"sigma": [-1], "granularity": ["neuron"]}),
    (SimilarityThreshold, {"p": [1.1, -0.1], "pool": ["some"]}),
    (MessagePassing, {"sigma": [0]}),
    (HeuristicMessagePassing, {"self_weight": [1.5]}),
    (fk.methods.fedmcsa, {"lam": [-1], "count": [0]}),
    (fk.methods.pfedme, {"lam": [1000]}),
    (fk.methods.ditto, {"lam": [-1]}),
    (fk.methods.apfl, {"alpha": [2]}),
    (fk.methods.perfedavg, {"order": ["SO"]}),
    (fk.methods.pfedre, {"beta": ["none"]}),
    (fk.methods.adafl, {"alpha": [2.0]}),
    (fk.methods.attn, {"fraction": [0.0]}),
    (fk.methods.dyn_fedavg, {"levels": [0]}),
]
ONE = [(make, name, value) for make, fields in BAD for name, values in fields.items() for value in values]


@pytest.mark.parametrize(("make", "name", "value"), ONE, ids=lambda given: getattr(given, "__name__", str(given)))
def test_a_bad_value_is_refused_in_one_sentence(make: Any, name: str, value: Any) -> None:
    with pytest.raises(fk.BadInput) as caught:
        make(**{name: value})
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence[0].isalpha()
    assert sentence[-1] in ".?"


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (Steps, (0.0, 0.5, 5)),
        (Steps, (0.1, 1.5, 5)),
        (Steps, (0.5, 0.1, 5)),
        (Steps, (0.1, 0.5, 0)),
        (Steps, (0.1, 0.5, 1)),
        (Listed, ((),)),
        (Listed, ((0.1, 0.3, 0.2),)),
        (Listed, ((0.0, 0.3),)),
        (Listed, ((0.1, 2.0),)),
    ],
)
def test_a_bad_schedule_is_refused(make: Any, values: tuple[Any, ...]) -> None:
    with pytest.raises(fk.BadInput, match=r"^[A-Za-z][^\n]*\.$"):
        make(*values)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ComponentAttention(sigma=-1), "sigma cannot be negative"),
        (lambda: SimilarityThreshold(p=1.1), "quantile from 0 to 1"),
        (lambda: MessagePassing(sigma=0), "sigma must be positive"),
        (lambda: fk.methods.fedmcsa(lam=-1), "lam cannot be negative"),
        (lambda: fk.methods.fedmcsa(count=0), "count must be at least 1"),
        (lambda: fk.methods.pfedme(lam=1000), "diverge"),
        (lambda: fk.methods.apfl(alpha=2), "alpha must be from 0 to 1"),
        (lambda: fk.methods.perfedavg(order="SO"), "'FO' or 'HF'"),
    ],
)
def test_what_the_sentence_says(make: Any, sentence: str) -> None:
    with pytest.raises(fk.BadInput, match=sentence):
        make()
