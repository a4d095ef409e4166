"""The answers in sentences."""

from __future__ import annotations

from typing import Any

import pytest

from fedkin.answers import sentences
from fedkin.answers.bootstrap import Gain
from fedkin.answers.site import Answer


def made(site: str, verdict: Any = "join", **more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"rows": 63, "method": "fedavg", "against": "local", "gain": 0.074, "low": 0.021}
    return Answer(site, verdict, **values | {"high": 0.12} | more).as_json({"fedavg": Gain(0.074, 0.021, 0.12)})


def answers(*sites: dict[str, Any]) -> dict[str, Any]:
    return {"metric": "accuracy", "notes": ["One split."], "sites": list(sites)}


def test_join_names_the_method_the_gain_and_the_kin() -> None:
    found = sentences.sentence(made("Hospital 7", kin=("Hospital 2", "Hospital 5")), "accuracy")
    assert found == (
        "Hospital 7: join, with FedAvg: +7.4 points (95 % interval 2.1 to 12.0, 63 test rows). Kin: Hospitals 2, 5."
    )


def test_other_verdicts() -> None:
    found = sentences.sentence(made("Hospital 4", "stay alone", gain=-0.031, low=-0.06, high=-0.002), "accuracy")
    assert found == ("Hospital 4: stay alone. Best: FedAvg, −3.1 points (95 % interval −6.0 to −0.2, 63 test rows).")
    few = Answer("3", "too few test rows to tell", 1).as_json({})
    assert sentences.sentence(few, "accuracy") == "Client 3: too few test rows to tell (1 test row)."
    assert sentences.sentence(made("A", "stay alone", looks="mislabelled"), "accuracy").endswith("labels first.")
    more = sentences.sentence(made("A", better_alone="local@epochs=5"), "accuracy")
    assert more.endswith("But Local (epochs=5) reaches more there.")


@pytest.mark.parametrize(
    ("metric", "gain", "expected"),
    [
        ("accuracy", 0.0004, "0.0 points"),
        ("auc", 0.02, "+2.0 points of ROC AUC"),
        ("r2", -0.125, "−0.125 in R2"),
        ("rmse", 1.5, "better by 1.5 in RMSE"),
        ("log_loss", -0.2, "worse by 0.2 in log loss"),
    ],
)
def test_a_gain_has_the_unit_of_its_metric(metric: str, gain: float, expected: str) -> None:
    assert sentences.amount(metric, gain) == expected


def test_suspicions_name_sites_and_count_filters() -> None:
    bad = {"looks": "mislabelled", "left_out_by": ("a", "b", "c", "d", "e"), "opinions": 6}
    found = answers(made("Hospital 4", **bad), made("Hospital 7"), made("Hospital 9", **bad))
    assert sentences.suspicions(found) == ["Hospitals 4 and 9 look mislabelled: 5 filters of 6 left them out."]
    one = answers(made("North", looks="different", left_out_by=("a",), opinions=1))
    [sentence] = sentences.suspicions(one)
    assert sentence == "North looks different from the others, in its labels or its data: 1 filter of 1 left it out."


@pytest.mark.parametrize(
    ("names", "word", "expected"),
    [
        (["Hospital 2", "Hospital 5"], ",", "Hospitals 2, 5"),
        (["Hospital 2"], ",", "Hospital 2"),
        (["3", "4", "5"], "and", "Clients 3, 4 and 5"),
        (["cleveland", "va"], "and", "cleveland and va"),
        (["Hospital 2", "Bank 5"], ",", "Hospital 2, Bank 5"),
    ],
)
def test_sites_together(names: list[str], word: str, expected: str) -> None:
    assert sentences.together(names, word) == expected


def test_a_terminal_lists_suspicious_and_clear_sites_first_and_not_all() -> None:
    sites = [made(f"S {i}", "no clear difference") for i in range(30)]
    sites += [made("S 30"), made("S 31", "stay alone", looks="mislabelled", left_out_by=("a", "b"), opinions=2)]
    found = sentences.lines(answers(*sites))
    assert found[0] == "1 of 32 sites: join; 30 no clear difference; 1 with doubtful labels."
    assert found[2].startswith("S 31: stay alone")
    assert found[3].startswith("S 30: join")
    assert found[-2:] == ["... and 12 more sites; the report has them all.", "One split."]
    assert len(found) == 2 + 20 + 2
