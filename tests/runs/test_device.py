"""A device that is not there is refused in one sentence."""

from __future__ import annotations

import pytest

import fedkin as fk
from fedkin.runs.experiment import check_device

RUN = ["run", "fedavg", "--data", "digits", "--clients", "6", "--rounds", "2"]


@pytest.mark.parametrize(
    ("device", "sentence"),
    [
        ("cuda", "There is no CUDA device here; use --device cpu."),
        ("cuda:1", "There is no CUDA device here; use --device cpu."),
        ("tpu9", "There is no device called 'tpu9'; use cpu, cuda or cuda:1."),
        ("mps", "fedkin runs on cpu or cuda, not on 'mps'."),
    ],
)
@pytest.mark.parametrize("engine", ["stacked", "ray"])
def test_the_command_says_so(fedkin, monkeypatch: pytest.MonkeyPatch, device: str, sentence: str, engine: str) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    outcome = fedkin(*RUN, "--device", device, "--engine", engine)
    assert (outcome.code, outcome.err.strip()) == (2, f"fedkin: {sentence}")


def test_a_number_beyond_the_last_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    check_device("cuda")
    check_device("cuda:1")
    with pytest.raises(fk.BadInput, match=r"^There is no 'cuda:2' here, the last device is cuda:1; use that, or"):
        check_device("cuda:2")
