"""Statistics by hand."""

import numpy as np
import pytest

import fedkin as fk
from fedkin.runs import diagnostics, statistics


def lines(values: list[float], checks: list[float] | None = None) -> list[dict]:
    found = [{"accuracy": {"post": {"macro": value, "micro": value / 2}}} for value in values]
    for line, check in zip(found, checks or [], strict=False):
        line["accuracy"]["post/validation"] = {"macro": check, "micro": check}
    return found


def test_last_last10_best_and_validated() -> None:
    values = [0.1 * i for i in range(8)] + [0.9, 0.2, 0.3, 0.4]
    found = statistics.measured([{"round": 0}, *lines(values)])["post"]["macro"]
    assert found == {"last": 0.4, "last10": pytest.approx(np.mean(values[-10:])), "best": 0.9, "validated": None}
    checks = [0.0] * 12
    checks[3] = 1.0
    assert statistics.measured(lines(values, checks))["post"]["macro"]["validated"] == pytest.approx(values[3])
    assert list(statistics.measured(lines(values, checks))) == ["post"]


def test_fairness() -> None:
    clients = np.array([0.5, np.nan, *np.linspace(0.6, 0.95, 19)])
    found = statistics.fairness(clients)
    assert found["worst10"] == pytest.approx((0.5 + 0.6) / 2)
    assert found["std_clients"] == pytest.approx(np.nanstd(clients))


def test_rounds_to_is_the_papers_rule() -> None:
    values = [0.9, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]
    assert statistics.rounds_to(0.89, values) == 7
    assert statistics.rounds_to(0.9, [0.9] * 8) is None, "strictly above"
    assert statistics.rounds_to(0.5, [0.9] * 4) is None, "not before the fifth round"
    assert statistics.rounds_to(0.5, [0.9] * 5) == 5
    assert statistics.cost_to(0.89, values, [10.0] * 4 + [20.0] * 4) == 100.0


def test_rounds_to_needs_every_round() -> None:
    data = fk.Data("digits", clients=4)
    result = fk.run(fk.Experiment(fk.methods.fedavg(count=2), data, rounds=8, evaluate_every=1))
    accuracies = [line["accuracy"]["global"]["micro"] for line in result.lines]
    assert result.rounds_to(0.2) == statistics.rounds_to(0.2, accuracies)
    assert result.cost_to(0.2) == 2 * result.rounds_to(0.2)
    assert result.cost_to(0.2, unit="client_rounds") == 2 * result.rounds_to(0.2)
    with pytest.raises(fk.BadInput, match="unit"):
        result.cost_to(0.2, unit="euros")  # type: ignore[arg-type]
    assert result.summary["stability"]["global"] == pytest.approx(np.std(accuracies))
    seldom = fk.run(fk.Experiment(fk.methods.fedavg(count=2), data, rounds=8, evaluate_every=2))
    with pytest.raises(fk.BadInput, match="--evaluate-every 1"):
        seldom.rounds_to(0.2)


@pytest.mark.parametrize(("method", "models", "first"), [("scaffold", 2.0, 0.0), ("fedmix", 1.0, 4.0)])
def test_the_true_cost_and_the_papers(method: str, models: float, first: float) -> None:
    """SCAFFOLD sends two models a client and round; FedMix sends an average a client before round 1."""
    made = fk.methods.named(method)
    data = fk.Data("digits", clients=4, partition="iid")
    result = fk.run(fk.Experiment(made, data, "mlr", rounds=6, evaluate_every=1, score=("global",)))
    reached, uploads = result.rounds_to(0.1), result.cost_to(0.1)
    assert reached is not None
    assert result.cost_to(0.1, unit="client_rounds") == 4 * reached
    assert uploads == pytest.approx(4 * reached * models + first * (64 + 10) / (64 * 10 + 10))


def test_seeds_are_merged_as_mean_and_standard_deviation() -> None:
    data = fk.Data("digits", clients=4)
    both = [fk.run(fk.Experiment(fk.methods.local(), data, rounds=2, seed=seed)).summary for seed in (0, 1)]
    merged = statistics.merged(both)
    values = [summary["accuracy"]["post"]["macro"]["last"] for summary in both]
    assert merged["accuracy"]["post"]["macro"]["last"] == pytest.approx(np.mean(values))
    assert merged["spread"]["post"]["macro"]["last"] == pytest.approx(np.std(values, ddof=1))
    assert merged["seeds"] == [0, 1]
    steady = [summary["stability"]["post"] for summary in both]
    assert merged["stability"] == {"post": pytest.approx(np.mean(steady))}
    assert statistics.merged(both[:1])["spread"] == {}


def test_a_filter_by_hand() -> None:
    """Two of three irrelevant clients found, and one relevant one wrongly."""
    truth = np.array([True, True, True, False, False, False, False])
    kept = np.array([0, 0, 1, 0, 1, 1, 0.5])
    divergence = np.array([9.0, 8.0, 2.0, 7.0, 1.0, 2.0, np.nan])
    found = diagnostics.filtered(truth, kept, divergence)
    assert found["precision"] == pytest.approx(2 / 3)
    assert found["recall"] == pytest.approx(2 / 3)
    assert found["f1"] == pytest.approx(2 / 3)
    pairs = [(9, 7), (9, 1), (9, 2), (8, 7), (8, 1), (8, 2), (2, 1)]  # in order; (2, 2) is a tie, nan is the largest
    assert found["auc"] == pytest.approx((len(pairs) + 0.5) / 12)


def test_a_filter_with_nothing_to_find_or_nothing_found() -> None:
    none, some = np.zeros(3, dtype=bool), np.array([True, False, False])
    clean = diagnostics.filtered(none, np.array([1.0, 0.0, 1.0]), np.arange(3.0))
    assert clean == {"precision": 0.0, "recall": None, "f1": None, "auc": None}
    idle = diagnostics.filtered(some, np.ones(3), None)
    assert idle == {"precision": None, "recall": 0.0, "f1": 0.0, "auc": None}


def test_client_rounds_count_replies_not_models() -> None:
    """SCAFFOLD's clients send twice; one that does not reply is not counted; nor is what is sent before round 1."""
    sent = {"uploads": 4.0, "downloads": 6.0, "bytes_up": 8, "bytes_down": 12}
    found = statistics.cost([{"replied": 2} | sent, {"replied": 3} | sent], {"uploads": 0.5})
    assert found == {"uploads": 8.5, "downloads": 12, "bytes_up": 16, "bytes_down": 24, "client_rounds": 5}
